"""Open, assemble and run the server of `ragbed serve`."""
from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import math
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from ragbed.agents.checkpoint import open_checkpointer
from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.analysis.model_notes import note_models
from ragbed.experiments.guests.access.access import Access, fields_of_filters
from ragbed.experiments.guests.operations.edge import EdgeSettings, ProxiedRequests, add_cors, route_path
from ragbed.experiments.guests.operations.key_reload import reload_on_hangup
from ragbed.experiments.guests.operations.prometheus import Metrics, metrics_routes
from ragbed.experiments.guests.operations.readiness import FailedCalls, ready_routes
from ragbed.experiments.guests.operations.request_log import RequestLog, note_answer
from ragbed.experiments.guests.operations.server_settings import ServerSettings
from ragbed.experiments.guests.operations.spending import OverSpent
from ragbed.experiments.guests.operations.telemetry import is_tracing, open_telemetry
from ragbed.experiments.guests.serving.api_keys import Keys, session_routes
from ragbed.experiments.guests.serving.chat import chat_routes
from ragbed.experiments.guests.serving.chat_page import ASSETS, page_routes
from ragbed.experiments.guests.serving.configurations import (
    ConfigurationSettings,
    open_configurations,
    read_target,
    reload_indexes,
)
from ragbed.experiments.guests.serving.connections import Connections, GuardedServer
from ragbed.experiments.guests.serving.documents import document_routes
from ragbed.experiments.guests.serving.forget_routes import Forgetter, forget_routes
from ragbed.experiments.guests.serving.mcp_tools import ServedTools, open_served_tools
from ragbed.experiments.guests.serving.middleware import GateSettings, Queue, RequestGate
from ragbed.experiments.guests.serving.page_images import PageImages
from ragbed.experiments.guests.serving.responses import response_routes
from ragbed.experiments.guests.serving.sessions import ChatSessions
from ragbed.experiments.guests.serving.size_limits import TooLong
from ragbed.experiments.guests.serving.state import ServerState, error_json
from ragbed.experiments.guests.serving.supervisor import SharedNumbers, Worker, supervise
from ragbed.experiments.guests.traffic.traffic import Traffic
from ragbed.experiments.terminal.display import note, say


@contextlib.asynccontextmanager
async def open_server(configured: Sequence[ConfigurationSettings], settings: ServerSettings,
                      access: Access | None = None, worker: Worker | None = None) -> AsyncIterator[ServerState]:
    """Open configurations, traffic and threads, and close them at the end. Raises UserError if an index, model,
    strategy, folder or database cannot be opened."""
    traffic, store = settings.traffic, settings.store
    async with contextlib.AsyncExitStack() as stack:
        if store == traffic:
            try:
                traffic.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SettingsError(f"--traffic {traffic}: {error.strerror}; name another folder") from error
        checkpointer = await stack.enter_async_context(open_checkpointer(
            settings.threads or traffic / "threads.sqlite"))
        configurations = await stack.enter_async_context(open_configurations(configured, checkpointer))
        turns = await stack.enter_async_context(Traffic.open(
            store, list(configurations), settings.explore, (worker.number, worker.count) if worker else None))
        metrics, telemetry = Metrics(), stack.enter_context(open_telemetry())
        failed_calls = FailedCalls(worker.numbers if worker else None)
        sessions = ChatSessions(
            configurations, turns, [metrics, note_answer(settings.log_texts), failed_calls, *telemetry],
            settings.sizes, access, settings.spend)
        await sessions.alternatives.open(stack, configured, settings.answering)
        stack.push_async_callback(sessions.aclose)
        reloading = asyncio.create_task(reload_indexes(configurations, checkpointer))
        stack.callback(reloading.cancel)
        tools = await stack.enter_async_context(open_served_tools()) if find_spec("mcp") else ServedTools({})
        images = PageImages()
        stack.callback(images.close)
        turns.clear_caches += images.clear, sessions.alternatives.cache.clear
        if settings.keep_days is not None and not (worker and worker.number):
            forgetting = Forgetter(turns, checkpointer).forget_hourly(settings.keep_days)
            stack.callback(asyncio.create_task(forgetting).cancel)
        yield ServerState(configurations, sessions, metrics, images, settings.url.rstrip("/"), settings.citations,
                          settings.explore, tools, settings.owner, settings.page, failed_calls)


