"""OpenAI's chat completions, and the same for Open WebUI, whose clients show passages of their own kind."""
from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.guests.serving.served import (
    Served,
    cited_sources,
    markdown_sources,
    url_citations,
    without_sources,
)
from ragbed.experiments.guests.serving.state import (
    LIVE,
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
from ragbed.strategies.types import Failure, Turn

_TASK = "### Task:"  # how Open WebUI begins what it asks for itself: titles, tags, follow-up questions


class MessagePart(BaseModel):
    """A part of a message; only text is read."""

    type: str
    text: str | None = None


Content = str | list[MessagePart] | None


class ChatMessage(BaseModel):
    """A message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None


class StreamOptions(BaseModel):
    """What a stream brings besides."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """A request for a chat completion. What else OpenAI's API knows is ignored, and named in `ragbed.ignored`.

    Attributes:
        model: the name of a configuration.
        citations: how the answer names its sources besides the marks such as `[1]` in its text.
        include_reasoning: whether what the model thinks comes too, as `reasoning_content`.
    """

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=2_000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    citations: Citations | None = None
    include_reasoning: bool = False


def chat_routes(serving: Serving) -> APIRouter:
    """Return the routes below `/v1` and `/openwebui/v1`."""
    router = APIRouter()

    @router.get("/v1/models")
    @router.get("/openwebui/v1/models", include_in_schema=False)
    async def models() -> dict[str, Any]:
        names = [*serving.configurations, *([LIVE] if serving.explore else [])]
        return {"object": "list", "data": [model_json(serving, name) for name in names]}

    @router.get("/v1/models/{name}")
    async def model(name: str) -> dict[str, Any]:
        if serving.wanted(name) not in (None, *serving.configurations):
            raise refused(404, f"no configuration {name!r:.100}", "model_not_found")
        return model_json(serving, name)

    @router.post("/v1/chat/completions")
    async def complete(given: ChatRequest, request: Request) -> Any:
        return await _complete(serving, given, request, openwebui=False)

    @router.post("/openwebui/v1/chat/completions", include_in_schema=False)
    async def complete_openwebui(given: ChatRequest, request: Request) -> Any:
        return await _complete(serving, given, request, openwebui=True)

    return router


def model_json(serving: Serving, name: str) -> dict[str, Any]:
    """Return a configuration as a model."""
    said = (f"One of {', '.join(serving.configurations)}, drawn at random for each thread: the first, but for a share "
            f"of {serving.explore:g}.") if serving.wanted(name) is None else serving.configurations[name].description
    return {"id": name, "object": "model", "created": 0, "owned_by": "ragbed", "name": name, "description": said}


def text_of(content: Content) -> str:
    """Return the text of a message; raise a refusal where it is anything else, such as a picture."""
    if content is None or isinstance(content, str):
        return content or ""
    other = next((part.type for part in content if part.text is None), None)
    if other is not None:
        raise refused(400, f"a message has a part of the type {other!r:.40}: only text is read", "unsupported_part")
    return "".join(part.text or "" for part in content)


def history_of(turns: Sequence[tuple[str, str]]) -> tuple[str, tuple[Turn, ...]]:
    """Return the last question of a conversation of roles and texts, and the turns before it; several messages in a row
    by one are one. Raises a refusal where the last is none of the user's."""
    joined: list[tuple[str, str]] = []
    for role, text in turns:
        if joined and joined[-1][0] == role:
            joined[-1] = role, f"{joined[-1][1]}\n\n{text}"
        else:
            joined.append((role, text))
    if not joined or joined[-1][0] != "user":
        raise refused(400, "the last message has to be one of the user's: it is the question", "no_question")
    before = joined[:-1] if joined[0][0] == "user" else joined[1:-1]
    pairs = zip(before[::2], before[1::2], strict=True)
    return joined[-1][1], tuple(Turn(question, without_sources(answer)) for (_, question), (_, answer) in pairs)


async def begin(serving: Serving, request: Request, model: str, talk: Sequence[tuple[str, str]],
                before: Sequence[Turn] = ()) -> Asked:
    """Begin the last question of a conversation that the client keeps, `before` its first part; refuse what cannot be
    asked."""
    question, turns = history_of(talk)
    turns = (*before, *turns)
    owner = owner_of(request)
    thread = digest(owner, turns[0].question if turns else question)
    try:
        return await serving.turns.begin(owner, question, serving.wanted(model), thread, turns)
    except SettingsError as error:
        missing = serving.wanted(model) not in (None, *serving.configurations)
        raise refused(404 if missing else 400, str(error), "model_not_found" if missing else "bad_request") from error


async def _complete(serving: Serving, given: ChatRequest, request: Request, openwebui: bool) -> Any:
    talk = [(one.role, text_of(one.content)) for one in given.messages if one.role in ("user", "assistant")]
    name = serving.wanted(given.model) or next(iter(serving.configurations))
    if talk and talk[-1][1].lstrip().startswith(_TASK) and name in serving.configurations:
        reply = await unless_gone(request, serving.turns.aside(name, talk[-1][1]))
        if isinstance(reply, Failure):
            raise refused(502, reply.message, "error")
        return _aside(given, reply.text)
    asked = await begin(serving, request, given.model, talk)
    ignored = sorted({*(given.model_extra or {}), *(f"{one.role} message" for one in given.messages
                                                    if one.role not in ("user", "assistant"))})
    form = _Form(asked, given, serving.base(request), ignored, openwebui, serving.citations)
    if given.stream:
        return event_stream(form.frames(serving.turns.play(asked)))
    return form.whole(await unless_gone(request, serving.turns.answer(asked)))


def _aside(given: ChatRequest, reply: str) -> Any:
    """What a client asks the model for itself, such as a title: without a search, a record, or our prompts."""
    form = {"id": "chatcmpl-aside", "created": int(time.time()), "model": given.model}
    if given.stream:
        chunk = {**form, "object": "chat.completion.chunk",
                 "choices": [{"index": 0, "delta": {"role": "assistant", "content": reply}, "finish_reason": "stop"}]}
        return event_stream(iter([frame(chunk), b"data: [DONE]\n\n"]))
    message = {"role": "assistant", "content": reply, "refusal": None}
    return {**form, "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}


def usage_json(answer: Served) -> dict[str, Any]:
    """Return what an answer used, as chat completions have it."""
    used = answer["usage"]
    return {"prompt_tokens": used["prompt_tokens"], "completion_tokens": used["completion_tokens"],
            "total_tokens": used["prompt_tokens"] + used["completion_tokens"],
            "prompt_tokens_details": {"cached_tokens": used["cached_tokens"]}}


def ragbed_json(answer: Served, ignored: Sequence[str]) -> dict[str, Any]:
    """Return what only ragbed says of an answer."""
    evidence = [{name: source[name] for name in ("n", "document", "name", "pages", "start", "end", "cited")}
                for source in answer["sources"]]
    return {"outcome": answer["outcome"], "record": answer["record"], "strategy": answer["configuration"],
            "evidence": evidence, "invalid_citations": answer["invalid_citations"], "ignored": list(ignored)}


def _reason(answer: Served) -> str:
    """Why the answer ends: it was cut where its last reply was."""
    return "length" if "cut" in answer["notes"] else "stop"


class _Form:
    """An answer as chat completions have it, in one piece or as a stream."""

    def __init__(self, asked: Asked, given: ChatRequest, base: str, ignored: Sequence[str], openwebui: bool,
                 usual: Citations) -> None:
        self._given, self._base, self._ignored, self._openwebui = given, base, ignored, openwebui
        citations = given.citations or usual
        self._annotated = citations != "markdown" and not openwebui
        self._listed = citations != "annotations" and not openwebui
        self._common = {"id": f"chatcmpl-{asked.record}", "created": int(time.time()), "model": asked.configuration}

    def whole(self, answer: Event) -> dict[str, Any]:
        """Return the answer in one piece; refuse one that failed."""
        if error := failed(answer):
            raise error
        text = answer["text"] + (markdown_sources(answer, self._base) if self._listed else "")
        message = {"role": "assistant", "refusal": None, "content": text, "annotations": self._annotations(answer)}
        if self._given.include_reasoning:
            message["reasoning_content"] = answer["reasoning"]
        return {**self._common, "object": "chat.completion",
                "choices": [{"index": 0, "finish_reason": _reason(answer), "message": message, "logprobs": None}],
                "usage": usage_json(answer), "ragbed": ragbed_json(answer, self._ignored)}

    async def frames(self, events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
        """Yield the stream of an answer."""
        yield self._chunk({"role": "assistant", "content": "", "refusal": None})
        async for event in events:
            if event["event"] == "text":
                yield self._chunk({"content": event["text"]})
            elif event["event"] == "reasoning" and self._given.include_reasoning:
                yield self._chunk({"reasoning_content": event["text"]})
            elif event["event"] == "answer":
                for one in self._end(event):
                    yield one
        yield b"data: [DONE]\n\n"

    def _end(self, answer: Event) -> list[bytes]:
        if error := failed(answer):
            return [frame(error.detail)]
        frames = []
        if self._listed and (listed := markdown_sources(answer, self._base)):
            frames.append(self._chunk({"content": listed}))
        if self._openwebui:
            frames += [frame({"event": {"type": "source", "data": _openwebui_source(source, self._base)}})
                       for source in cited_sources(answer)]
        if cited := self._annotations(answer):
            frames.append(self._chunk({"annotations": cited}))
        frames.append(self._chunk({}, _reason(answer), ragbed=ragbed_json(answer, self._ignored)))
        if self._given.stream_options and self._given.stream_options.include_usage:
            frames.append(frame({**self._common, "object": "chat.completion.chunk", "choices": [],
                                  "usage": usage_json(answer)}))
        return frames

    def _annotations(self, answer: Event) -> list[dict[str, Any]]:
        """The citations with their fields in an object of their own."""
        return [{"type": one["type"], "url_citation": {name: value for name, value in one.items() if name != "type"}}
                for one in url_citations(answer, self._base)] if self._annotated else []

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        return frame({**self._common, "object": "chat.completion.chunk", **more,
                       "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]})


def _openwebui_source(source: Served, base: str) -> dict[str, Any]:
    page = {"page": source["pages"][0]} if source["pages"] else {}
    named = {"source": base + source["url"], "name": source["title"], **page}
    return {"source": {"name": source["title"], "url": base + source["url"]}, "document": [source["text"]],
            "metadata": [named]}
