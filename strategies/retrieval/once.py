"""Search once with the unchanged query."""
from __future__ import annotations

from ragbed.strategies.types import Evidence, Gathering, Search, Task


def once(task: Task, query: str) -> Gathering:
    """Search once with the unchanged query."""
    evidence: Evidence = yield Search(query)
    return evidence
