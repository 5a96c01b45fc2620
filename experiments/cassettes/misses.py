"""What a replay found nothing for."""
from __future__ import annotations

from collections.abc import Iterator

from experiments.record import Result, StoredStep
from experiments.runs.store import RunFolder

_KIND = "replay_miss"


def misses(folder: RunFolder) -> int:
    """How many calls and searches of a run's records were missed, the judge's and those of sub-questions too."""
    return sum(_missed(result) for result in folder.results_with(_KIND))


def _missed(result: Result) -> int:
    steps = sum(step.failure is not None and step.failure.kind == _KIND for step in _steps(result))
    return steps + (result.verdict is not None and result.verdict.note.endswith(_KIND))


def _steps(result: Result) -> Iterator[StoredStep]:
    yield from result.trace
    for sub in result.subs:
        yield from sub.trace
