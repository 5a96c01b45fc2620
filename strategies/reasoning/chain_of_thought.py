"""Chain of thought: free reasoning, then the answer (Wei et al. 2022; CReSt, Figure 5)."""
from __future__ import annotations

from strategies.prompting import numbers, prompt
from strategies.types import Draft, Generate, Recipe, Reply, Task


def chain_of_thought(task: Task) -> Recipe:
    """One call that reasons in tags before it answers."""
    evidence = yield from task.gather(task.question)
    reply: Reply = yield Generate(prompt("chain_of_thought", task, evidence), "answer", numbers(task, evidence))
    return Draft.from_reply(reply)
