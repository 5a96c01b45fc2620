"""OpenAI's responses: the same answers as `chat` gives, as items and as the events of a stream."""
from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import count
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from ragbed.experiments.guests.serving.chat import Content, begin, ragbed_json, text_of
from ragbed.experiments.guests.serving.served import Served, markdown_sources, url_citations
from ragbed.experiments.guests.serving.state import (
    Citations,
    Serving,
    event_stream,
    failed,
    frame,
    owner_of,
    refused,
    unless_gone,
)
from ragbed.experiments.guests.serving.turns import Asked, Event
from ragbed.strategies.types import Turn


class ResponseItem(BaseModel):
    """An item of a conversation: a message; or an `item_reference`, which names an answer that was given here."""

    type: str = Field(default="message", max_length=50)
    id: str | None = Field(default=None, max_length=200)
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: Content = None

    @property
    def name(self) -> str:
        """Return what to call it where it is ignored."""
        return f"{self.role} message" if self.type == "message" else f"{self.type} item"


class ReasoningRequest(BaseModel):
    """What of its reasoning the answer brings; nothing unless a summary is asked for."""

    summary: Literal["auto", "concise", "detailed"] | None = None


class ResponseRequest(BaseModel):
    """A request for a response. What else OpenAI's API knows is ignored, and named in `ragbed.ignored`.

    Attributes:
        model: the name of a configuration.
        previous_response_id: a response whose conversation goes on.
        citations: as in a chat completion.
    """

    model_config = ConfigDict(extra="allow")

    model: str
    input: str | Annotated[list[ResponseItem], Field(min_length=1, max_length=2_000)]
    stream: bool = False
    previous_response_id: str | None = Field(default=None, max_length=200)
    reasoning: ReasoningRequest | None = None
    conversation: None = None  # they would have to be kept here, and are not
    citations: Citations | None = None


def response_routes(serving: Serving) -> APIRouter:
    """Return the route `/v1/responses`."""
    router = APIRouter()

    @router.post("/v1/responses")
    async def respond(given: ResponseRequest, request: Request) -> Any:
        items = [ResponseItem(role="user", content=given.input)] if isinstance(given.input, str) else given.input
        before = await _kept(serving, request, given.previous_response_id) if given.previous_response_id else ()
        talk, ignored = [], {*(given.model_extra or {})}
        for item in items:
            if item.type == "item_reference" and str(item.id).startswith("msg_"):
                talk.append(("assistant", (await _kept(serving, request, str(item.id)))[-1].answer))
            elif item.type == "message" and item.role in ("user", "assistant"):
                talk.append((item.role, text_of(item.content)))
            else:
                ignored.add(item.name)
        asked = await begin(serving, request, given.model, talk, before)
        form = _Form(asked, given, serving.base(request), sorted(ignored), given.citations or serving.citations)
        if given.stream:
            return event_stream(form.frames(serving.turns.play(asked)))
        return form.whole(await unless_gone(request, serving.turns.answer(asked)))

    return router


async def _kept(serving: Serving, request: Request, id: str) -> Sequence[Turn]:
    """The conversation up to the answer with an id, of a response or of its message."""
    turns = await serving.turns.traffic.conversation(id.partition("_")[2], owner_of(request))
    if turns is None:
        raise refused(404, f"nothing that was answered has the id {id!r:.100}", "previous_response_not_found")
    return turns


