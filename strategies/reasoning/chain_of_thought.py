"""Chain of thought: free reasoning, then the answer (Wei et al. 2022; CReSt, Figure 5)."""
from __future__ import annotations

from ragbed.strategies.answering import answer
from ragbed.strategies.types import Recipe, Task


def chain_of_thought(task: Task) -> Recipe:
    """Reason freely, then answer, in one call."""
    evidence = yield from task.gather(task.question)
    return (yield from answer(task, "chain_of_thought", evidence))
