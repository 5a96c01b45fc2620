"""A pipeline that is a command: a question goes in as JSON, an answer comes out."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from ragbed.agents.catalogue import sha256_of
from ragbed.agents.pipelines.base import Channel, PipelineSettings
from ragbed.documents.errors import CallError, SettingsError
from ragbed.documents.http import MAX_REPLY_BYTES, BadReply, Response, sanitize_line
from ragbed.documents.json import loads

if TYPE_CHECKING:
    from ragbed.agents.settings import CallLimits

_LOOK = 0.05  # seconds between looks at how much it wrote


class CommandPipeline(PipelineSettings):
    """A program, started anew for each question: the request stands on its standard input as one line of JSON, and what
    it writes to standard output is JSON, or else the answer itself. No shell is between.

    Attributes:
        argv: the program and its arguments; those that name files are part of the pipeline's identity.
    """

    kind: Literal["command"] = "command"
    argv: Annotated[tuple[str, ...], Field(min_length=1)]

    @property
    def sources(self) -> Sequence[str]:
        """Hashes of the files that the arguments name."""
        return [sha256_of(path) for path in map(Path, self.argv) if path.is_file()]

    def open(self, limits: CallLimits) -> CommandChannel:
        """Start nothing yet; SettingsError where there is no such program."""
        if shutil.which(self.argv[0]) is None:
            raise SettingsError(f"pipeline {self.name}: there is no program {self.argv[0]}, or it may not be executed")
        return CommandChannel(self, argv=self.argv)


@dataclass(frozen=True, slots=True)
class CommandChannel(Channel):
    """Runs the program once for each request."""

    argv: tuple[str, ...] = ()

    async def post(self, body: object) -> Response:
        """Run it once; CallError, `pipeline`, where it cannot be started or its exit status is not 0."""
        name = self.settings.name
        # Files, and not pipes, which a program that goes on in the background would keep open.
        with TemporaryFile() as asked, TemporaryFile() as said, TemporaryFile() as complained:
            asked.write(json.dumps(body, ensure_ascii=False).encode() + b"\n")
            asked.seek(0)
            try:
                process = await asyncio.create_subprocess_exec(
                    *self.argv, stdin=asked, stdout=said, stderr=complained, start_new_session=True)
            except (OSError, ValueError) as error:
                raise CallError(f"{name}: {self.argv[0]} cannot be started: {error}", "pipeline") from None
            try:
                end = asyncio.ensure_future(process.wait())
                while not (await asyncio.wait([end], timeout=_LOOK))[0]:
                    _check_size(said, complained)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # it and all that it started, in time or not
                await process.wait()
            _check_size(said, complained)
            said.seek(0)
            complained.seek(0)
            if process.returncode:
                last = sanitize_line(complained.read().decode(errors="replace").strip().rpartition("\n")[2])
                raise CallError(f"{name}: exit status {process.returncode}{': ' * bool(last)}{last}", "pipeline")
            return Response(200, {}, _as_json(said.read()))


def _check_size(*files: IO[bytes]) -> None:
    if any(os.fstat(file.fileno()).st_size > MAX_REPLY_BYTES for file in files):
        raise BadReply(f"it wrote more than {MAX_REPLY_BYTES >> 20} MB")


def _as_json(said: bytes) -> bytes:
    """What it wrote; a text as JSON. An object that is broken off is no text."""
    text = said.decode(errors="replace").strip()
    try:
        loads(text, mend=True)
    except ValueError:
        return text.encode() if text.startswith("{") else json.dumps(text).encode()
    return text.encode()
