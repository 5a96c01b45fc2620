"""What the page says before its questions: sentences, charts, tables, and the links to them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.models import NO_MODEL
from experiments.record import Result
from experiments.report.breakdowns import breakdowns
from experiments.report.causes import causes
from experiments.report.cells import Table
from experiments.report.comparisons import comparisons
from experiments.report.contenders import contenders
from experiments.report.cost import cost_of, front
from experiments.report.dose import dose
from experiments.report.effects import effects
from experiments.report.entrants import entrants
from experiments.report.grid import grids
from experiments.report.papers import papers
from experiments.report.plot import plot
from experiments.report.tradeoff import tradeoff
from experiments.report.verdicts import verdicts
from experiments.report.view import ReportInput
from experiments.report.words import column_words, metric_words


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