def access_of(settings: Sequence[ConfigurationSettings], allow: Sequence[str], keys: Keys) -> Access:
    """Return the rules of a server. Raises SettingsError if one is malformed."""
    fields = fields_of_filters(condition for one in settings for condition in one.settings.where)
    return Access([*allow, *(rule for one in settings for rule in one.allow)], keys.claims, fields)


def note_access(server: ServerState, keys: Keys, starting: bool = False) -> None:
    """Print notes on the server's rules. Raises UserError if a rule or a spending limit cannot be enforced or, when the
    server is `starting`, cannot take effect: later, the last key may lose a claim."""
    sessions, assistants = server.sessions, [one.assistant for one in server.configurations.values()]
    sessions.spending.check_models(keys.owners, server.clients)
    wrong, notes = sessions.access.check(assistants, keys.owners)
    if wrong and starting:
        raise SettingsError(wrong[0])
    for line in (*wrong, *notes):
        note(line)


def create_app(server: ServerState, settings: GateSettings | None = None, edge: EdgeSettings | None = None,
               numbers: SharedNumbers | None = None) -> FastAPI:
    """Return the application that serves these configurations, with its middleware. `numbers` are those of all
    processes of the server."""
    settings, edge = settings or GateSettings(), edge or EdgeSettings()
    settings.keys.secret = server.sessions.traffic.secret("cookies")
    queue = Queue(settings.concurrency, settings.queue, numbers)
    if numbers is not None:
        settings.rate.numbers = settings.keys.logins.numbers = numbers
    app = FastAPI(title="ragbed", docs_url=None, redoc_url=None)
    server.metrics.watch_queue(lambda: queue.running, lambda: queue.waiting)
    settings.keys.logins.on_failure = server.metrics.unknown_keys.inc
    app.add_middleware(RequestGate, settings=settings, queue=queue)
    add_cors(app, edge)
    app.add_middleware(RequestLog, requests=server.metrics.requests, style=edge.log, tracing=is_tracing())
    app.add_middleware(ProxiedRequests, settings=edge)
    for router in (session_routes(settings.keys), metrics_routes(server.metrics), ready_routes(server),
                   chat_routes(server), response_routes(server), page_routes(server), document_routes(server),
                   forget_routes(Forgetter.of(server), settings.keys)):
        app.include_router(router)
    if find_spec("mcp") is not None:
        from ragbed.experiments.guests.serving.mcp_server import add_mcp

        add_mcp(app, server)
    app.mount("/assets", StaticFiles(directory=ASSETS))

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> JSONResponse:
        detail = error.detail if isinstance(error.detail, dict) else error_json(error.detail)
        return JSONResponse(detail, error.status_code, error.headers)

    app.add_exception_handler(RunError, _on_store_error)

    @app.exception_handler(TooLong)
    async def on_too_long(request: Request, error: TooLong) -> JSONResponse:
        param = {"/api/ask": "question", "/v1/responses": "input"}.get(route_path(request.scope), "messages")
        return JSONResponse(error_json(str(error), "string_above_max_length", param), 400)

    @app.exception_handler(OverSpent)
    async def on_over_spent(request: Request, error: OverSpent) -> JSONResponse:
        return JSONResponse(error_json(str(error), "insufficient_quota", kind="insufficient_quota"), 429,
                            {"Retry-After": str(error.seconds)})

    @app.exception_handler(RequestValidationError)
    async def on_invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:]))
        return JSONResponse(error_json(f"{where}: {first['msg']}"[:500], "invalid_request", where[:100] or None), 422)

    return app


async def _on_store_error(request: Request, error: Exception) -> JSONResponse:
    logging.getLogger("ragbed").warning("the traffic cannot be read or written: %s", error)
    return JSONResponse(error_json("the server cannot read or store answers now; try again later", "store",
                                   kind="server_error"), 503, {"Retry-After": "5"})


