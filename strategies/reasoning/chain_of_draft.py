"""Chain of draft: reasoning steps of five words at most (Xu et al. 2025; CReSt, Figure 6)."""
from __future__ import annotations

from strategies.prompting import numbers, prompt
from strategies.types import Draft, Generate, Recipe, Reply, Task


def chain_of_draft(task: Task) -> Recipe:
    """One call that drafts its steps in tags before it answers."""
    evidence = yield from task.gather(task.question)
    reply: Reply = yield Generate(prompt("chain_of_draft", task, evidence), "answer", numbers(task, evidence))
    return Draft.from_reply(reply)
