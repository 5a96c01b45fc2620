"""Run llama.cpp's OpenAI-compatible server in a child process. Inside the run's process, loading would hold the GIL,
and a native crash would end the run."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import IO

from ragbed.agents.model_settings import LocalSettings
from ragbed.documents.errors import MissingExtra, ModelError
from ragbed.documents.http import Address, sanitize_line
from ragbed.documents.paths import child_environment, count_cores

_END_SECONDS = 5.0  # seconds for a child to end by itself


class LocalServer:
    """Serves one GGUF file on a random loopback port under a random key. `address()` starts it, or restarts it if it
    has died. Raises MissingExtra if llama.cpp is not installed.
    """

    def __init__(self, weights: Path, settings: LocalSettings) -> None:
        MissingExtra.check("local", "xllamacpp")
        self._weights, self._settings = weights, settings
        self._starting = asyncio.Lock()
        self._child: asyncio.subprocess.Process | None = None
        self._log: IO[bytes] | None = None
        self._at: Address | None = None

    @property
    def pid(self) -> int | None:
        """Return the child's process id; None if there is no child."""
        return self._child.pid if self._child is not None else None

    async def address(self) -> Address:
        """Return the server's address, and start it if needed. Raises ModelError with the end of its log."""
        async with self._starting:
            if self._at is None or self._child is None or self._child.returncode is not None:
                await self.aclose()
                self._at = await self._start()
            return self._at

    async def aclose(self) -> None:
        """Stop the child, and remove its log."""
        child, self._child, self._at = self._child, None, None
        if child is not None:
            await _stop_child(child)
        if self._log is not None:
            self._log.close()
            self._log = None

    async def _start(self) -> Address:
        key = secrets.token_urlsafe(32)
        # Not in a thread, which would still make the file after a cancellation.
        self._log = tempfile.TemporaryFile(prefix="ragbed-llama-")  # noqa: SIM115  # `aclose` closes it
        try:
            self._child = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", "ragbed.experiments.guests.local_models.child",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=self._log,
                # Ctrl-C must not reach the child, which ends when its standard input is closed.
                env=child_environment(), start_new_session=True)
            async with asyncio.timeout(self._settings.start_seconds):
                return Address(await self._handshake(self._child, key), key)
        except TimeoutError:
            raise ModelError(await self._autopsy(f"did not start within {self._settings.start_seconds:g} s")) from None
        except (ConnectionError, ValueError):
            raise ModelError(await self._autopsy("does not start")) from None
        except asyncio.CancelledError:
            await self.aclose()
            raise

    async def _handshake(self, child: asyncio.subprocess.Process, key: str) -> str:
        assert child.stdin is not None
        assert child.stdout is not None
        order = {"model": str(self._weights.resolve()), "key": key, "context": self._settings.context,
                 "threads": self._settings.threads or max(count_cores() - 1, 1), "parent": os.getpid()}
        child.stdin.write(json.dumps(order).encode() + b"\n")
        await child.stdin.drain()
        line = await child.stdout.readline()
        return str(json.loads(line)["url"]) + "/v1"

    async def _autopsy(self, what: str) -> str:
        child, log = self._child, self._log
        if child is not None:
            await _stop_child(child)
        lines: list[str] = []
        if log is not None:
            # only after the child has ended, because both share the file's position
            log.seek(0)
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        await self.aclose()
        ending = sanitize_line(" | ".join(lines[-3:]), limit=400)
        return f"the local server for {self._weights.name} {what}" + (f": {ending}" if ending else "")


async def _stop_child(child: asyncio.subprocess.Process) -> None:
    """Close the child's standard input, which ends it. Kill it if it is still running after a while."""
    if child.stdin is not None:
        child.stdin.close()
    try:
        async with asyncio.timeout(_END_SECONDS):
            await child.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
