"""Parsing processes that outlive an index, so that the next test need not start its own."""
from dataclasses import replace
from typing import Any

from ragbed.documents import workers
from ragbed.documents.child_process import ChildProcess
from ragbed.documents.paths import child_environment
from ragbed.documents.sources import Source

_UNREAD = {"PYTEST_CURRENT_TEST", "RAGBED_CACHE", "PWD", "OLDPWD"}  # of the environment; a parser does not read these
_MOST = 4
_idle: list[tuple[dict[str, str], ChildProcess]] = []


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
        if self._child is not None and not self._busy and self._child.stop.alive:
            _idle.append((_environment(), self._child))
            self._child = None
            if len(_idle) > _MOST:
                _idle.pop(0)[1].stop()
        super().close()

    def _start(self) -> ChildProcess:
        now = _environment()
        place = next((place for place, (known, _) in enumerate(_idle) if known == now), None)
        if self._child is None and place is not None:
            child = _idle.pop(place)[1]
            if child.running:
                self._child = child
        return super()._start()


def _environment() -> dict[str, str]:
    return {name: value for name, value in child_environment().items() if name not in _UNREAD}


def end_all() -> None:
    """End every process that was kept."""
    while _idle:
        _idle.pop()[1].stop()
