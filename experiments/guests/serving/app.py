"""The server's application, and what it has open."""
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from ragbed.agents.checkpoint import open_checkpointer
from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.serving.chat import chat_routes
from ragbed.experiments.guests.serving.configurations import Described, open_configurations, renew
from ragbed.experiments.guests.serving.documents import document_routes
from ragbed.experiments.guests.serving.gate import GateSettings, Queue, RequestGate
from ragbed.experiments.guests.serving.keys import session_routes
from ragbed.experiments.guests.serving.metrics import Counted, Metrics, metrics_routes
from ragbed.experiments.guests.serving.page import ASSETS, page_routes
from ragbed.experiments.guests.serving.responses import response_routes
from ragbed.experiments.guests.serving.state import Citations, Serving, error_json
from ragbed.experiments.guests.serving.telemetry import open_telemetry
from ragbed.experiments.guests.serving.traffic import Traffic
from ragbed.experiments.guests.serving.turns import Turns


@contextlib.asynccontextmanager
async def open_serving(described: Sequence[Described], traffic: Path, threads: str | None = None, *, url: str = "",
                       citations: Citations = "annotations",
                       explore: float = 0.0) -> AsyncIterator[Serving]:
    """Open what a server needs, closed at the end; the arguments are the options of `ragbed serve`. Raises UserError
    where an index, a model, a strategy or a folder cannot be opened."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            traffic.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"--traffic {traffic}: {error.strerror}; name another folder") from error
        checkpointer = await stack.enter_async_context(open_checkpointer(threads or str(traffic / "threads.sqlite")))
        configurations = await stack.enter_async_context(open_configurations(described, checkpointer))
        kept = await stack.enter_async_context(Traffic.open(traffic, list(configurations), explore))
        metrics, telemetry = Metrics(), stack.enter_context(open_telemetry())
        turns = Turns(configurations, kept, [metrics, *telemetry])
        stack.push_async_callback(turns.aclose)
        renewing = asyncio.create_task(renew(configurations, checkpointer))
        stack.callback(renewing.cancel)
        yield Serving(configurations, turns, metrics, url.rstrip("/"), citations, explore)


def serving_app(serving: Serving, settings: GateSettings | None = None) -> FastAPI:
    """Return the application that serves these configurations, behind its gate."""
    settings = settings or GateSettings()
    queue = Queue(settings.concurrency, settings.queue)
    app = FastAPI(title="ragbed", docs_url=None, redoc_url=None)
    serving.metrics.follow(queue)
    app.add_middleware(RequestGate, settings=settings, queue=queue)
    app.add_middleware(Counted, requests=serving.metrics.requests)
    app.include_router(session_routes(settings.keys))
    app.include_router(metrics_routes(serving.metrics))
    app.include_router(chat_routes(serving))
    app.include_router(response_routes(serving))
    app.include_router(page_routes(serving))
    app.include_router(document_routes(serving))
    if find_spec("mcp") is not None:
        from ragbed.experiments.guests.serving.mcp_server import add_mcp

        add_mcp(app, serving)
    app.mount("/assets", StaticFiles(directory=ASSETS))

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        detail = error.detail if isinstance(error.detail, dict) else error_json(error.detail)
        return JSONResponse(detail, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def unfit(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:]))
        return JSONResponse(error_json(f"{where}: {first['msg']}"[:500], "invalid_request", where[:100] or None), 422)

    return app
