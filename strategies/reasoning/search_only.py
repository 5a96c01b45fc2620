"""Search only: evidence is gathered and no model is asked, for the evaluation of retrieval alone."""
from __future__ import annotations

from ragbed.strategies.types import Draft, Recipe, Task


def search_only(task: Task) -> Recipe:
    """No call: what the retrieval strategy finds for the question is the whole result."""
    evidence = yield from task.gather(task.question)
    gathered = tuple(passage.number for passage in evidence)
    return Draft("", cited=(), refused=False, well_formed=True, tagged=None, gathered=gathered)
