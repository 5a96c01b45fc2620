"""The sentences above a run's table in the terminal and the report: at most five, and no claim beyond the tests.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ragbed.experiments.formatting import (
    BOUNDS,
    column_title,
    format_p,
    format_percent,
    join_names,
    metric_title,
    plural,
    visible,
)
from ragbed.experiments.metrics import better_sign
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.report.cell_table import ReportCell, Table
from ragbed.experiments.report.pareto import (
    CellPair,
    Ranking,
    best_cells,
    comparable_cells,
    cost_of,
    headline_figures,
    tested_pairs,
)

MAX_SENTENCES = 5
_MANY_FAILED = 0.1  # from this share of failed answers, the text begins with failures
_MAX_NAMED = 3  # cells that a sentence names
_NOUNS = {"reasoning": "strategies", "model": "models", "retriever": "retrievers", "retrieval": "retrieval strategies",
          "pipeline": "pipelines", "format": "formats", "rules": "rules"}
_CONDITIONS = {"retrieved": "With retrieval, ", "provided": "With the provided passages, ",
               "full": "With the whole document, ", "gold": "With perfect retrieval, ",
               "closed-book": "Without documents, "}


def summary_text(summary: Mapping[str, Any], table: Table, kinds: Counter[str] | None = None) -> list[str]:
    """Return at most five sentences on the cells of a table: the best cell, significant differences, and costs.

    `kinds` counts failed answers by kind of failure. Names of cells are in backticks.
    """
    if not table.cells:
        return []
    unjudged = _unjudged(summary.get("unjudged"), table)
    failed, asked = count_failed(table)
    failures = _failures(failed, asked, table, kinds or Counter())
    if failed == asked > 0:
        return failures
    if unjudged and not headline_figures(table):
        return [*unjudged, *failures]
    raced = (summary.get("comparisons") or {}).get("said")
    if raced:  # the cells of a race answered different questions, so their means cannot be ranked
        return [*unjudged, *raced, *failures][:MAX_SENTENCES]
    if summary.get("progress", {}).get("unequal"):
        return [*unjudged, "The cells have answered different questions so far, so their scores are not ranked.",
                *_significant(tested_pairs(summary.get("comparisons"), table)), *failures][:MAX_SENTENCES]
    comparable = comparable_cells(table)
    pairs, compared = (tested_pairs(summary.get("comparisons"), cells) for cells in (table, comparable))
    best = best_cells(comparable)
    found = [_headline(comparable, best, compared, comparable is not table, bool(summary.get("comparisons")))]
    if len(best) == 1:
        ranking = Ranking.of(best[0], compared)
        unit = (summary.get("comparisons") or {}).get("unit")
        found += [*_retrieval(best[0], pairs), *_needed(ranking, unit), *_cheaper(ranking, comparable)]
    found += [*_significant(pairs), *_factors(summary.get("effects"))]
    unreadable = sum(dict(cell.outcomes).get("malformed", 0) for cell in table.cells)
    if unreadable >= _MANY_FAILED * asked:
        failures = [*failures, f"{unreadable:,} of {plural(asked, 'reply', 'replies')} could not be read as an answer: "
                    "they do not have the form that the prompt asks for."]
    first = max(failed, unreadable) >= _MANY_FAILED * asked
    return [*unjudged, *(failures if first else []), *found, *([] if first else failures)][:MAX_SENTENCES]


def count_failed(table: Table) -> tuple[int, int]:
    """Return how many answers of all cells failed, and how many there are."""
    return sum(cell.failed for cell in table.cells), sum(count for cell in table.cells for _, count in cell.outcomes)


def _unjudged(found: Mapping[str, Any] | None, table: Table) -> list[str]:
    """Return a sentence on answers that the judge did not grade, and on cells of which it graded none."""
    if not found:
        return []
    without = [cell for cell in table.cells if {*cell.ids} <= {*found["cells"]}]
    end = "no cell has a score from it" if len(without) == len(table.cells) else \
        f"{_names(without)} {'has' if len(without) == 1 else 'have'} no score from it" if without else \
        f"scores cover the others; `{BOUNDS}` is the range of scores that grades for these could give"
    return [f"{found['said']}; {end}."]


def _failures(failed: int, asked: int, table: Table, kinds: Counter[str]) -> list[str]:
    if not failed:
        return []
    named = [visible(kind.replace("http_", "HTTP ").replace("_", " ")) for kind, _ in kinds.most_common()]
    why = f" ({join_names(named)})" if named else ""
    if failed == asked:
        return [f"All {plural(asked, 'answer')} failed{why}: the figures say nothing about the cells."]
    kept = "are left out of the published metrics" if table.drops_empty else "count as wrong"
    return [f"{failed:,} of {plural(asked, 'answer')} failed{why} and {kept}."]


def _headline(table: Table, best: Sequence[ReportCell], pairs: Sequence[CellPair], partial: bool,
              tested: bool) -> str:
    known = headline_figures(table)
    metric = column_title(table.judges[0]) if len(table.judges) == 1 else metric_title(table.quality)
    if not known:
        return f"No {metric} could be computed." if metric else "The run has no scores."
    if not best:
        return f"The cells were graded by different judges, so their {metric} cannot be compared."
    mean = f"{known[best[0].id].mean:z.2f}"
    shared = {cell.factors.get("condition") or "" for cell in table.cells}
    start = _CONDITIONS.get(min(shared), "") if partial and len(shared) == 1 else ""
    if len(table.cells) == 1:
        return f"{start}{_code(best[0])} scores {mean} over {plural(known[best[0].id].n, 'question')}."
    if len(best) == len(known) > 1:
        every = "both" if len(best) == 2 else f"all {len(best)}"
        return f"{start}{every if start else every.capitalize()} {_noun(table)} score {mean}."
    if len(best) > 1:
        return f"{start}{_names(best)} share the best score ({mean})."
    way = "highest" if better_sign(table.quality) > 0 else "lowest, which is best"
    return f"{start}{_code(best[0])} scores {way} ({mean}){_against(best[0], table, pairs, tested)}."


def _against(best: ReportCell, table: Table, pairs: Sequence[CellPair], tested: bool) -> str:
    """Return the end of the headline: the cells that score significantly worse than the best, and those that do not."""
    ranking, way = Ranking.of(best, pairs), "higher" if better_sign(table.quality) > 0 else "lower"
    if not ranking.beaten and not ranking.tied and not ranking.ahead:
        return ", but no other cell was tested against it" if tested else ", but no difference was tested"
    others = len(table.cells) - 1
    if ranking.ahead:
        return f", but over the questions that both have, {_code(ranking.ahead[0].first)} scores significantly {way}"
    if not ranking.tied:
        return f", significantly {way} than {_others(ranking.beaten, others, table)}"
    questions = plural(ranking.tied[0].tested.n, "question")
    if not ranking.beaten:
        return (f", but with {questions} it is not significantly different from "
                f"{_others(ranking.tied, others, table)}")
    return (f", significantly {way} than {_others(ranking.beaten, others, table)}, but with {questions} not than "
            f"{_others(ranking.tied, others, table)}")


def _others(pairs: Sequence[CellPair], others: int, table: Table) -> str:
    if len(pairs) == others > 1:
        return f"the other {others} {_noun(table)}"
    if len(pairs) <= _MAX_NAMED:
        return _names([pair.first for pair in pairs])
    return f"{len(pairs)} of the other {others} {_noun(table)}"


def _retrieval(best: ReportCell, pairs: Sequence[CellPair]) -> list[str]:
    """Return a sentence on whether retrieval helps. It compares the best cell with the same cell without documents. If
    that pair was not tested, it takes the first tested pair."""
    tested = [pair for pair in pairs if {pair.first.factors.get("condition"), pair.second.factors.get("condition")}
              == {"retrieved", "closed-book"}]
    pair = next((one for one in tested if best.id in (one.first.id, one.second.id)), next(iter(tested), None))
    if pair is None:
        return []
    seen = pair.seen_from(pair.first if pair.first.factors.get("condition") == "retrieved" else pair.second).tested
    helps = better_sign(seen.metric) * (seen.difference or 0.0) > 0
    verdict = "makes no significant difference" if not seen.real else "clearly helps" if helps else "hurts"
    fewer = seen.n < max(pair.first.n, pair.second.n)
    over = f", over the {plural(seen.n, 'question')} scored in both" if fewer else ""
    return [f"Retrieval {verdict}: {seen.after:z.2f} with it, {seen.before:z.2f} without{over} (p {_p(seen.p_holm)})."
            ] if seen.before is not None and seen.after is not None else []


def _needed(ranking: Ranking, unit: str | None) -> list[str]:
    """Say how many units, such as questions, it would take to tell the closest cell from the best one. The detectable
    difference shrinks with the square root of their number."""
    pair = next((one for one in ranking.tied if one.gain >= 0.005 and one.tested.smallest), None)
    if pair is None or ranking.ahead:
        return []
    apart, smallest = pair.gain, pair.tested.smallest or 0.0
    if smallest <= apart:
        return []
    words = "questions" if unit is None else "documents" if unit == "document" else f"groups by {unit}"
    needed = float(f"{(pair.tested.clusters if unit else pair.tested.n) * (smallest / apart) ** 2:.2g}")
    return [f"To tell {_code(pair.first)} from {_code(pair.second)} ({apart:z.2f} apart) you would need about "
            f"{needed:,.0f} {words}."]


def _cheaper(ranking: Ranking, table: Table) -> list[str]:
    cost = cost_of(table.cells)
    pair = ranking.cheapest_tie(cost)
    if pair is None:
        return []
    what = "price" if cost.priced else "tokens"
    return [f"{_code(pair.first)} takes {format_percent(cost.share(pair.first, ranking.cell))} of the {what} of "
            f"{_code(ranking.cell)}, without a significant difference."]


def _significant(pairs: Sequence[CellPair]) -> list[str]:
    if len(pairs) < 2:
        return []
    real = sum(pair.tested.real for pair in pairs)
    return [f"{real:,} of {len(pairs):,} pairs differ{'s' if real == 1 else ''} significantly after Holm correction "
            f"(p < {ALPHA:g})."]


def _factors(effects: Mapping[str, Any] | None) -> list[str]:
    real = [one for one in (effects or {}).get("factors", ()) if one["p_holm"] is not None and one["p_holm"] < ALPHA]
    named = [f"{one['factor']} (p {_p(one['p_holm'])})" for one in real]
    return [f"Significant factor{'s' if len(named) > 1 else ''}: {join_names(named)}."] if named else []


def _noun(table: Table) -> str:
    return _NOUNS.get(table.varying[0], "cells") if len(table.varying) == 1 else "cells"


def _code(cell: ReportCell) -> str:
    return f"`{cell.label}`"


def _names(cells: Sequence[ReportCell]) -> str:
    return join_names([_code(cell) for cell in cells], _MAX_NAMED)


def _p(p: float | None) -> str:
    words = format_p(p)
    return words if words.startswith("<") else f"= {words}"
