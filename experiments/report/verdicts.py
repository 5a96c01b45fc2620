"""What the figures say, in sentences that claim no more than the tests allow."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.record import Result
from experiments.report.causes import Causes
from experiments.report.cells import Table, table
from experiments.report.comparisons import Comparisons, comparisons
from experiments.report.contenders import contenders
from experiments.report.cost import Cost, cost_of
from experiments.report.effects import Effects
from experiments.report.entrants import entrants
from experiments.report.on_bounds import on_bounds
from experiments.report.on_causes import on_causes
from experiments.report.on_cost import on_cost
from experiments.report.on_effects import on_effects
from experiments.report.on_failures import on_failures, without_reply
from experiments.report.on_parts import on_parts
from experiments.report.on_quality import headline, on_differences, on_quality
from experiments.report.on_refusals import on_refusals

_APART = "Best of each"  # has a line for each level


@dataclass(frozen=True, slots=True)
class Verdict:
    """Lines of sentences, and what they are about; the first of all is about nothing in particular."""

    about: str
    lines: tuple[str, ...]


def verdicts(whole: Table, results: Sequence[Result], cost: Cost, tested: Comparisons | None = None,
             found: Effects | None = None, why: Causes | None = None) -> list[Verdict]:
    """What a reader takes home first, then quality, factors, cost, causes, refusals and failures."""
    if not whole.cells:
        return []
    best = contenders(whole)
    among = tested.among(best) if tested else None
    silent = without_reply(whole)
    first = silent.said if silent.all else " ".join([silent.said, headline(best, among, cost)]) if silent.many else \
        headline(best, among, cost)
    parts = (("", [first]), ("Ceiling and floor", on_bounds(whole, best)),
             ("Differences", on_differences(tested)), ("What it beats", on_quality(best, among)),
             (_APART, on_parts(whole, tested)), ("Factors", on_effects(found)), ("Cost", on_cost(best, cost, among)),
             ("Causes", on_causes(best, why)), ("Refusals", on_refusals(whole)),
             ("Failures", on_failures(whole, results)))
    return [Verdict(about, tuple(said) if about == _APART else (" ".join(said),)) for about, said in parts if said]


def headlines(summary: Mapping[str, Any]) -> list[str]:
    """The sentences that say which cell is best, by the summary alone."""
    whole = entrants(table(summary["cells"], summary["columns"]), summary.get("repeated") or ())
    if not whole.cells:
        return []
    best, cost, tested = contenders(whole), cost_of(whole.cells), comparisons(summary.get("comparisons"), whole)
    among = tested.among(best) if tested else None
    silent = without_reply(whole)
    if silent.all:
        return [silent.said]
    said = [headline(best, among, cost), *on_bounds(whole, best), *on_differences(tested), *on_parts(whole, tested)]
    return [silent.said, *said] if silent.many else said
