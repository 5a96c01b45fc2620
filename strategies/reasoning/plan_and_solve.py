"""Plan-and-solve: a plan, its execution, then the answer (Wang et al. 2023; CReSt, Figure 7)."""
from __future__ import annotations

from strategies.prompting import numbers, prompt
from strategies.types import Draft, Generate, Recipe, Reply, Task


def plan_and_solve(task: Task) -> Recipe:
    """One call that plans and carries out the plan in tags before it answers."""
    evidence = yield from task.gather(task.question)
    reply: Reply = yield Generate(prompt("plan_and_solve", task, evidence), "answer", numbers(task, evidence))
    return Draft.from_reply(reply)
