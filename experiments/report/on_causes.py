"""Why answers are wrong, in sentences."""
from __future__ import annotations

from collections import Counter

from experiments.report.causes import Bar, Causes
from experiments.report.cells import Table
from experiments.report.standing import leaders
from experiments.report.words import listed, part, plural

_NAMED = 3


def on_causes(table: Table, why: Causes | None) -> list[str]:
    """Of the wrong answers of the best cell, and of the one with most of them.

    Args:
        table: the cells that compete.
    """
    if why is None:
        return []
    if not any(bar.wrong for bar in why.bars):
        return ["No answer is known to be wrong."]
    bars = {bar.cell.id: bar for bar in why.bars}
    competing = [bars[cell.id] for cell in table.cells if cell.id in bars]
    chosen = {"the best cell": [bars[cell.id] for cell in leaders(table)[:1] if cell.id in bars],
              "with the most wrong answers": sorted(competing, key=lambda bar: -bar.wrong)[:1]}
    names = {cell.id: cell.label for cell in table.cells}
    said = {bar.cell.id: _of(bar, f"{names[bar.cell.id]} ({reason})")
            for reason, found in reversed(chosen.items()) for bar in found if bar.wrong}
    return list(reversed(said.values()))


def _of(bar: Bar, called: str) -> str:
    counts = Counter({one.cause.title: one.count for one in bar.parts if one.cause.wrong})
    named = [f"{title} {part(count, bar.wrong)}" for title, count in counts.most_common(_NAMED)]
    return f"Of {plural(bar.wrong, 'wrong answer')} of {called}: {listed(named)}."
