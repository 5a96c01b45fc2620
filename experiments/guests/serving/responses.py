"""OpenAI's responses API. It returns the same answers as `chat`, as items or as a stream of typed events."""
from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field

from ragbed.agents.graph import Event
from ragbed.experiments.guests.serving.answer_json import AnswerJson, markdown_sources, url_citations
from ragbed.experiments.guests.serving.chat import (
    Content,
    ServedFilter,
    ignored_names,
    ragbed_json,
    start_turn,
    text_of,
)
from ragbed.experiments.guests.serving.client_parameters import check_parameters, read_format
from ragbed.experiments.guests.serving.state import (
    Citations,
    RequestModel,
    ServerState,
    answer_error,
    event_stream,
    http_error,
    request_owner,
    sse_event,
    unless_disconnected,
)
from ragbed.experiments.guests.serving.structured_output import answer_as_json, play_as_json
from ragbed.experiments.guests.traffic.turns import ChatTurn
from ragbed.strategies.types import Turn


class ResponseItem(RequestModel):
    """An item of a conversation: a message, or an `item_reference` to an answer of this server."""

    type: str = Field(default="message", max_length=50)
    id: str | None = Field(default=None, max_length=200)
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: Content = None

    @property
    def name(self) -> str:
        """Return the name of this item in `ragbed.ignored`."""
        return f"{self.role} message" if self.type == "message" else f"{self.type} item"


class ReasoningRequest(RequestModel):
    """Request for reasoning, which is returned only if a summary is requested."""

    summary: Literal["auto", "concise", "detailed"] | None = None


class TextRequest(RequestModel):
    """The form of the answer's text."""

    format: dict[str, Any] | None = None


class ResponseRequest(RequestModel):
    """A request for a response. Other fields are refused or ignored, as in a chat completion.

    Attributes:
        model: name of a configuration.
        previous_response_id: the response that this question follows.
        text: `format` may have a JSON Schema that the answer must fit.
        citations, where: as in a chat completion.
    """

    model_config = ConfigDict(extra="allow")

    model: str
    input: str | Annotated[list[ResponseItem], Field(min_length=1, max_length=2_000)]
    stream: bool = False
    previous_response_id: str | None = Field(default=None, max_length=200)
    reasoning: ReasoningRequest | None = None
    text: TextRequest | None = None
    conversation: None = None  # not supported: the server does not keep conversations
    citations: Citations | None = None
    where: ServedFilter = ()


def response_routes(server: ServerState) -> APIRouter:
    """Return the route `/v1/responses`."""
    router = APIRouter()

    @router.post("/v1/responses")
    async def respond(given: ResponseRequest, request: Request) -> Any:
        check_parameters(given.model_extra or {})
        wanted = await asyncio.to_thread(read_format, given.text and given.text.format, "text.format")
        items = [ResponseItem(role="user", content=given.input)] if isinstance(given.input, str) else given.input
        earlier, basis = (await _load_turns(server, request, given.previous_response_id)
                          if given.previous_response_id else ((), []))
        messages, ignored = [], {*(given.model_extra or {})}
        for item in items:
            if item.type == "item_reference" and str(item.id).startswith("msg_"):
                turns, more = await _load_turns(server, request, str(item.id))
                messages.append(("assistant", turns[-1].answer))
                basis = [*basis, *more]
            elif item.type == "message" and item.role in ("user", "assistant"):
                messages.append((item.role, text_of(item.content)))
            else:
                ignored.add(item.name)
        turn = await start_turn(server, request, given.model, messages, given.where, earlier, basis)
        writer = _ResponseWriter(turn, given, server.base_url(request), ignored_names(ignored),
                                 "annotations" if wanted else given.citations or server.citations)
        if given.stream:
            return event_stream(writer.stream(play_as_json(server.sessions, turn, wanted)))
        return writer.response(await unless_disconnected(request, answer_as_json(server.sessions, turn, wanted)))

    return router


async def _load_turns(server: ServerState, request: Request, id: str) -> tuple[Sequence[Turn], list[str]]:
    """Return the conversation up to the answer with this response or message id, and what it is based on."""
    owner, sessions = request_owner(request), server.sessions
    turns, basis = await sessions.traffic.conversation(id.partition("_")[2], owner) or ((), None)
    if not turns or not await asyncio.to_thread(sessions.may_see, basis, owner):
        raise http_error(404, f"no answer has the id {id!r:.100}", "previous_response_not_found")
    return turns, basis or []


