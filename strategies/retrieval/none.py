"""No retrieval: the prompt shows no documents."""
from __future__ import annotations

from ragbed.strategies.types import Gathering, Task


def none(task: Task, query: str) -> Gathering:
    """Gather no evidence."""
    yield from ()
    return ()
