"""Equal budgets: what each way of answering reaches where an answer that took more had been ended by the budget."""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ragbed.experiments.analysis.pairs import difference_view, tested_pairs
from ragbed.experiments.analysis.variants import Variant, averages_of, compared, replicates, variants_of
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.cells import Cell
from ragbed.experiments.metrics import scored_result, share_of, shown_name
from ragbed.experiments.record import Record, Result, Unit, used
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.statistics import Comparison
from ragbed.strategies.types import Failure

_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_CUT = ("budget", "timeout", "error")
_NOTHING = {"text": "", "refused": False, "refused_as_published": False, "cited": (), "invalid_citations": (),
            "tagged": None, "verdict": None, "figures": {}}


@dataclass(frozen=True, slots=True)
class Kept:
    """A record with what its answer took, and what it would have been if the budget had ended it."""

    used: float
    result: Result
    ended: Result
    again: bool  # whether a journal answered calls of it, so that its seconds say nothing of a model's speed
    cut: bool  # whether a limit, a timeout or an error ended it, so that what it would have taken is not known


def _kept(record: Record, unit: Unit, cell: Cell, run: Finished) -> Kept:
    """Strategies are played alike whatever is left to them, so that nothing but the end of one is different."""
    result = record.result
    ended = result.model_copy(update={**_NOTHING, "outcome": "budget",
                                      "failure": Failure("budget", f"the question may use fewer {unit}")})
    scored = scored_result(ended, run.questions[result.question], run.scheme, run.scoring, cell.rules, cell.separators,
                           cell.ranked)
    return Kept(used(record, unit), result, scored, record.timing.replayed > 0, result.outcome in _CUT)


def usual_budgets(kept: Sequence[Kept]) -> tuple[float, ...]:
    """Return those that a tenth, a quarter, half, three quarters, nine tenths and all of the records that came to
    their own end keep, rounded up to two digits; of all records where none did."""
    values = sorted(one.used for one in kept if not one.cut) or sorted(one.used for one in kept)
    return tuple(dict.fromkeys(_up(values[math.ceil(share * len(values)) - 1]) for share in _SHARES)) if values else ()


def _up(value: float) -> float:
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    rounded = math.ceil(round(value / unit, 9)) * unit
    return float(round(rounded)) if rounded >= 10 else round(rounded, 12)


_MOST_TESTS = 2_000  # each takes tens of milliseconds


def budgets_of_run(run: Finished, unit: Unit, budgets: Sequence[float], metric: str) -> dict[str, Any]:
    """Return what each way of answering reaches where no question may use more than a budget.

    A record whose answer took more counts as ended by the budget, as `limits` would have ended it: tokens, calls and
    searches exactly, seconds as far as they are the same twice. Every other record counts as it is. Cells that differ
    in exactly one factor are tested at each budget, question by question; p is corrected by Holm over all of these
    tests. Where they would be too many, fewer pairs are tested, each of them at every budget. Without budgets they are
    `usual_budgets`. Returns `budgets`, `rows` (a variant each, with `used`, its mean, and at each budget `share` of the
    records within it and the metric's estimate), `tests`, `notes`.
    """
    known = {cell.id: cell for cell in run.cells}
    kept: dict[str, dict[str, Kept]] = defaultdict(dict)
    for record in run.folder.records(traces=unit == "searches"):
        if cell := known.get(record.result.cell):
            kept[cell.id][record.result.question] = _kept(record, unit, cell, run)
    every = [one for own in kept.values() for one in own.values()]
    chosen = sorted(set(budgets)) or usual_budgets(every)
    sides = [variants_of(run.rows, {id: {question: one.result if one.used <= budget else one.ended
                                         for question, one in own.items()}
                                    for id, own in kept.items()}) for budget in chosen]
    rows = []
    for place, cells in enumerate(replicates(run.rows)):
        own = [one for row in cells for one in kept[row["id"]].values()]
        rows.append({"cell": cells[0]["id"], "label": run.labels[cells[0]["id"]],
                     "used": fmean(one.used for one in own) if own else None,
                     "at": [{"budget": budget,
                             "share": sum(one.used <= budget and not one.cut for one in own) / max(len(own), 1),
                             **averages_of(variants[place], run.grouped.of, run.scoring, run.seed).get(
                                 metric, share_of(0, 0))} for budget, variants in zip(chosen, sides, strict=True)]})
    tests, notes = _tests(run, sides, chosen, metric)
    return {"unit": unit, "metric": metric, "budgets": list(chosen), "rows": rows, "tests": tests,
            "notes": [*_on_records(every, unit), *notes]}


def _on_records(every: Sequence[Kept], unit: Unit) -> Iterator[str]:
    cut, again = sum(one.cut for one in every), sum(one.again for one in every)
    if cut:
        yield (f"{cut} of {len(every)} records were ended by a limit of the run, a timeout or an error: what their "
               "answers would have taken is not known, so they are failures at every budget, and no share holds them.")
    if again and unit == "seconds":
        yield (f"A journal answered calls of {again} of {len(every)} records: their seconds are not what a model would "
               "take, and count all the same.")


def _tests(run: Finished, sides: Sequence[Sequence[Variant]], budgets: Sequence[float],
           metric: str) -> tuple[list[dict[str, Any]], list[str]]:
    each = [tested_pairs(variants)[0] for variants in sides]
    pairs = max(map(len, each), default=0)
    most = min(pairs, _MOST_TESTS // max(len(budgets), 1))
    wanted = [(budget, first, second) for budget, own in zip(budgets, each, strict=True)
              for _, first, second in own[:most]]
    found = compared(metric, [(first, second) for _, first, second in wanted], run.grouped.of, run.scoring, run.seed)
    rows = [{"budget": budget, "first": run.labels[first.row["id"]], "second": run.labels[second.row["id"]],
             **one.plain()} for (budget, first, second), one in zip(wanted, found, strict=True) if one]
    notes = tested_pairs(sides[0])[1] if sides else []
    left = [f"Tested are {most} of {pairs} pairs, each at every budget: more than {_MOST_TESTS} tests are not made; "
            "give fewer budgets by --at for more pairs."] if most < pairs else []
    return rows, [*notes, *left, *([run.grouped.note] if run.grouped.note else []),
                  f"p (Holm) is corrected for {len(rows)} comparisons: at each budget, all cells that differ in "
                  "exactly one factor."]


def budget_views(found: Mapping[str, Any], judge: str | None) -> list[View]:
    """Return a view of every way of answering at each budget, and one of which of them differ there, of what
    `budgets_of_run` found in a run with that judge."""
    metric, unit = shown_name(found["metric"], judge), found["unit"]
    rows: list[tuple[Value, ...]] = []
    for row in found["rows"]:
        for point in row["at"]:
            own = {name: point[name] for name in ("mean", "low", "high", "n")}
            rows.append((row["label"], float(point["budget"]), point["n"], own if point["n"] else None,
                         float(point["share"]), None if row["used"] is None else float(row["used"])))
    views = [View("budgets", f"{metric} where a question may use so many {unit}", (
        "cell", f"budget, {unit}", "n", metric, "share of records within it", f"{unit} used"), tuple(rows), 2,
        notes=tuple(found["notes"]))]
    if tests := [((float(one["budget"]), f"{one['first']} → {one['second']}"), Comparison.of(found["metric"], one))
                 for one in found["tests"]]:
        unseen = () if any(one.real for _, one in tests) else ("At no budget are two cells really different.",)
        views.append(difference_view("budgets:differences", f"Which differ at equal budgets, by {metric}",
                                     ("budget", "what changes"), tests, unseen))
    return views
