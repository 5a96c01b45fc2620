"""Serve the review page on loopback, under a secret path."""
from __future__ import annotations

import secrets
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ragbed.documents.errors import SettingsError
from ragbed.experiments.formatting import visible
from ragbed.experiments.guests.review.item_view import item_view
from ragbed.experiments.guests.review.items import ReviewSet
from ragbed.experiments.guests.review.reviews import REASONS, Review, Reviewer, ReviewFile

_Given = TypeVar("_Given", bound=BaseModel)
_ASSETS = Path(__file__).parent / "assets"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                               "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                               "require-trusted-types-for 'script'; trusted-types 'none'",
    "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff"}


class DecisionRequest(BaseModel):
    """A review sent by the page. `seen` is the number of the reviewer's latest review of the item, 0 for none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reviewer: Reviewer
    item: str
    seen: int = Field(ge=0)
    review: Review


class UndoRequest(BaseModel):
    """The reviewer whose latest review to undo."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reviewer: Reviewer


class _ReviewPage:
    """Answers the page's requests. A reviewer never sees the reviews of others."""

    def __init__(self, reviewed: ReviewSet, file: ReviewFile, sample: int | None) -> None:
        self._set, self._file = reviewed, file
        self._ids = list(reviewed.items)[:sample]

    async def index(self, request: Request) -> Response:
        """List the items by id, with this reviewer's decisions."""
        own = self._file.latest().get(request.query_params.get("reviewer", "").strip(), {})
        return JSONResponse({
            "name": visible(self._set.name), "reasons": dict(REASONS),
            "items": [{"id": id, "decision": own[id][1].decision if id in own else ""} for id in self._ids]})

    async def item(self, request: Request) -> Response:
        """Return an item by its place, with this reviewer's latest review."""
        place = request.path_params["place"]
        if place >= len(self._ids):
            raise HTTPException(404, "no such item")
        item = self._set.items[self._ids[place]]
        reviewer = request.query_params.get("reviewer", "").strip()
        number, review = self._file.latest().get(reviewer, {}).get(item.id, (0, Review()))
        return JSONResponse({**item_view(item, self._set.documents), "id": item.id, "review": review.model_dump(),
                             "seen": number or self._file.last_number(reviewer, item.id)})

    async def decide(self, request: Request) -> Response:
        """Store a review. Return status 409 if the reviewer has meanwhile decided on the item in another window."""
        given = await _read(request, DecisionRequest)
        item = self._set.items.get(given.item)
        if item is None:
            raise HTTPException(404, "no such item")
        if item.options and given.review.answers and not set(given.review.answers) <= set(item.options):
            raise HTTPException(422, "the answer has to be one of the options")
        if max(given.review.evidence, default=0) > len(item.made.get("candidates", ())):
            raise HTTPException(422, "the evidence has to be one of the candidates")
        if not self._file.put(given.reviewer, given.item, given.seen, given.review):
            raise HTTPException(409, "it was reviewed in another window under this name")
        return JSONResponse({"seen": self._file.last_number(given.reviewer, given.item)})

    async def undo(self, request: Request) -> Response:
        """Undo this reviewer's latest review. Returns the item's place, or null if there is none."""
        given = await _read(request, UndoRequest)
        item = self._file.undo(given.reviewer)
        return JSONResponse({"place": self._ids.index(item) if item in self._ids else None, "undone": item is not None})


async def _read(request: Request, kind: type[_Given]) -> _Given:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise HTTPException(415, "expected JSON")
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        raise HTTPException(422, error.errors(include_url=False)[0]["msg"]) from error


def review_app(reviewed: ReviewSet, file: ReviewFile, token: str, sample: int | None = None) -> Starlette:
    """Return the application. All paths begin with the secret token, and the Host of a request must be this machine."""
    async def add_headers(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call(request)
        response.headers.update(_HEADERS)
        return response

    async def error_response(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return JSONResponse({"error": error.detail}, error.status_code)

    page = _ReviewPage(reviewed, file, sample)
    routes: list[Any] = [
        Route("/items", page.index), Route("/items/{place:int}", page.item),
        Route("/reviews", page.decide, methods=["POST"]), Route("/undo", page.undo, methods=["POST"]),
        Mount("/", StaticFiles(directory=_ASSETS, html=True))]
    return Starlette(routes=[Mount(f"/{token}", routes=routes)], exception_handlers={HTTPException: error_response},
                     middleware=[Middleware(BaseHTTPMiddleware, dispatch=add_headers),
                                 Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"],
                                            www_redirect=False)])


def serve(reviewed: ReviewSet, sample: int | None, port: int, announce: Callable[[str], None]) -> None:
    """Serve the page until the process is interrupted; port 0 takes any free one. Raises SettingsError if the port is
    in use. Raises RunError if the reviews cannot be opened."""
    file = ReviewFile(reviewed.file, reviewed.items)
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise SettingsError(f"--port {port}: {error.strerror}; name another port, or leave out --port") from error
    token = secrets.token_urlsafe(16)
    config = uvicorn.Config(review_app(reviewed, file, token, sample), log_level="warning", access_log=False,
                            lifespan="off", server_header=False, timeout_graceful_shutdown=1)
    try:
        announce(f"http://127.0.0.1:{listening.getsockname()[1]}/{token}/")
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        listening.close()
        file.close()
