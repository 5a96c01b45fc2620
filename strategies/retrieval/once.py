"""One search with the query as it stands."""
from __future__ import annotations

from strategies.types import Evidence, Gathering, Search, Task


def once(task: Task, query: str) -> Gathering:
    """Return the evidence of one search."""
    evidence: Evidence = yield Search(query)
    return evidence
