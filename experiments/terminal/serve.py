"""`ragbed serve` at work: what is served, opened and listened for until the process is asked to end."""
from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

from documents.errors import MissingExtra, SettingsError
from experiments.analysis.notes import on_models
from experiments.terminal.display import note, say


def serve(target: Path, given: Mapping[str, Any], *, host: str, port: int, url: str, traffic: Path,
          threads: str | None, citations: str, explore: float) -> None:
    """Serve what a target stands for; see `experiments.serving`. Raises UserError where it cannot be opened, or the
    port is taken."""
    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtra(package, "serve")
    from experiments.serving.state import Citations

    if citations not in get_args(Citations):
        raise SettingsError(f"--citations {citations!r:.40}: expected {', '.join(get_args(Citations))}")
    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise SettingsError(f"--host {host} --port {port}: {error.strerror}; name another") from error
    with listening:
        asyncio.run(_serve(listening, target, given, url, traffic, threads, citations, explore))


async def _serve(listening: socket.socket, target: Path, given: Mapping[str, Any], url: str, folder: Path,
                 threads: str | None, citations: Any, explore: float) -> None:
    import uvicorn

    from experiments.serving.app import open_serving, serving_app
    from experiments.serving.configurations import cells_served, describe

    described = await asyncio.to_thread(describe, target, given)
    async with open_serving(described, folder, threads, url=url, citations=citations, explore=explore) as serving:
        for line in cells_served(serving.configurations):
            note(line)
        for line in on_models(sorted({one.settings.model for one in described})):
            note(line)
        host, port = listening.getsockname()[:2]
        at = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        say(f"{at}/ is the page; clients take {at}/v1 as their base URL")
        note(f"what is asked is kept in {folder}; Ctrl-C ends the server")
        config = uvicorn.Config(serving_app(serving), log_level="warning", access_log=False, lifespan="off",
                                server_header=False, timeout_graceful_shutdown=30)
        await uvicorn.Server(config).serve(sockets=[listening])
