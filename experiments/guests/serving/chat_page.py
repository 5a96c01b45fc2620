"""Routes of the chat page: list configurations, ask questions with all their events, list threads, and store feedback.
"""
from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field
from starlette.responses import FileResponse, StreamingResponse

from ragbed.documents.errors import SettingsError
from ragbed.experiments.formatting import column_title
from ragbed.experiments.guests.serving.chat import ServedFilter
from ragbed.experiments.guests.serving.state import (
    RequestModel,
    ServerState,
    event_stream,
    http_error,
    request_owner,
    sse_event,
)

ASSETS = Path(__file__).parent / "assets"


class PageQuestion(RequestModel):
    """The next question of a thread, or the first of a new thread. `where` is a filter on the chunks to search."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    thread: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    configuration: str | None = None
    where: ServedFilter = ()


class ThreadTitle(RequestModel):
    """A new title of a thread."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=200)


class Feedback(RequestModel):
    """A user's feedback on an answer."""

    model_config = ConfigDict(extra="forbid")

    record: str = Field(max_length=100)
    thumb: Literal["up", "down"] | None = None
    comment: str = Field(default="", max_length=10_000)


def page_routes(server: ServerState) -> APIRouter:
    """Return the page and its routes below `/api`."""
    router = APIRouter()
    router.include_router(thread_routes(server))

    @router.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(ASSETS / "index.html")

    @router.get("/api/configurations")
    async def configurations() -> dict[str, Any]:
        return {**asdict(server.page), "explore": server.explore, "configurations": [
            {"name": name, "description": one.parts,
             "measured": one.measured and {**asdict(one.measured), "words": column_title(one.measured.metric)}}
            for name, one in server.configurations.items()]}

    @router.post("/api/ask")
    async def ask(given: PageQuestion, request: Request) -> StreamingResponse:
        try:
            turn = await server.sessions.start(request_owner(request), given.question, given.configuration,
                                               given.thread, where=given.where)
        except SettingsError as error:
            status = 404 if given.question.strip() and not str(error).startswith("where:") else 400
            raise http_error(status, str(error), "not_asked") from error
        hidden = "configuration" if turn.probability < 1 else ""  # of an A/B test, until the user rates the answer
        return event_stream(sse_event({name: value for name, value in event.items() if name != hidden}, event["event"])
                            async for event in server.sessions.play(turn))

    return router


def thread_routes(server: ServerState) -> APIRouter:
    """Return the routes of earlier threads, and of feedback on their answers."""
    router, traffic = APIRouter(), server.sessions.traffic

    @router.get("/api/threads")
    async def threads(request: Request) -> dict[str, Any]:
        return {"threads": await traffic.threads(request_owner(request))}

    @router.get("/api/threads/{thread}")
    async def thread(thread: str, request: Request) -> dict[str, Any]:
        shown = await server.sessions.thread(thread, request_owner(request))
        if shown is None:
            raise http_error(404, "no such thread", "not_found")
        return shown

    @router.patch("/api/threads/{thread}")
    async def rename(thread: str, given: ThreadTitle, request: Request) -> dict[str, Any]:
        if not await traffic.rename(thread, request_owner(request), given.title):
            raise http_error(404, "no such thread", "not_found")
        return {"title": given.title}

    @router.post("/api/feedback")
    async def feedback(given: Feedback, request: Request) -> dict[str, Any]:
        name = await traffic.feedback(given.record, request_owner(request), given.thumb, given.comment)
        if name is None:
            raise http_error(404, "no such answer", "not_found")
        return {"kept": True, "configuration": name if given.thumb else None}

    return router
