"""Plan-and-solve: a plan, its execution, then the answer (Wang et al. 2023; CReSt, Figure 7)."""
from __future__ import annotations

from ragbed.strategies.answering import answer
from ragbed.strategies.types import Recipe, Task


def plan_and_solve(task: Task) -> Recipe:
    """Plan, carry out the plan, then answer, in one call."""
    evidence = yield from task.gather(task.question)
    return (yield from answer(task, "plan_and_solve", evidence))
