"""Search only: gather evidence and call no model, to evaluate retrieval only."""
from __future__ import annotations

from ragbed.strategies.types import Draft, Recipe, Task


def search_only(task: Task) -> Recipe:
    """Gather evidence without asking for an answer."""
    evidence = yield from task.gather(task.question)
    gathered = tuple(passage.number for passage in evidence)
    return Draft("", cited=(), refused=False, well_formed=True, tagged=None, gathered=gathered)
