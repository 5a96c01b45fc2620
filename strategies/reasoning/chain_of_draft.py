"""Chain of draft: reasoning steps of five words at most (Xu et al. 2025; CReSt, Figure 6)."""
from __future__ import annotations

from ragbed.strategies.answering import answer
from ragbed.strategies.types import Recipe, Task


def chain_of_draft(task: Task) -> Recipe:
    """Draft short reasoning steps, then answer, in one call."""
    evidence = yield from task.gather(task.question)
    return (yield from answer(task, "chain_of_draft", evidence))
