"""Why answers are wrong, in sentences."""
from __future__ import annotations

from collections import Counter

from experiments.report.causes import Bar, Causes
from experiments.report.cells import Table
from experiments.report.standing import leaders
from experiments.report.words import listed, percent, plural

_NAMED = 3


def on_causes(table: Table, why: Causes | None) -> list[str]:
    """Of the wrong answers of the best cell, and of the best that searches, or else of the one with most of them."""
    if why is None:
        return []
    bars = {bar.cell.id: bar for bar in why.bars}
    if not any(bar.wrong for bar in why.bars):
        return ["No answer is known to be wrong."]
    shown = [cell for cell in table.cells if cell.factors.get("condition") != "closed-book"]
    searched = [cell for cell in shown if cell.factors.get("condition") == "retrieved"]
    worst = max((cell for cell in shown if cell.id in bars), key=lambda cell: bars[cell.id].wrong, default=None)
    chosen = [*leaders(table)[:1], *(leaders(table, searched)[:1] or [cell for cell in [worst] if cell])]
    return [_of(bars[name]) for name in dict.fromkeys(cell.id for cell in chosen) if name in bars and bars[name].wrong]


def _of(bar: Bar) -> str:
    counts = Counter({part.cause.title: part.count for part in bar.parts if part.cause.wrong})
    named = [f"{title} {percent(count / bar.wrong)}" for title, count in counts.most_common(_NAMED)]
    return f"Of {plural(bar.wrong, 'wrong answer')} of {bar.cell.label}: {listed(named)}."
