"""Direct answering: the answer at once (CReSt, Figure 4)."""
from __future__ import annotations

from strategies.prompting import numbers, prompt
from strategies.types import Draft, Generate, Recipe, Reply, Task


def direct(task: Task) -> Recipe:
    """One call that asks for the answer alone."""
    evidence = yield from task.gather(task.question)
    reply: Reply = yield Generate(prompt("direct", task, evidence, form="plain"), "answer",
                                   numbers(task, evidence))
    return Draft.from_reply(reply, form="plain")
