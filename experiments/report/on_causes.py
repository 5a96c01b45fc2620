"""Why answers are wrong, in sentences."""
from __future__ import annotations

from collections import Counter

from experiments.report.causes import Bar, Causes
from experiments.report.cells import Table
from experiments.report.standing import leaders
from experiments.report.words import listed, percent, plural

_NAMED = 3


def on_causes(table: Table, why: Causes | None) -> list[str]:
    """The causes of the best cell's wrong answers, and of those of the cell that has most."""
    if why is None:
        return []
    best = {cell.id for cell in leaders(table)[:1]}
    worst = max(why.bars, key=lambda bar: bar.wrong, default=None)
    chosen = [bar for bar in why.bars if bar.cell.id in best or bar is worst]
    if not any(bar.wrong for bar in why.bars):
        return ["No answer is known to be wrong."]
    return [_of(bar) for bar in chosen if bar.wrong]


def _of(bar: Bar) -> str:
    counts = Counter({part.cause.title: part.count for part in bar.parts if part.cause.wrong})
    named = [f"{title} {percent(count / bar.wrong)}" for title, count in counts.most_common(_NAMED)]
    return f"Of {plural(bar.wrong, 'wrong answer')} of {bar.cell.label}: {listed(named)}."
