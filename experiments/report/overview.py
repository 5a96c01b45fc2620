"""What the page says before its questions: sentences, charts, tables, and the links to them.

What the figures say, in sentences that claim no more than the tests allow.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import NO_MODEL
from experiments.record import Result
from experiments.report.breakdowns import breakdowns
from experiments.report.causes import Causes, causes
from experiments.report.cells import Table, table
from experiments.report.comparisons import Comparisons, comparisons
from experiments.report.dose import dose
from experiments.report.effects import Effects, effects
from experiments.report.entrants import contenders, entrants
from experiments.report.grid import grids
from experiments.report.papers import papers
from experiments.report.plot import Cost, cost_of, front, plot
from experiments.report.sentences import headline, on_bounds, on_differences, on_parts, on_quality
from experiments.report.sentences_more import on_causes, on_cost, on_effects, on_failures, on_refusals, without_reply
from experiments.report.text import ReportInput
from experiments.report.tradeoff import tradeoff
from experiments.words import column_words, metric_words

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


def overview(view: ReportInput, table: Table, results: Sequence[Result]) -> dict[str, Any]:
    """The templates' data, and `sections`: anchors and titles of what there is, in order.

    A summary of an earlier version, without comparisons and the like, has fewer sections.
    """
    summary, cost = view.summary, cost_of(table.cells)
    whole = entrants(table, summary.get("repeated") or ())
    tested, found = comparisons(summary.get("comparisons"), whole), effects(summary.get("effects"))
    why, whole_cost = causes(summary.get("attribution"), table), cost_of(whole.cells)
    rivals = contenders(whole)
    made = {
        "table": table, "cost": cost, "front": {id for cell in front(rivals, whole_cost) for id in cell.ids},
        "rivals": rivals if len(rivals.cells) < len(whole.cells) else None,
        "verdicts": verdicts(whole, results, whole_cost, tested, found, why), "tested": tested,
        "effects": found, "why": why, "linked": bool(view.rights), "merged": len(whole.cells) < len(table.cells),
        "right": _right(view.rights), "headline": list(view.rights) in ([], [table.quality]),
        "plot": plot(whole, whole_cost), "grids": grids(table), "tradeoff": tradeoff(summary.get("tradeoff"), table),
        "asked": not table.cells or any(cell.factors.get("model") != NO_MODEL for cell in table.cells),
        "dose": dose(summary.get("dose"), whole),
        "breakdowns": breakdowns(summary.get("views") or (), {cell.judge for cell in table.cells if cell.judge}),
        "papers": papers(view, table.cells, results), "facts": (*table.shared, *view.facts),
        "quality": column_words(table.judges[0]) if len(table.judges) == 1 else metric_words(table.quality)}
    return {**made, "sections": [(anchor, title) for anchor, title, there in _sections(made) if there]}


def _right(rights: Sequence[str]) -> str:
    """The metrics whose score of 1 means right, in words."""
    return ", or else ".join(metric_words(name) for name in rights)


def _sections(made: dict[str, Any]) -> list[tuple[str, str, bool]]:
    crossed = made["grids"]
    title = " × ".join(crossed.factors) if crossed else "Factors"
    return [("summary", "Summary", True), ("plot", "Cost and quality", made["plot"] is not None),
            ("factors", title[:1].upper() + title[1:], bool(crossed or made["effects"])),
            ("causes", "Causes", made["why"] is not None),
            ("dose", "Dose and response", made["dose"] is not None),
            ("refusals", "Refusals", made["tradeoff"] is not None),
            ("figures", "All figures", True), ("comparisons", "Comparisons", made["tested"] is not None),
            ("breakdowns", "Breakdowns", bool(made["breakdowns"])),
            ("papers", "Published figures", bool(made["papers"])), ("questions", "Questions", True)]
