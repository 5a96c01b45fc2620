"""The page's own routes: what can be asked, asking with every step told, threads and feedback."""
from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import FileResponse, StreamingResponse

from ragbed.documents.errors import SettingsError
from ragbed.experiments.formatting import column_title
from ragbed.experiments.guests.serving.state import Serving, event_stream, frame, owner_of, refused

ASSETS = Path(__file__).parent / "assets"


class PageQuestion(BaseModel):
    """A question of the page's: the next of a thread, or the first of a new one."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    thread: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    configuration: str | None = None


class Feedback(BaseModel):
    """What somebody thinks of an answer."""

    model_config = ConfigDict(extra="forbid")

    record: str = Field(max_length=100)
    thumb: Literal["up", "down"] | None = None
    comment: str = Field(default="", max_length=10_000)


def page_routes(serving: Serving) -> APIRouter:
    """Return the routes of the page, below `/api`."""
    router, traffic = APIRouter(), serving.turns.traffic

    @router.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(ASSETS / "index.html")

    @router.get("/api/configurations")
    async def configurations() -> dict[str, Any]:
        return {"explore": serving.explore, "configurations": [
            {"name": name, "description": one.made_of,
             "measured": one.measured and {**asdict(one.measured), "words": column_title(one.measured.metric)}}
            for name, one in serving.configurations.items()]}

    @router.post("/api/ask")
    async def ask(given: PageQuestion, request: Request) -> StreamingResponse:
        try:
            asked = await serving.turns.begin(owner_of(request), given.question, given.configuration, given.thread)
        except SettingsError as error:
            raise refused(404 if given.question.strip() else 400, str(error), "not_asked") from error
        return event_stream(frame(event, event["event"]) async for event in serving.turns.play(asked))

    @router.get("/api/threads")
    async def threads(request: Request) -> dict[str, Any]:
        return {"threads": await traffic.threads(owner_of(request))}

    @router.get("/api/threads/{thread}")
    async def thread(thread: str, request: Request) -> dict[str, Any]:
        shown = await traffic.thread(thread, owner_of(request))
        if shown is None:
            raise refused(404, "no such thread", "not_found")
        return shown

    @router.post("/api/feedback")
    async def feedback(given: Feedback, request: Request) -> dict[str, Any]:
        if not await traffic.feedback(given.record, owner_of(request), given.thumb, given.comment):
            raise refused(404, "no such answer", "not_found")
        return {"kept": True}

    return router
