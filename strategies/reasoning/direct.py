"""Direct answering: one call, no reasoning (CReSt, Figure 4)."""
from __future__ import annotations

from ragbed.strategies.answering import answer
from ragbed.strategies.types import Recipe, Task


def direct(task: Task) -> Recipe:
    """Answer in one call without reasoning."""
    evidence = yield from task.gather(task.question)
    name = "direct_cited" if task.cites and task.answer_format == "tags" else "direct"
    return (yield from answer(task, name, evidence, thinks=False))