class _ResponseWriter:
    """Writes an answer as a response, whole or as a stream.

    Its items are the calls of tools, as those of an MCP server; the reasoning, if it was requested and arrives before
    the text; and the message.
    """

    def __init__(self, turn: ChatTurn, given: ResponseRequest, base_url: str, ignored: Sequence[str],
                 citations: Citations) -> None:
        self._turn, self._given, self._base_url, self._ignored = turn, given, base_url, ignored
        self._annotated, self._listed = citations != "markdown", citations != "annotations"
        self._with_summary = given.reasoning is not None and given.reasoning.summary is not None
        self._created, self._sent = int(time.time()), count()
        self._items: list[dict[str, Any]] = []
        self._reasoned = ""  # text of the reasoning that is the last item, while it is written
        self._place: int | None = None  # of the message, once it has begun

    def response(self, answer: Event) -> dict[str, Any]:
        """Return the whole answer. Raises HTTPException if the question failed."""
        if error := answer_error(answer):
            raise error
        reasoning = answer["reasoning"] if self._with_summary else ""
        items = [self._call(place, step) for place, step in enumerate(
            step for step in answer["steps"] if step["kind"] == "tool")]
        items += [self._reasoning(len(items), reasoning)] if reasoning else []
        return self._completed_response(answer, [*items, self._message(self._part(answer))])

    async def stream(self, events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
        """Yield the answer as server-sent events."""
        started = self._response("in_progress", [])
        yield self._event("response.created", response=started)
        yield self._event("response.in_progress", response=started)
        async for event in events:
            if event["event"] == "reasoning" and self._with_summary and self._place is None:
                written = self._write_reasoning(event["text"])
            elif event["event"] == "text":
                written = self._write_text(event["text"])
            elif event["event"] in ("calling", "tool"):
                written = self._begin_call(event) if event["event"] == "calling" else self._end_call(event)
            elif event["event"] == "answer":
                written = self._end(event)
            else:
                continue
            for one in written:
                yield one

    def _write_reasoning(self, text: str) -> Iterator[bytes]:
        if not self._reasoned:
            yield self._open({**self._reasoning(len(self._items), ""), "summary": []})
            yield self._summary("part.added", part={"type": "summary_text", "text": ""})
        self._reasoned += text
        yield self._summary("text.delta", delta=text)

    def _write_text(self, text: str) -> Iterator[bytes]:
        if self._place is None:
            yield from self._end_reasoning()
            self._place = len(self._items)
            yield self._open(self._message())
            yield self._content("content_part.added", part={"type": "output_text", "text": "", "annotations": []})
        if text:
            yield self._content("output_text.delta", delta=text, logprobs=[])

    def _end_reasoning(self) -> Iterator[bytes]:
        if self._reasoned:
            item = self._reasoning(len(self._items) - 1, self._reasoned)
            yield self._summary("text.done", text=self._reasoned)
            yield self._summary("part.done", part=item["summary"][0])
            yield self._close(len(self._items) - 1, item)
            self._reasoned = ""

    def _begin_call(self, event: Event) -> Iterator[bytes]:
        yield from self._end_reasoning()
        place = len(self._items)
        item = self._call(place, event)
        yield self._open(item)
        yield self._event("response.mcp_call.in_progress", item_id=item["id"], output_index=place)
        yield self._event("response.mcp_call_arguments.done", item_id=item["id"], output_index=place,
                          arguments=item["arguments"])

    def _end_call(self, event: Event) -> Iterator[bytes]:
        begun = self._call(0, event)
        place = next(place for place, item in enumerate(self._items) if item["status"] == "in_progress" and all(
            item.get(name) == begun[name] for name in ("name", "arguments")))
        item = self._call(place, event)
        yield self._event(f"response.mcp_call.{item['status']}", item_id=item["id"], output_index=place)
        yield self._close(place, item)

    def _end(self, answer: Event) -> Iterator[bytes]:
        if error := answer_error(answer):
            code = "server_error" if error.status_code >= 500 else "invalid_prompt"
            yield self._event("response.failed", response={
                **self._response("failed", []), "usage": _usage(answer), "ragbed": ragbed_json(answer, self._ignored),
                "error": {"code": code, "message": answer["text"]}})
            return
        part = self._part(answer)
        if "refusal" in answer:
            yield from self._end_reasoning()
            self._place = len(self._items)
            yield self._open(self._message())
            yield self._content("content_part.added", part={**part, "refusal": ""})
            yield self._content("refusal.delta", delta=part["refusal"])
            yield self._content("refusal.done", refusal=part["refusal"])
            yield from self._end_message(answer, part)
            return
        yield from self._write_text(part["text"][len(answer["text"]):])
        for place, annotation in enumerate(part["annotations"]):
            yield self._content("output_text.annotation.added", annotation_index=place, annotation=annotation)
        yield self._content("output_text.done", text=part["text"], logprobs=[])
        yield from self._end_message(answer, part)

    def _end_message(self, answer: Event, part: dict[str, Any]) -> Iterator[bytes]:
        yield self._content("content_part.done", part=part)
        assert self._place is not None
        yield self._close(self._place, self._message(part))
        yield self._event("response.completed", response=self._completed_response(answer, self._items))

    def _event(self, kind: str, **fields: Any) -> bytes:
        return sse_event({"type": kind, "sequence_number": next(self._sent), **fields}, kind)

    def _summary(self, kind: str, **fields: Any) -> bytes:
        return self._event(f"response.reasoning_summary_{kind}", item_id=self._items[-1]["id"],
                           output_index=len(self._items) - 1, summary_index=0, **fields)

    def _content(self, kind: str, **fields: Any) -> bytes:
        return self._event(f"response.{kind}", item_id=f"msg_{self._turn.record}", output_index=self._place,
                           content_index=0, **fields)

    def _open(self, item: dict[str, Any]) -> bytes:
        self._items.append({**item, "status": "in_progress"})
        return self._event("response.output_item.added", output_index=len(self._items) - 1, item=self._items[-1])

    def _close(self, place: int, item: dict[str, Any]) -> bytes:
        self._items[place] = item
        return self._event("response.output_item.done", output_index=place, item=item)

    def _call(self, place: int, step: Event) -> dict[str, Any]:
        why = step.get("failure")
        error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": why}]} if why else None
        return {"id": f"mcp_{self._turn.record}_{place}", "type": "mcp_call", "server_label": "ragbed",
                "name": step["tool"], "arguments": step["arguments"], "output": None if why else step.get("text"),
                "error": error, "status": "failed" if why else "completed", "approval_request_id": None}

    def _reasoning(self, place: int, text: str) -> dict[str, Any]:
        return {"id": f"rs_{self._turn.record}_{place}", "type": "reasoning", "status": "completed",
                "summary": [{"type": "summary_text", "text": text}]}

    def _message(self, *parts: dict[str, Any]) -> dict[str, Any]:
        return {"id": f"msg_{self._turn.record}", "type": "message", "status": "completed", "role": "assistant",
                "content": list(parts)}

    def _part(self, answer: AnswerJson) -> dict[str, Any]:
        if "refusal" in answer:
            return {"type": "refusal", "refusal": answer["refusal"]}
        listed = markdown_sources(answer, self._base_url) if self._listed else ""
        cited = url_citations(answer, self._base_url) if self._annotated else []
        return {"type": "output_text", "text": answer["text"] + listed, "annotations": cited, "logprobs": []}

    def _completed_response(self, answer: AnswerJson, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._response("completed", output), "usage": _usage(answer),
                "ragbed": ragbed_json(answer, self._ignored)}

    def _response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": f"resp_{self._turn.record}", "object": "response", "created_at": self._created,
                "status": status, "model": self._turn.configuration, "output": output, "error": None,
                "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": False,
                "previous_response_id": self._given.previous_response_id, "temperature": None, "top_p": None,
                "tool_choice": "none", "tools": [], "usage": None}


def _usage(answer: AnswerJson) -> dict[str, Any]:
    used = answer["usage"]
    return {"input_tokens": used["prompt_tokens"], "output_tokens": used["completion_tokens"],
            "total_tokens": used["prompt_tokens"] + used["completion_tokens"],
            "input_tokens_details": {"cached_tokens": used["cached_tokens"], "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0}}