def serve(target: Path, given: Mapping[str, Any], settings: ServerSettings) -> None:
    """Serve a target; `given` has the settings of an assistant over an index. Raises UserError if the target cannot be
    opened, the port is taken, or other machines could send requests without a key."""
    if settings.mcp:
        asyncio.run(_serve_mcp(target, given, settings))
        return
    if settings.owner:
        raise SettingsError(f"--as {settings.owner}: clients over HTTP send keys; use it with --mcp")
    gate = settings.gate()
    if (worker := Worker.of_environment()) is not None:
        with worker.listening as listening:
            asyncio.run(_serve(listening, target, given, settings, gate, worker))
        return
    with _listen(settings.host, settings.port) as listening:
        if not (gate.keys or ipaddress.ip_address(listening.getsockname()[0]).is_loopback):
            raise SettingsError(f"--host {settings.host} is open to other machines, and there are no keys; add --keys "
                                "FILE, with a name and a key on each line")
        if settings.workers > 1:
            sys.exit(supervise(settings.workers, listening,
                               settings.traffic if settings.store == settings.traffic else None))
        asyncio.run(_serve(listening, target, given, settings, gate))


def _listen(host: str, port: int) -> socket.socket:
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise SettingsError(f"--host {host} --port {port}: {error.strerror}; name another address or port") from error
    # asyncio sets this only for its own sockets; without it, answers wait 40 ms for the client's acknowledgement
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


async def _serve(listening: socket.socket, target: Path, given: Mapping[str, Any], settings: ServerSettings,
                 gate: GateSettings, worker: Worker | None = None) -> None:
    configured = await asyncio.to_thread(read_target, target, given)
    access = access_of(configured, settings.allow, gate.keys)
    async with open_server(configured, settings, access, worker) as server:
        if worker is None or not (worker.number or worker.restarted):
            await asyncio.to_thread(_note_start, server, configured, gate, listening, settings.edge)
        server.sessions.spending.check_models(gate.keys.owners, server.clients)  # from which each worker has its prices
        app = create_app(server, gate, settings.edge, worker.numbers if worker else None)
        running = GuardedServer(Connections(gate.connections, proxies=settings.edge.proxies), app,
                                timeout_graceful_shutdown=math.ceil(gate.grace))
        if worker is not None:
            worker.numbers.put(0, 0)
            worker.stop_with_supervisor(lambda: running.handle_exit(signal.SIGTERM, None))
        running.capture_signals = partial(_stop_on_signals, running)  # type: ignore[method-assign]
        with reload_on_hangup(gate.keys, settings.keys, partial(note_access, server)):
            await running.serve([listening])


def _note_start(server: ServerState, configured: Sequence[ConfigurationSettings], gate: GateSettings,
                listening: socket.socket, edge: EdgeSettings) -> None:
    note_access(server, gate.keys, True)
    for name, one in server.configurations.items():
        note(f"{name}: {one.description}")
    for line in dict.fromkeys(line for one in configured for line in note_models(
            [one.settings.model], one.settings.calls)):
        note(line)
    host, port = listening.getsockname()[:2]
    at = f"http://{f'[{host}]' if ':' in host else host}:{port}{edge.root_path}"
    if edge.root_path:
        note(f"behind a proxy that serves {edge.root_path}/")
    say(f"chat page: {at}/   base URL for clients: {at}/v1")
    note(f"questions and answers are kept in {server.sessions.traffic.name}; stop the server with Ctrl-C")


@contextlib.contextmanager
def _stop_on_signals(server: uvicorn.Server) -> Iterator[None]:
    """Stop the server on a signal. uvicorn's handler would raise the signal again at the end, and so kill the process
    before its records are closed."""
    before = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _serve_mcp(target: Path, given: Mapping[str, Any], settings: ServerSettings) -> None:
    from ragbed.experiments.guests.serving.mcp_server import create_mcp_server

    configured = await asyncio.to_thread(read_target, target, given)
    keys, owner = settings.read_keys(), settings.owner
    access = access_of(configured, settings.allow, keys)
    if owner not in keys.owners if access.rules else owner:
        raise SettingsError(f"--as {owner}: there is no such key; with a rule, --as names the owner of a key, whose "
                            "documents the MCP client may read; without a rule, leave it out")
    async with open_server(configured, settings, access) as server:
        await asyncio.to_thread(note_access, server, keys, True)
        await create_mcp_server(server).run_stdio_async()
