"""Pause a run or change its concurrency while it goes on: the file `control.yaml` in its folder, or a signal.

    concurrency: 2
    paused: true

A paused run finishes the questions under way and begins no new one. Results do not depend on either setting.
"""
from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from ragbed.agents.client import ModelClient
from ragbed.agents.model_settings import MAX_IN_FLIGHT
from ragbed.documents.errors import RunError
from ragbed.experiments.running.hooks import RunJobs
from ragbed.experiments.runs.run_manifest import parse_config
from ragbed.experiments.runs.store import read_run_file, remove, write_text

FILE = "control.yaml"
_OBEYED = ".control.yaml"  # what a run obeys: the file above as it was when it was last valid
_EVERY = 0.5  # seconds between readings of the file
_MAX_BYTES = 4_096
_ENDED = object()
Item = TypeVar("Item")


class Control(BaseModel):
    """The content of `control.yaml`.

    Attributes:
        concurrency: largest number of questions in progress per model; None for that of the settings. Local models and
            pipelines never get more than the settings allow.
        paused: whether to begin no new question.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    concurrency: int | None = Field(default=None, ge=1, le=MAX_IN_FLIGHT, strict=True)
    paused: StrictBool = False


def read_control(run: Path, name: str = FILE) -> Control:
    """Read the control file of a run; without one, return the defaults. Raises RunError if it is not valid."""
    path = run / name
    try:
        content = read_run_file(path)
        if len(content) > _MAX_BYTES:
            raise RunError(f"{path} is ignored: larger than {_MAX_BYTES} bytes")
        found = parse_config(content.decode())
        if not isinstance(found, dict):  # such as an empty file, which an editor has not written yet
            raise RunError(f"{path} is ignored: it has no setting such as paused: true; write it with `ragbed watch "
                           "RUN`, or delete it")
        return Control.model_validate(found)
    except FileNotFoundError:
        return Control()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "content"
        raise RunError(f"{path} is ignored: {where}: {first['msg']}; write it with `ragbed watch RUN`") from error
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise RunError(f"{path} is ignored: not readable YAML; write it with `ragbed watch RUN`") from error


def find_control(run: Path) -> tuple[Control, str]:
    """Return what a run obeys, and why its control file is ignored, or an empty text."""
    try:
        return read_control(run), ""
    except RunError as error:
        with suppress(RunError):
            return read_control(run, _OBEYED), str(error)
        return Control(), str(error)


def write_control(run: Path, **changes: Any) -> Control:
    """Change the control file of a run, and return its new content. Raises RunError if it cannot be written."""
    control = find_control(run)[0].model_copy(update=changes)
    _write(run / FILE, control)
    return control


def _write(path: Path, control: Control) -> None:
    write_text(path, yaml.safe_dump(control.model_dump(exclude_defaults=True)))


class RunControl:
    """Runs jobs as the control file of a run says, and reads the file regularly."""

    def __init__(self, run: Path, note: Callable[[str], None]) -> None:
        self.control, self._run, self._note, self._wrong = Control(), run, note, ""
        self._waiting: set[asyncio.Event] = set()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_EVERY, self._tick)

    def close(self) -> None:
        """Stop reading the file."""
        self._timer.cancel()

    async def run_jobs(self, jobs: Iterable[Item], client: ModelClient,
                       work: Callable[[Item], Awaitable[None]]) -> None:
        """Carry out all jobs of one model. The first error cancels the others and is raised."""
        left: Iterator[Any] = iter(jobs)
        running, changed = set[asyncio.Task[None]](), asyncio.Event()
        self._waiting.add(changed)

        async def carry_out(job: Item) -> None:
            await work(job)

        def finish(task: asyncio.Task[None]) -> None:
            running.discard(task)
            changed.set()

        try:
            async with asyncio.TaskGroup() as group:
                ahead: list[Any] = []  # the next job, taken while paused to know whether there is one
                while True:
                    free = len(running) < client.allow(self.control.concurrency)
                    if not ahead and (free or self.control.paused):
                        ahead.append(next(left, _ENDED))
                    if ahead == [_ENDED]:
                        return
                    if free and not self.control.paused:
                        running.add(task := group.create_task(carry_out(ahead.pop())))
                        task.add_done_callback(finish)
                        continue
                    changed.clear()
                    await changed.wait()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            self._waiting.discard(changed)

    def _tick(self) -> None:
        self._timer = self._loop.call_later(_EVERY, self._tick)
        self._read()

    def pause(self, paused: bool) -> None:
        """Pause or resume the run now, and write it to the file."""
        write_control(self._run, paused=paused)
        self._read()

    def _read(self) -> None:
        try:
            control, wrong = read_control(self._run), ""
        except RunError as error:
            control, wrong = self.control, str(error)
        if wrong and wrong != self._wrong:
            self._note(wrong)
        self._wrong = wrong
        if control != self.control:
            for text in describe_change(self.control, control):
                self._note(text)
            self.control = control
            _write(self._run / _OBEYED, control)
            for changed in self._waiting:
                changed.set()


def describe_change(before: Control, now: Control) -> Iterator[str]:
    """Describe what has changed, in one line each."""
    if before.paused != now.paused:
        yield ("paused: questions under way finish, and no new one begins; `ragbed watch RUN --resume` continues"
               if now.paused else "resumed")
    if before.concurrency != now.concurrency:
        yield f"concurrency is now {now.concurrency or 'that of the settings'}"


@contextmanager
def open_control(run: Path, note: Callable[[str], None]) -> Iterator[RunJobs]:
    """Yield a function that runs jobs as `control.yaml` says. SIGUSR1 pauses the run, and SIGUSR2 resumes it. The file
    is removed at the start and at the end."""
    for name in (FILE, _OBEYED):
        remove(run / name)
    control = RunControl(run, note)
    handled = []
    for name, paused in (("SIGUSR1", True), ("SIGUSR2", False)):
        with suppress(ValueError, RuntimeError, NotImplementedError, AttributeError):  # another thread, or Windows
            number = getattr(signal, name)
            asyncio.get_running_loop().add_signal_handler(number, control.pause, paused)
            handled.append(number)
    try:
        yield control.run_jobs
    finally:
        control.close()
        for number in handled:
            asyncio.get_running_loop().remove_signal_handler(number)
        for name in (FILE, _OBEYED):
            remove(run / name)
