"""Parsing processes that outlive an index, so that the next test need not start its own."""
import subprocess
from dataclasses import replace
from typing import Any

from ragbed.documents import workers
from ragbed.documents.paths import child_environment
from ragbed.documents.sources import Source

_UNREAD = {"PYTEST_CURRENT_TEST", "RAGBED_CACHE", "PWD", "OLDPWD"}  # of the environment; a parser does not read these
_MOST = 4
_idle: list[tuple[dict[str, str], "subprocess.Popen[bytes]"]] = []


class KeptWorker(workers.Worker):
    """A worker whose process is kept, unless it is stopped while it parses."""

    _busy = False

    def parse(self, source: Source) -> Any:
        self._busy = True  # first: an interrupt from now on ends the process
        try:
            return super().parse(replace(source, path=source.path.absolute()))
        finally:
            self._busy = False

    def interrupt(self) -> None:
        if self._busy:
            super().interrupt()
        self._closed = True

    def close(self) -> None:
        if self._process is not None and not self._busy and self._process.poll() is None:
            _idle.append((_environment(), self._process))
            self._process = None
            if len(_idle) > _MOST:
                _end(_idle.pop(0)[1])
        super().close()

    def _start(self) -> "subprocess.Popen[bytes]":
        now = _environment()
        place = next((place for place, (known, _) in enumerate(_idle) if known == now), None)
        if self._process is None and place is not None:
            process = _idle.pop(place)[1]
            if process.poll() is None:
                self._process = process
            else:
                _end(process)
        return super()._start()


def _environment() -> dict[str, str]:
    return {name: value for name, value in child_environment().items() if name not in _UNREAD}


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


def end_all() -> None:
    """End every process that was kept."""
    while _idle:
        _end(_idle.pop()[1])
