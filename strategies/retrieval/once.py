"""One search with the query as it stands."""
from __future__ import annotations

from ragbed.strategies.types import Evidence, Gathering, Search, Task


def once(task: Task, query: str) -> Gathering:
    """Search once, with the query as it stands."""
    evidence: Evidence = yield Search(query)
    return evidence
