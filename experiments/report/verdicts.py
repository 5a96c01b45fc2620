"""What the figures say, in sentences that claim no more than the tests allow."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.record import Result
from experiments.report.causes import Causes
from experiments.report.cells import Table
from experiments.report.comparisons import Comparisons
from experiments.report.cost import Cost
from experiments.report.effects import Effects
from experiments.report.on_causes import on_causes
from experiments.report.on_cost import on_cost
from experiments.report.on_effects import on_effects
from experiments.report.on_parts import on_parts
from experiments.report.on_quality import headline, on_others, on_quality
from experiments.report.words import listed, plural

_APART = "Best of each"  # has a line for each level
FAILED = ("malformed", "too_long", "budget", "timeout", "error")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Lines of sentences, and what they are about; the first of all is about nothing in particular."""

    about: str
    lines: tuple[str, ...]


def verdicts(table: Table, results: Sequence[Result], cost: Cost, tested: Comparisons | None = None,
             found: Effects | None = None, why: Causes | None = None) -> list[Verdict]:
    """What a reader takes home first, then quality, factors, cost, causes, refusals and failures."""
    if not table.cells:
        return []
    parts = (("", [headline(table, tested)]), ("What it beats", on_quality(table, tested)),
             (_APART, on_parts(table, tested)), ("Factors", on_effects(found)), ("All comparisons", on_others(tested)),
             ("Cost", on_cost(table, cost, tested)), ("Causes", on_causes(table, why)),
             ("Refusals", _refusals(results)), ("Failures", _failures(table)))
    return [Verdict(about, tuple(said) if about == _APART else (" ".join(said),)) for about, said in parts if said]


def _refusals(results: Sequence[Result]) -> list[str]:
    """By the run's own scoring, where refusals are scored at all."""
    right, over = ([score for result in results if (score := result.scores.get(name)) is not None]
                   for name in ("refusal_accuracy", "refused_answerable"))
    if not right:
        return []
    sentence = f"Of {plural(len(right), 'answer')} to unanswerable questions, {sum(right):.0f} refused"
    more = f"; of {len(over):,} to answerable ones, {sum(over):.0f} did needlessly" if over else ""
    return [f"{sentence}{more}."]


def _failures(table: Table) -> list[str]:
    """Of all answers, one for each question in each cell."""
    counts: Counter[str] = Counter()
    for cell in table.cells:
        counts.update(dict(cell.outcomes))
    failed = {name: counts[name] for name in FAILED if counts[name]}
    if not failed:
        return [f"None of {plural(counts.total(), 'answer')} failed."] if counts else []
    named = listed([f"{count} {name.replace('_', ' ')}" for name, count in failed.items()], len(FAILED))
    kept = ("As published, those without text count in no mean of the published metrics, and n is smaller there."
            if table.drops_empty else "They stay in every mean.")
    return [f"{sum(failed.values()):,} of {plural(counts.total(), 'answer')} failed: {named}. {kept}"]
