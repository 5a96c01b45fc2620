"""Direct answering: the answer at once (CReSt, Figure 4)."""
from __future__ import annotations

from strategies.answering import answer
from strategies.types import Recipe, Task


def direct(task: Task) -> Recipe:
    """One call that asks for the answer alone."""
    evidence = yield from task.gather(task.question)
    return (yield from answer(task, "direct", evidence, thinks=False))
