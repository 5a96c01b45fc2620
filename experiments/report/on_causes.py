"""Why answers are wrong, in sentences."""
from __future__ import annotations

from collections import Counter

from experiments.report.causes import Causes
from experiments.report.cells import Cell, Table
from experiments.report.standing import leaders
from experiments.report.words import listed, part, plural

_NAMED = 3


def on_causes(table: Table, why: Causes | None) -> list[str]:
    """Of the wrong answers of the best cell, where one is, and of the one with most of them.

    Args:
        table: the cells that compete.
    """
    if why is None:
        return []
    if not any(bar.wrong for bar in why.bars):
        return ["No answer is known to be wrong."]
    wrong = [(cell, found) for cell in table.cells if (found := _wrong(cell, why))]
    best, most = leaders(table), max((found.total() for _, found in wrong), default=0)
    worst = [one for one in wrong if one[1].total() == most]
    chosen = {"the best cell": [one for one in wrong if [one[0]] == best],
              "with the most wrong answers" if len(worst) == 1 else "with as many as any": worst[:1]}
    said = {cell.id: _of(found, f"{cell.label} ({reason})")
            for reason, some in reversed(chosen.items()) for cell, found in some}
    return list(reversed(said.values()))


def _wrong(cell: Cell, why: Causes) -> Counter[str]:
    """Wrong answers by cause, of all that the cell stands for."""
    found: Counter[str] = Counter()
    for bar in why.bars:
        if bar.cell.id in cell.ids:
            found.update({one.cause.title: one.count for one in bar.parts if one.cause.wrong})
    return found


def _of(wrong: Counter[str], called: str) -> str:
    whole = wrong.total()
    named = [f"{title} {part(count, whole)}" for title, count in wrong.most_common(_NAMED)]
    return f"Of {plural(whole, 'wrong answer')} of {called}: {listed(named)}."
