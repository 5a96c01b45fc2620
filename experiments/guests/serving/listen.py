"""`ragbed serve` at work: what is served, opened and listened for until the process is asked to end."""
from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

from ragbed.documents.errors import MissingExtra, SettingsError
from ragbed.experiments.analysis.notes import on_models
from ragbed.experiments.terminal.display import note, say

if TYPE_CHECKING:
    import uvicorn

    from ragbed.experiments.guests.serving.gate import GateSettings

_GRACE = 30  # seconds that answers under way have to end


def serve(target: Path, given: Mapping[str, Any], *, host: str, port: int, url: str, traffic: Path,
          citations: str, keys: Path | None, names: Sequence[str], rate: str, limits: Mapping[str, Any],
          mcp: bool, **opened: Any) -> None:
    """Serve what a target stands for; see `open_serving` for what is `opened`, and `GateSettings` for the limits.
    Raises UserError where it cannot be opened, the port is taken, or others than this machine could ask without a key.
    """
    MissingExtra.check("serve", "fastapi", "prometheus_client", "uvicorn")
    if mcp:
        MissingExtra.check("mcp", "mcp")
        asyncio.run(_serve_tools(target, given, traffic, url=url, **opened))
        return
    from ragbed.experiments.guests.serving.gate import GateSettings, Rate
    from ragbed.experiments.guests.serving.keys import Keys
    from ragbed.experiments.guests.serving.state import Citations

    if citations not in get_args(Citations):
        raise SettingsError(f"--citations {citations!r:.40}: expected {', '.join(get_args(Citations))}")
    known = frozenset(name.lower() for name in (host, urlsplit(url).hostname, *names) if name)
    gate = GateSettings(Keys.read(keys, os.environ.get("RAGBED_KEYS")), known, Rate(rate), **limits)
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise SettingsError(f"--host {host} --port {port}: {error.strerror}; name another") from error
    # asyncio does this for sockets of its own alone; without it answers wait 40 ms for the client's acknowledgement
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listening:
        if not (gate.keys or ipaddress.ip_address(listening.getsockname()[0]).is_loopback):
            raise SettingsError(f"--host {host}: others than this machine could ask; give keys to those who may, by "
                                "--keys FILE, a line of a name and a key for each")
        asyncio.run(_serve(listening, target, given, traffic, gate, url=url, citations=citations, **opened))


async def _serve(listening: socket.socket, target: Path, given: Mapping[str, Any], folder: Path, gate: GateSettings,
                 **opened: Any) -> None:
    import uvicorn

    from ragbed.experiments.guests.serving.app import open_serving, serving_app
    from ragbed.experiments.guests.serving.configurations import describe

    described = await asyncio.to_thread(describe, target, given)
    async with open_serving(described, folder, **opened) as serving:
        for name, one in serving.configurations.items():
            note(f"{name}: {one.description}")
        for line in on_models(sorted({one.settings.model for one in described})):
            note(line)
        host, port = listening.getsockname()[:2]
        at = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        say(f"{at}/ is the page; clients take {at}/v1 as their base URL")
        note(f"what is asked is kept in {folder}; Ctrl-C ends the server")
        server = uvicorn.Server(uvicorn.Config(
            serving_app(serving, gate), log_level="warning", access_log=False, lifespan="on", server_header=False,
            timeout_graceful_shutdown=_GRACE))
        server.capture_signals = partial(_ended_by_signals, server)  # type: ignore[method-assign]
        await server.serve([listening])


@contextlib.contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Have a signal end the server as an answer ends: uvicorn's own way raises the signal again afterwards, which kills
    the process before its records are closed."""
    before = {number: signal.signal(number, server.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _serve_tools(target: Path, given: Mapping[str, Any], folder: Path, **opened: Any) -> None:
    """Serve the tools over stdin and stdout, until stdin ends."""
    from ragbed.experiments.guests.serving.app import open_serving
    from ragbed.experiments.guests.serving.configurations import describe
    from ragbed.experiments.guests.serving.mcp_server import mcp_server

    described = await asyncio.to_thread(describe, target, given)
    async with open_serving(described, folder, **opened) as serving:
        await mcp_server(serving).run_stdio_async()