class _Form:
    """An answer as a response, in one piece or as the events of a stream.

    A stream's items come one after the other: the reasoning, where it was asked for and there is any before the text,
    and the message.
    """

    def __init__(self, asked: Asked, given: ResponseRequest, base: str, ignored: Sequence[str],
                 citations: Citations) -> None:
        self._asked, self._given, self._base, self._ignored = asked, given, base, ignored
        self._annotated, self._listed = citations != "markdown", citations != "annotations"
        self._summarised = given.reasoning is not None and given.reasoning.summary is not None
        self._created, self._sent = int(time.time()), count()
        self._thought, self._speaking = "", False

    def whole(self, answer: Event) -> dict[str, Any]:
        """Return the answer in one piece; refuse one that failed."""
        if error := failed(answer):
            raise error
        thought = answer["reasoning"] if self._summarised else ""
        return self._completed(answer, [*([self._reasoning(thought)] if thought else ()),
                                        self._message(self._part(answer))])

    async def frames(self, events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
        """Yield the events of an answer."""
        begun = self._response("in_progress", [])
        yield self._event("response.created", response=begun)
        yield self._event("response.in_progress", response=begun)
        async for event in events:
            if event["event"] == "reasoning" and self._summarised and not self._speaking:
                told = self._think(event["text"])
            elif event["event"] == "text":
                told = self._say(event["text"])
            elif event["event"] == "answer":
                told = self._end(event)
            else:
                continue
            for one in told:
                yield one

    def _think(self, text: str) -> Iterator[bytes]:
        if not self._thought:
            yield self._event("response.output_item.added", output_index=0,
                              item={**self._reasoning(""), "summary": [], "status": "in_progress"})
            yield self._summary("part.added", part={"type": "summary_text", "text": ""})
        self._thought += text
        yield self._summary("text.delta", delta=text)

    def _say(self, text: str) -> Iterator[bytes]:
        if not self._speaking:
            if self._thought:
                item = self._reasoning(self._thought)
                yield self._summary("text.done", text=self._thought)
                yield self._summary("part.done", part=item["summary"][0])
                yield self._event("response.output_item.done", output_index=0, item=item)
            self._speaking = True
            yield self._event("response.output_item.added", output_index=int(bool(self._thought)),
                              item={**self._message(), "status": "in_progress"})
            yield self._content("content_part.added", part={"type": "output_text", "text": "", "annotations": []})
        if text:
            yield self._content("output_text.delta", delta=text, logprobs=[])

    def _end(self, answer: Event) -> Iterator[bytes]:
        if error := failed(answer):
            code = "server_error" if error.status_code >= 500 else "invalid_prompt"
            yield self._event("response.failed", response={
                **self._response("failed", []), "usage": _usage(answer), "ragbed": ragbed_json(answer, self._ignored),
                "error": {"code": code, "message": answer["text"]}})
            return
        part = self._part(answer)
        yield from self._say(part["text"][len(answer["text"]):])
        for place, annotation in enumerate(part["annotations"]):
            yield self._content("output_text.annotation.added", annotation_index=place, annotation=annotation)
        message = self._message(part)
        yield self._content("output_text.done", text=part["text"], logprobs=[])
        yield self._content("content_part.done", part=part)
        yield self._event("response.output_item.done", output_index=int(bool(self._thought)), item=message)
        items = [self._reasoning(self._thought), message] if self._thought else [message]
        yield self._event("response.completed", response=self._completed(answer, items))

    def _event(self, kind: str, **fields: Any) -> bytes:
        return frame({"type": kind, "sequence_number": next(self._sent), **fields}, kind)

    def _summary(self, kind: str, **fields: Any) -> bytes:
        return self._event(f"response.reasoning_summary_{kind}", item_id=f"rs_{self._asked.record}", output_index=0,
                           summary_index=0, **fields)

    def _content(self, kind: str, **fields: Any) -> bytes:
        return self._event(f"response.{kind}", item_id=f"msg_{self._asked.record}",
                           output_index=int(bool(self._thought)), content_index=0, **fields)

    def _reasoning(self, text: str) -> dict[str, Any]:
        return {"id": f"rs_{self._asked.record}", "type": "reasoning", "status": "completed",
                "summary": [{"type": "summary_text", "text": text}]}

    def _message(self, *parts: dict[str, Any]) -> dict[str, Any]:
        return {"id": f"msg_{self._asked.record}", "type": "message", "status": "completed", "role": "assistant",
                "content": list(parts)}

    def _part(self, answer: Served) -> dict[str, Any]:
        listed = markdown_sources(answer, self._base) if self._listed else ""
        cited = url_citations(answer, self._base) if self._annotated else []
        return {"type": "output_text", "text": answer["text"] + listed, "annotations": cited, "logprobs": []}

    def _completed(self, answer: Served, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._response("completed", output), "usage": _usage(answer),
                "ragbed": ragbed_json(answer, self._ignored)}

    def _response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": f"resp_{self._asked.record}", "object": "response", "created_at": self._created,
                "status": status, "model": self._asked.configuration, "output": output, "error": None,
                "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": False,
                "previous_response_id": self._given.previous_response_id, "temperature": None, "top_p": None,
                "tool_choice": "none", "tools": [], "usage": None}


def _usage(answer: Served) -> dict[str, Any]:
    used = answer["usage"]
    return {"input_tokens": used["prompt_tokens"], "output_tokens": used["completion_tokens"],
            "total_tokens": used["prompt_tokens"] + used["completion_tokens"],
            "input_tokens_details": {"cached_tokens": used["cached_tokens"], "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0}}
