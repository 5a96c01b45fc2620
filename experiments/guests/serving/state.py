"""What the routes of a server share."""
from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fastapi import HTTPException, Request
from starlette.responses import StreamingResponse

if TYPE_CHECKING:
    from ragbed.documents.types import Chunk, Document
    from ragbed.experiments.guests.serving.configurations import Configuration
    from ragbed.experiments.guests.serving.metrics import Metrics
    from ragbed.experiments.guests.serving.turns import Turns
    from ragbed.retrieval.index import Index

Citations = Literal["annotations", "markdown", "both"]
Result = TypeVar("Result")
LIVE = "live"
# Outcomes that are no answer, as statuses: the model's server failed, took too long, or was given too much.
FAILED: Mapping[str, int] = {"error": 502, "timeout": 504, "budget": 503, "too_long": 400}


@dataclass(frozen=True)
class Serving:
    """A server at work.

    Attributes:
        url: where it is reached, as links in answers have it; empty for as each request has it.
        citations: how answers name their sources where the request does not say.
        explore: the share of threads that another than the first configuration answers; above 0 the model `live` is
            served too, which stands for whichever a thread is given.
    """

    configurations: Mapping[str, Configuration]
    turns: Turns
    metrics: Metrics
    url: str = ""
    citations: Citations = "annotations"
    explore: float = 0.0

    def wanted(self, model: str) -> str | None:
        """Return the configuration that a client's model names; None where the experiment decides."""
        return None if model == LIVE and self.explore else model

    def find(self, document: str, chunk: str | None = None) -> tuple[Index, Document, Chunk | None] | None:
        """Return a document with the index that has it, and its chunk where one is named; None where there is none."""
        for index in dict.fromkeys(one.assistant.index for one in self.configurations.values()):
            try:
                passage = index.chunk(chunk) if chunk else None
                if passage is None or passage.document == document:
                    return index, index.document(document), passage
            except KeyError:
                continue
        return None

    def base(self, request: Request) -> str:
        """Return the URL before the paths of links."""
        return self.url or str(request.base_url).rstrip("/")


def owner_of(request: Request) -> str:
    """Return the name of the key that a request came with; empty where none is needed."""
    return str(getattr(request.state, "owner", ""))


def error_json(message: str, code: str | None = None, param: str | None = None,
               kind: str = "invalid_request_error") -> dict[str, Any]:
    """Return an error as OpenAI's API has it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refused(status: int, message: str, code: str) -> HTTPException:
    """Return an error in the form of OpenAI's API."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return HTTPException(status, error_json(message, code, kind=kind))


def failed(answer: Mapping[str, Any]) -> HTTPException | None:
    """Return the error that stands in the place of an answer; None where there is an answer."""
    outcome = answer["outcome"]
    return refused(FAILED[outcome], answer["text"], outcome) if outcome in FAILED else None


def frame(value: Any, event: str = "") -> bytes:
    """Return a server-sent event, under a name where it has one."""
    named = f"event: {event}\n" if event else ""
    return f"{named}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def event_stream(frames: AsyncIterator[bytes] | Iterator[bytes]) -> StreamingResponse:
    """Return server-sent events as a response, which no proxy keeps back."""
    return StreamingResponse(frames, media_type="text/event-stream",
                             headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def unless_gone(request: Request, work: Awaitable[Result]) -> Result:
    """Return the result of work that ends as soon as its client has gone away."""
    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise refused(499, "the client went away", "client_closed")
        return task.result()
    finally:
        for one in (task, leaving):
            one.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)
