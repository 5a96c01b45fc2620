"""Search once with the unchanged query, or not at all."""
from __future__ import annotations

from ragbed.strategies.types import Evidence, Gathering, Search, Task


def once(task: Task, query: str) -> Gathering:
    """Search once with the unchanged query."""
    evidence: Evidence = yield Search(query)
    return evidence


def none(task: Task, query: str) -> Gathering:
    """Gather no evidence."""
    yield from ()
    return ()
