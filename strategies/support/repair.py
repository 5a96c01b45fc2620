"""Mending an answer once: a call that shows the documents, the answer and what the check found of it."""
from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from strategies.answering import draft, opening
from strategies.parts.watching import Seen
from strategies.prompting import fill_quoting
from strategies.support.check import By, Checked, alone, checked
from strategies.types import Asked, Draft, Task


def repaired(first: Draft, found: Checked, task: Task, seen: Seen, by: By) \
        -> Generator[Asked, Any, tuple[Draft, Checked]]:
    """The better supported of the answer and a second one, and what was found of it.

    The second counts where the two are equal, and where it refuses under rules that offer a refusal. One that cannot
    be read leaves the first as it was, with the note `repair_unread`; one that is worse, with `repair_worse`.
    """
    said = fill_quoting("support_repair", answer=alone(first, task).text, findings=found.listed())
    call = opening(task, said, seen.evidence(first.cited), thinks=False)
    seen.asked(call)
    second: Draft = yield from draft(call, task, *first.notes, thinks=False)
    if second.refused and task.rules == "grounded":
        return replace(second, figures=first.figures), found
    if second.refused or not second.well_formed:
        return replace(first, notes=(*first.notes, "repair_unread")), found
    again = yield from checked(alone(second, task), task, seen, by, found.threshold)
    if again.share is None or again.share < (found.share or 0.0):
        return replace(first, notes=(*first.notes, "repair_worse")), found
    return replace(second, figures=first.figures), again
