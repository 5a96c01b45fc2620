"""OpenAI's chat completions, and a variant for Open WebUI, which has its own format for passages."""
from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from ragbed.agents.graph import Event
from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.guests.serving.answer_json import (
    AnswerJson,
    cited_sources,
    markdown_sources,
    strip_sources,
    url_citations,
)
from ragbed.experiments.guests.serving.client_parameters import check_parameters, read_format
from ragbed.experiments.guests.serving.model_calls import TASKS, is_task, task_call
from ragbed.experiments.guests.serving.state import (
    LIVE,
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
from ragbed.retrieval.filters.parser import Where, parse_conditions
from ragbed.retrieval.filters.terms import terms_of
from ragbed.strategies.types import Turn

_MAX_CONDITIONS, _MAX_FILTER = 200, 6_000  # conditions and characters in the filter of one request
_MAX_STATUS = 200  # characters of a status of Open WebUI
_MAX_IGNORED, _MAX_NAME = 50, 100  # fields that `ragbed.ignored` lists, and characters of each


class MessagePart(RequestModel):
    """A part of a message. Only text is supported."""

    type: str
    text: str | None = None


Content = str | list[MessagePart] | None


class ChatMessage(RequestModel):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None


def _limit_length(where: Any) -> Any:
    """Raise ValueError for a filter that takes long to parse."""
    length, left = 0, [where]
    while left and length <= _MAX_FILTER:  # without recursion, because a client chooses the depth
        one = left.pop()
        length += len(one) if isinstance(one, str) else 1
        left += [*one, *one.values()] if isinstance(one, dict) else one if isinstance(one, list) else []
    if length > _MAX_FILTER:
        raise ValueError(f"more than {_MAX_FILTER:,} characters; use a pattern such as reports/*")
    return where


def _limit_filter(where: tuple[str, ...]) -> tuple[str, ...]:
    if sum(len(terms_of(condition)) for condition in parse_conditions(where)) > _MAX_CONDITIONS:
        raise ValueError(f"more than {_MAX_CONDITIONS} conditions or values; use a pattern such as reports/*")
    return where


ServedFilter = Annotated[Where, AfterValidator(_limit_filter), BeforeValidator(_limit_length)]


class StreamOptions(RequestModel):
    """Options of a stream."""

    include_usage: bool = False


class ChatRequest(RequestModel):
    """A request for a chat completion. Other fields of OpenAI's API are refused if they change what the client gets
    (`client_parameters`). The rest is ignored, and listed in `ragbed.ignored`.

    Attributes:
        model: name of a configuration.
        response_format: a JSON Schema that the answer must fit (`client_parameters.read_format`).
        citations: how the answer lists its sources, in addition to marks such as `[1]` in its text.
        include_reasoning: return the model's reasoning as `reasoning_content`.
        where: filter on the chunks to search, such as `year in (2022, 2023)` or `{"year": ">= 2022"}`.
    """

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=2_000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    response_format: dict[str, Any] | None = None
    citations: Citations | None = None
    include_reasoning: bool = False
    where: ServedFilter = ()


def chat_routes(server: ServerState) -> APIRouter:
    """Return the routes below `/v1` and `/openwebui/v1`."""
    router = APIRouter()

    @router.get("/v1/models")
    @router.get("/openwebui/v1/models", include_in_schema=False)
    async def models() -> dict[str, Any]:
        names = [*server.configurations, *([LIVE] if server.explore else [])]
        return {"object": "list", "data": [model_json(server, name) for name in names]}

    @router.get("/v1/models/{name}")
    async def model(name: str) -> dict[str, Any]:
        if server.requested(name) not in (None, *server.configurations):
            raise http_error(404, f"no configuration {name!r:.100}", "model_not_found")
        return model_json(server, name)

    @router.post("/v1/chat/completions")
    async def complete(given: ChatRequest, request: Request) -> Any:
        return await _complete(server, given, request, openwebui=False)

    @router.post("/openwebui/v1/chat/completions", include_in_schema=False)
    async def complete_openwebui(given: ChatRequest, request: Request) -> Any:
        return await _complete(server, given, request, openwebui=True)

    return router


def model_json(server: ServerState, name: str) -> dict[str, Any]:
    """Return a configuration as a model."""
    about = (f"Assigns each thread one of {', '.join(server.configurations)} at random: the first, or another one with "
             f"probability {server.explore:g}.") if server.requested(name) is None else \
        server.configurations[name].description
    return {"id": name, "object": "model", "created": 0, "owned_by": "ragbed", "name": name, "description": about}


def text_of(content: Content) -> str:
    """Return the text of a message. Raises HTTPException for other parts, such as an image."""
    if content is None or isinstance(content, str):
        return content or ""
    other = next((part.type for part in content if part.text is None and not part.type.endswith("text")), None)
    if other is not None:
        raise http_error(400, f"a message part has the type {other!r:.40}; send text only", "unsupported_part")
    return "".join(part.text or "" for part in content)


def split_history(messages: Sequence[tuple[str, str]]) -> tuple[str, tuple[Turn, ...]]:
    """Split a conversation of roles and texts into its last question and the turns before it.

    Consecutive messages of one role are joined. Raises HTTPException if the last message is not the user's.
    """
    joined: list[tuple[str, str]] = []
    for role, text in messages:
        if joined and joined[-1][0] == role:
            joined[-1] = role, f"{joined[-1][1]}\n\n{text}"
        else:
            joined.append((role, text))
    if not joined or joined[-1][0] != "user":
        raise http_error(400, "the last message must be the user's question", "no_question")
    before = joined[:-1] if joined[0][0] == "user" else joined[1:-1]
    pairs = zip(before[::2], before[1::2], strict=True)
    return joined[-1][1], tuple(Turn(question, strip_sources(answer)) for (_, question), (_, answer) in pairs)


async def start_turn(server: ServerState, request: Request, model: str, messages: Sequence[tuple[str, str]],
                     where: tuple[str, ...], earlier: Sequence[Turn] = (), basis: Sequence[str] = ()) -> ChatTurn:
    """Start the last question of a conversation that the client keeps.

    Args:
        where: filter on the chunks to search.
        earlier: the conversation before `messages`.
        basis: what `earlier` is based on, if the server has rules.

    Raises HTTPException if the question cannot be asked.
    """
    question, turns = split_history(messages)
    turns = (*earlier, *turns)
    owner = request_owner(request)
    thread = digest(owner, turns[0].question if turns else question)
    try:
        return await server.sessions.start(owner, question, server.requested(model), thread, turns, where,
                                           basis)
    except SettingsError as error:
        unknown = server.requested(model) not in (None, *server.configurations)
        status, code = (404, "model_not_found") if unknown else (400, "bad_request")
        raise http_error(status, str(error), code) from error


async def _complete(server: ServerState, given: ChatRequest, request: Request, openwebui: bool) -> Any:
    check_parameters(given.model_extra or {})
    wanted = None
    if given.response_format is not None:
        wanted = await asyncio.to_thread(read_format, given.response_format, "response_format")
    messages = [(one.role, text_of(one.content)) for one in given.messages if one.role in ("user", "assistant")]
    name = server.requested(given.model) or next(iter(server.configurations))
    if messages and is_task(prompt := messages[-1][1]) and name in server.configurations:
        if not server.sessions.limits.task:
            raise http_error(403, "this server does not answer prompts of client programs, such as for titles",
                             "tasks_refused", "messages")
        server.sessions.limits.check_task(prompt)
        turn = await server.sessions.start_call(request_owner(request), name, prompt, task_call(prompt))
    else:
        turn = await start_turn(server, request, given.model, messages, given.where)
    ignored = ignored_names({*(given.model_extra or {}), *(
        f"{one.role} message" for one in given.messages if one.role not in ("user", "assistant"))})
    writer = _ChatWriter(turn, given, server.base_url(request), ignored, openwebui,
                         "annotations" if wanted else given.citations or server.citations)
    if given.stream:
        return event_stream(writer.stream(play_as_json(server.sessions, turn, wanted)))
    return writer.response(await unless_disconnected(request, answer_as_json(server.sessions, turn, wanted)))


def ignored_names(names: Iterable[str]) -> list[str]:
    """Return what `ragbed.ignored` lists: the first names, each cut to a bounded length."""
    return sorted(name[:_MAX_NAME] for name in islice(names, _MAX_IGNORED))


def usage_json(answer: AnswerJson) -> dict[str, Any]:
    """Return an answer's usage in the form of chat completions."""
    used = answer["usage"]
    return {"prompt_tokens": used["prompt_tokens"], "completion_tokens": used["completion_tokens"],
            "total_tokens": used["prompt_tokens"] + used["completion_tokens"],
            "prompt_tokens_details": {"cached_tokens": used["cached_tokens"]}}


def ragbed_json(answer: AnswerJson, ignored: Sequence[str]) -> dict[str, Any]:
    """Return the fields of an answer that OpenAI's API does not have."""
    tools = [{name: step[name] for name in ("tool", "arguments", "found", "failure")}
             for step in answer["steps"] if step["kind"] == "tool"]
    notes = {"cached": "cached" in answer["notes"], "fallback": "fallback" in answer["notes"]}
    return {"outcome": answer["outcome"], "record": answer["record"], "strategy": answer["configuration"],
            "model": answer["model"], **notes,
            "evidence": _evidence_json(answer["sources"]), **({"tools": tools} if tools else {}),
            **({"plain": answer["plain"]} if "plain" in answer else {}),
            "invalid_citations": answer["invalid_citations"], "ignored": list(ignored)}


def _evidence_json(sources: Sequence[AnswerJson]) -> list[dict[str, Any]]:
    return [{name: source[name] for name in ("n", "document", "name", "pages", "start", "end", "cited")}
            for source in sources]


class _ChatWriter:
    """Writes an answer as a chat completion, whole or as a stream."""

    def __init__(self, turn: ChatTurn, given: ChatRequest, base_url: str, ignored: Sequence[str], openwebui: bool,
                 citations: Citations) -> None:
        self._given, self._base_url, self._ignored, self._openwebui = given, base_url, ignored, openwebui
        self._annotated = citations != "markdown" and not openwebui
        self._listed = citations != "annotations" and not openwebui
        self._common = {"id": f"chatcmpl-{turn.record}", "created": int(time.time()),
                        "model": turn.configuration.removeprefix(TASKS)}

    def response(self, answer: Event) -> dict[str, Any]:
        """Return the whole answer. Raises HTTPException if the question failed."""
        if error := answer_error(answer):
            raise error
        text = answer["text"] + (markdown_sources(answer, self._base_url) if self._listed else "")
        message = {"role": "assistant", "refusal": answer.get("refusal"),
                   "content": None if "refusal" in answer else text, "annotations": self._annotations(answer)}
        if self._given.include_reasoning:
            message["reasoning_content"] = answer["reasoning"]
        return {**self._common, "object": "chat.completion",
                "choices": [{"index": 0, "finish_reason": _finish_reason(answer), "message": message,
                             "logprobs": None}],
                "usage": usage_json(answer), "ragbed": ragbed_json(answer, self._ignored)}

    async def stream(self, events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
        """Yield the answer as server-sent events."""
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})
        async for event in events:
            if event["event"] == "text":
                yield self._chunk({"content": event["text"]})
            elif event["event"] == "reasoning" and self._given.include_reasoning:
                yield self._chunk({"reasoning_content": event["text"]})
            elif event["event"] in ("calling", "tool"):
                yield self._step(event)
            elif event["event"] == "answer":
                for one in self._end(event):
                    yield one
        yield b"data: [DONE]\n\n"

    def _step(self, event: Event) -> bytes:
        """Return the beginning or the end of a tool's call: as a status of Open WebUI, or in the field `ragbed`."""
        if self._openwebui:
            words, done = f"{event['tool']} {event['arguments']}"[:_MAX_STATUS], event["event"] == "tool"
            found = event["failure"] or f"{event['characters']:,} characters" if done else ""
            return sse_event({"event": {"type": "status", "data": {
                "description": f"{words}: {found}" if found else words, "done": done}}})
        return self._chunk({}, ragbed={"step": {**event, **(
            {"passages": _evidence_json(event["passages"])} if "passages" in event else {})}})

    def _end(self, answer: Event) -> list[bytes]:
        if error := answer_error(answer):
            return [sse_event(error.detail)]
        events = [self._chunk({"refusal": answer["refusal"]})] if "refusal" in answer else []
        if self._listed and (listed := markdown_sources(answer, self._base_url)):
            events.append(self._chunk({"content": listed}))
        if self._openwebui:
            events += [sse_event({"event": {"type": "source", "data": _openwebui_source(source, self._base_url)}})
                       for source in cited_sources(answer)]
        if cited := self._annotations(answer):
            events.append(self._chunk({"annotations": cited}))
        events.append(self._chunk({}, _finish_reason(answer), ragbed=ragbed_json(answer, self._ignored)))
        if self._given.stream_options and self._given.stream_options.include_usage:
            events.append(sse_event({**self._common, "object": "chat.completion.chunk", "choices": [],
                                     "usage": usage_json(answer)}))
        return events

    def _annotations(self, answer: Event) -> list[dict[str, Any]]:
        return [{"type": one["type"], "url_citation": {name: value for name, value in one.items() if name != "type"}}
                for one in url_citations(answer, self._base_url)] if self._annotated else []

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        return sse_event({**self._common, "object": "chat.completion.chunk", **more,
                          "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]})


def _finish_reason(answer: AnswerJson) -> str:
    return "length" if "cut" in answer["notes"] else "stop"  # `cut`: the last reply reached its token limit


def _openwebui_source(source: AnswerJson, base_url: str) -> dict[str, Any]:
    page = {"page": source["pages"][0]} if source["pages"] else {}
    url = base_url + source["url"]
    return {"source": {"name": source["title"], "url": url}, "document": [source["text"]],
            "metadata": [{"source": url, "name": source["title"], **page}]}
