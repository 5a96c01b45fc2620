"""A pipeline that is a program: it reads a question as JSON and writes an answer."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from ragbed.documents.child_process import bind_to_parent
from ragbed.documents.errors import CallError, SettingsError
from ragbed.documents.http import MAX_REPLY_BYTES, BadReply, Response, sanitize_line
from ragbed.documents.json import loads
from ragbed.experiments.guests.pipelines.pipeline import Channel, JSONPipeline
from ragbed.retrieval.storage.files import unchanged_sha256

if TYPE_CHECKING:
    from ragbed.agents.model_settings import CallLimits

_POLL_SECONDS = 0.05  # seconds between checks of the output's size
# Reads process groups as they start and end, and kills those that are left when standard input ends: a killed run
# cannot do so itself.
_GUARD = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    groups ^= {int(line)}
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class ProcessGuard:
    """A process that kills the programs of this process, and all that they started, if this process is killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([sys.executable, "-I", "-S", "-c", _GUARD], stdin=subprocess.PIPE,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    @contextlib.contextmanager
    def watching(self, group: int) -> Iterator[None]:
        """Kill a process group if this process is killed within the block."""
        self._tell(group)
        try:
            yield
        finally:
            self._tell(group)

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._process.wait()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _tell(self, group: int) -> None:
        with contextlib.suppress(BrokenPipeError):  # the guard was killed, and the run goes on without it
            self._stdin.write(f"{group}\n".encode())
            self._stdin.flush()


class Command(JSONPipeline):
    """A program, started once per question. It reads the request from standard input as one line of JSON, and writes
    JSON or a bare answer to standard output. No shell is involved.

    Attributes:
        argv: the program and its arguments. Files among them are part of the pipeline's identity.
    """

    kind: Literal["command"] = "command"
    argv: Annotated[tuple[str, ...], Field(min_length=1)]

    @property
    def sources(self) -> Sequence[str]:
        """Return hashes of the files among the arguments."""
        return [unchanged_sha256(path) for path in map(Path, self.argv) if path.is_file()]

    def open(self, limits: CallLimits) -> CommandChannel:
        """Find the program. Raises SettingsError if it does not exist, or is not executable."""
        if shutil.which(self.argv[0]) is None:
            raise SettingsError(f"pipeline {self.name}: program {self.argv[0]} not found or not executable")
        return CommandChannel(self, argv=self.argv, guard=ProcessGuard())


@dataclass(frozen=True, slots=True)
class CommandChannel(Channel):
    """Runs the program once for each request."""

    argv: tuple[str, ...] = ()
    guard: ProcessGuard = field(default_factory=ProcessGuard)

    async def aclose(self) -> None:
        """End the guard."""
        self.guard.close()

    async def post(self, body: object) -> Response:
        """Run the program once. Raises CallError of kind `pipeline`: it cannot be started, or its exit status is not 0.
        """
        name = self.settings.name
        # Files rather than pipes: a background process of the program would keep a pipe open.
        with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
            stdin.write(json.dumps(body, ensure_ascii=False).encode() + b"\n")
            stdin.seek(0)
            try:
                process = await asyncio.create_subprocess_exec(
                    *bind_to_parent(self.argv), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)
            except (OSError, ValueError) as error:
                raise CallError(f"{name}: {self.argv[0]} cannot be started: {error}", "pipeline") from None
            with self.guard.watching(process.pid):
                try:
                    end = asyncio.ensure_future(process.wait())
                    while not (await asyncio.wait([end], timeout=_POLL_SECONDS))[0]:
                        _check_size(stdout, stderr)
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)  # kills the program and all processes that it started
                    await process.wait()
            _check_size(stdout, stderr)
            stdout.seek(0)
            stderr.seek(0)
            if process.returncode:
                last = sanitize_line(stderr.read().decode(errors="replace").strip().rpartition("\n")[2])
                raise CallError(f"{name}: exit status {process.returncode}{': ' * bool(last)}{last}", "pipeline")
            return Response(200, {}, _as_json(stdout.read()))


def _check_size(*files: IO[bytes]) -> None:
    if any(os.fstat(file.fileno()).st_size > MAX_REPLY_BYTES for file in files):
        raise BadReply(f"it wrote more than {MAX_REPLY_BYTES >> 20} MB")


def _as_json(output: bytes) -> bytes:
    """Return JSON output unchanged, and other output as a JSON string. A truncated object stays unchanged, so that
    reading it fails."""
    text = output.decode(errors="replace").strip()
    try:
        loads(text, mend=True)
    except ValueError:
        return text.encode() if text.startswith("{") else json.dumps(text).encode()
    return text.encode()
