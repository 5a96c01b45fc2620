"""A pipeline that is a command: a question goes in as JSON, an answer comes out."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from agents.pipelines.base import Filled, PipelineSettings
from agents.replies import MOST_BYTES, BadReply
from agents.wire import Response
from documents.errors import CallError
from documents.json import loads
from documents.types import digest
from retrieval.servers import clean

if TYPE_CHECKING:
    from agents.settings import CallLimits


class Command(PipelineSettings):
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
        files = [path for path in map(Path, self.argv) if path.is_file()]
        return [digest(path.read_bytes().hex()) for path in files]

    def open(self, limits: CallLimits) -> CommandChannel:
        """Start nothing yet."""
        return CommandChannel(self, argv=self.argv)


@dataclass(frozen=True, slots=True)
class CommandChannel(Filled):
    """Runs the program once for each request."""

    argv: tuple[str, ...] = ()

    async def post(self, body: object) -> Response:
        """Run it once; CallError, `pipeline`, where it cannot be started or its exit status is not 0."""
        name = self.settings.name
        try:
            process = await asyncio.create_subprocess_exec(
                *self.argv, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE, start_new_session=True)
        except (OSError, ValueError) as error:
            raise CallError(f"{name}: {self.argv[0]} cannot be started: {error}", "pipeline") from None
        try:
            said, complained = await process.communicate(json.dumps(body, ensure_ascii=False).encode() + b"\n")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it and all that it started, in time or not
            await process.wait()
        if process.returncode:
            last = clean(complained.decode(errors="replace").strip().rpartition("\n")[2])
            raise CallError(f"{name}: exit status {process.returncode}{': ' * bool(last)}{last}", "pipeline")
        if len(said) > MOST_BYTES:
            raise BadReply(f"it wrote more than {MOST_BYTES >> 20} MB")
        return Response(200, {}, _as_json(said))


def _as_json(said: bytes) -> bytes:
    text = said.decode(errors="replace").strip()
    try:
        loads(text)
    except ValueError:
        return json.dumps(text).encode()
    return text.encode()
