"""Helpers of all routes: the server's state, errors in OpenAI's form, and server-sent events."""
from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fastapi import HTTPException, Request
from pydantic import BaseModel, model_validator
from starlette.responses import StreamingResponse

from ragbed.documents.types import Chunk
from ragbed.experiments.guests.operations.readiness import FailedCalls
from ragbed.experiments.guests.serving.mcp_tools import ServedTools

if TYPE_CHECKING:
    from ragbed.agents.client import ModelClient
    from ragbed.documents.types import Document
    from ragbed.experiments.guests.operations.prometheus import Metrics
    from ragbed.experiments.guests.serving.configurations import Configuration
    from ragbed.experiments.guests.serving.page_images import PageImages
    from ragbed.experiments.guests.serving.sessions import ChatSessions
    from ragbed.retrieval.index import Index

Citations = Literal["annotations", "markdown", "both"]
Result = TypeVar("Result")
_PLACE = re.compile(r"(html|plain):(\d{1,9})-(\d{1,9})")
LIVE = "live"  # clients that request this model get the configuration assigned to their thread
FAILED_STATUS: Mapping[str, int] = {"error": 502, "timeout": 504, "budget": 503, "too_long": 400}  # status by outcome


class RequestModel(BaseModel):
    """A part of a client's request. A field that is null counts as absent."""

    @model_validator(mode="before")
    @classmethod
    def drop_nulls(cls, given: Any) -> Any:
        """Return the fields that are not null."""
        return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given


@dataclass(frozen=True)
class PageSettings:
    """What the chat page shows before the first question."""

    title: str = "Ask the documents"
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServerState:
    """A running server.

    Attributes:
        url: base URL of links in answers; if empty, the URL of each request.
        citations: how answers list their sources by default.
        tools: tools of agents that MCP clients may call.
        owner: the owner whose rights an MCP client over stdio has.
        explore: share of threads assigned to configurations other than the first. If it is above 0, clients can request
            the model `live`.
        page: title and example questions of the chat page.
        failed_calls: counts the failed calls of each model.
    """

    configurations: Mapping[str, Configuration]
    sessions: ChatSessions
    metrics: Metrics
    images: PageImages
    url: str = ""
    citations: Citations = "annotations"
    explore: float = 0.0
    tools: ServedTools = field(default_factory=lambda: ServedTools({}))
    owner: str = ""
    page: PageSettings = PageSettings()
    failed_calls: FailedCalls = field(default_factory=FailedCalls)

    @property
    def clients(self) -> list[ModelClient]:
        """Return the clients of the models that answer, and of those that answer instead of them."""
        return [*(one.assistant.client for one in self.configurations.values()), *self.sessions.alternatives.clients]

    def requested(self, model: str) -> str | None:
        """Return the configuration that a client's model names; None if the A/B test assigns one."""
        return None if model == LIVE and self.explore else model

    def narrow(self, name: str, owner: str) -> Configuration:
        """Return a configuration over the documents that an owner may read."""
        return self.sessions.access.narrow(self.configurations[name], owner)

    def find(self, document: str, chunk: str | None, owner: str) -> tuple[Index, Document, Chunk | None] | None:
        """Return a document with its index, and the chunk if its id is given; None if no index holds the document, or
        the owner may not read it."""
        for whole in dict.fromkeys(one.assistant.index for one in self.configurations.values()):
            index = self.sessions.access.view(whole, owner)
            try:
                passage = _find_chunk(index, document, chunk) if chunk else None
                if passage is None or passage.document == document:
                    return index, index.document(document), passage
            except KeyError:
                continue
        return None

    def base_url(self, request: Request) -> str:
        """Return the URL that links start with."""
        return self.url or str(request.base_url).rstrip("/")


def _find_chunk(index: Index, document: str, name: str) -> Chunk:
    """Return a chunk of the index by its id, or a span of the document by its place, such as `plain:0-90`."""
    place = _PLACE.fullmatch(name)
    return Chunk.of(index.document(document), "html" if place[1] == "html" else "plain", int(place[2]),
                    int(place[3])) if place else index.chunk(name)


def request_owner(request: Request) -> str:
    """Return the owner of the key that a request was sent with; empty if the server needs no key."""
    return str(getattr(request.state, "owner", ""))


def error_json(message: str, code: str | None = None, param: str | None = None,
               kind: str = "invalid_request_error") -> dict[str, Any]:
    """Return an error in the form of OpenAI's API."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def http_error(status: int, message: str, code: str, param: str | None = None) -> HTTPException:
    """Return an HTTP error in the form of OpenAI's API."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return HTTPException(status, error_json(message, code, param, kind))


def retry_later(message: str, code: str, seconds: float) -> HTTPException:
    """Return the error for too many requests, with the seconds after which the client may send the next."""
    error = http_error(429, message, code)
    error.headers = {"Retry-After": str(math.ceil(seconds))}
    return error


def answer_error(answer: Mapping[str, Any]) -> HTTPException | None:
    """Return the HTTP error for a failed question; None for an answer or a refusal."""
    outcome = answer["outcome"]
    return http_error(FAILED_STATUS[outcome], answer["text"], outcome) if outcome in FAILED_STATUS else None


def sse_event(value: Any, name: str = "") -> bytes:
    """Return a server-sent event with JSON data."""
    prefix = f"event: {name}\n" if name else ""
    return f"{prefix}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def event_stream(events: AsyncIterator[bytes] | Iterator[bytes]) -> StreamingResponse:
    """Return server-sent events as a response that proxies do not buffer."""
    return StreamingResponse(events, media_type="text/event-stream",
                             headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def unless_disconnected(request: Request, work: Awaitable[Result]) -> Result:
    """Await work and return its result, but cancel it if the client disconnects."""
    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(disconnected())
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise http_error(499, "the client disconnected", "client_closed")
        return task.result()
    finally:
        for one in (task, leaving):
            one.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)
