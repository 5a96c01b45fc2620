"""Equal budgets: what each way of answering reaches where an answer that took more had been ended by the budget."""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from experiments.analysis.pairs import difference_view, tested_pairs
from experiments.analysis.variants import Variant, replicates, variants_of
from experiments.analysis.view import Value, View
from experiments.cells import Cell
from experiments.metrics import Scoring, aggregate, may_refuse, scored_result, shown_name
from experiments.question import Question, Scheme
from experiments.record import Record, Result, Unit, used
from experiments.runs.finished import Finished
from experiments.statistics import Comparison, compare, pairs_of
from strategies.types import Failure

_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_CUT = ("budget", "timeout", "error")
_NOTHING = {"text": "", "refused": False, "refused_as_published": False, "cited": (), "invalid_citations": (),
            "tagged": None, "verdict": None, "figures": {}}


@dataclass(frozen=True, slots=True)
class Kept:
    """A record with what its answer took, and what it would have been if the budget had ended it.

    Attributes:
        again: whether a journal answered some of its calls, so that its seconds say nothing of a model's speed.
        cut: whether a limit of the run, a timeout or an error ended it, so that what its answer would have taken is
            not known.
    """

    used: float
    result: Result
    ended: Result
    again: bool
    cut: bool

    def fits(self, budget: float) -> bool:
        """Return whether it came to its own end with this budget."""
        return self.used <= budget and not self.cut

    def within(self, budget: float) -> Result:
        """Return what the record is with this budget; one that was cut is a failure with any."""
        return self.result if self.used <= budget else self.ended


def kept_of(record: Record, unit: Unit, cell: Cell, question: Question, scheme: Scheme, scoring: Scoring) -> Kept:
    """Return the record, and its scores with the outcome `budget`: strategies are played alike whatever is left to
    them, so that nothing but its end is different."""
    result = record.result
    ended = result.model_copy(update={**_NOTHING, "outcome": "budget",
                                      "failure": Failure("budget", f"the question may use fewer {unit}")})
    scored = scored_result(ended, question, scheme, scoring, cell.rules, cell.separators, cell.searched)
    return Kept(used(record, unit), result, scored, record.timing.replayed > 0, result.outcome in _CUT)


def usual_budgets(kept: Iterable[Kept]) -> tuple[float, ...]:
    """Return those that a tenth, a quarter, half, three quarters, nine tenths and all of the records that came to
    their own end keep, rounded up to two digits; of all records where none did."""
    every = list(kept)
    values = sorted(one.used for one in every if not one.cut) or sorted(one.used for one in every)
    return tuple(dict.fromkeys(_up(values[math.ceil(share * len(values)) - 1]) for share in _SHARES)) if values else ()


def answers_within(kept: Mapping[str, Mapping[str, Kept]], budget: float) -> dict[str, dict[str, Result]]:
    """By cell, then by question: the results with this budget."""
    return {cell: {question: one.within(budget) for question, one in own.items()} for cell, own in kept.items()}


def share_within(cells: Sequence[Mapping[str, Kept]], budget: float) -> float:
    """Return the share of the records that came to their own end within the budget."""
    every = [one.fits(budget) for own in cells for one in own.values()]
    return sum(every) / len(every) if every else 0.0


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
    tests. Where they would be too many, fewer pairs are tested, each of them at every budget.

    Args:
        budgets: none stands for `usual_budgets`.

    Returns:
        `budgets`, `rows` (a variant each, with `used`, its mean, and at each budget `share` of the records within it
        and the metric's estimate), `tests`, `notes`.
    """
    kept = _kept(run, unit)
    chosen = sorted(set(budgets)) or usual_budgets(one for own in kept.values() for one in own.values())
    sides = [variants_of(run.rows, answers_within(kept, budget)) for budget in chosen]
    rows = [_row(run, [kept[row["id"]] for row in cells], [variants[place] for variants in sides], chosen, metric)
            for place, cells in enumerate(replicates(run.rows))]
    tests, notes = _tests(run, sides, chosen, metric)
    return {"unit": unit, "metric": metric, "budgets": list(chosen), "rows": rows, "tests": tests,
            "notes": [*_on_cut(kept), *_on_replayed(kept, unit), *notes]}


def _on_cut(kept: Mapping[str, Mapping[str, Kept]]) -> list[str]:
    """That what some records would have taken is not known."""
    every = [one for own in kept.values() for one in own.values()]
    cut = sum(one.cut for one in every)
    return [f"{cut} of {len(every)} records were ended by a limit of the run, a timeout or an error: what their "
            "answers would have taken is not known, so they are failures at every budget, and no share holds "
            "them."] if cut else []


def _on_replayed(kept: Mapping[str, Mapping[str, Kept]], unit: Unit) -> list[str]:
    """That seconds are not those of a model where a journal answered."""
    every = [one for own in kept.values() for one in own.values()]
    again = sum(one.again for one in every)
    return [f"A journal answered calls of {again} of {len(every)} records: their seconds are not what a model would "
            "take, and count all the same."] if unit == "seconds" and again else []


def _kept(run: Finished, unit: Unit) -> dict[str, dict[str, Kept]]:
    cells = {cell.id: cell for cell in run.cells}
    found: dict[str, dict[str, Kept]] = defaultdict(dict)
    for record in run.folder.records(traces=unit == "searches"):
        result = record.result
        if result.cell in cells:
            found[result.cell][result.question] = kept_of(
                record, unit, cells[result.cell], run.questions[result.question], run.scheme, run.scoring)
    return found


def _row(run: Finished, own: Sequence[Mapping[str, Kept]], variants: Sequence[Variant], budgets: Sequence[float],
         metric: str) -> dict[str, Any]:
    first, uses = variants[0].row["id"], [one.used for cell in own for one in cell.values()]
    return {"cell": first, "label": run.labels[first], "used": fmean(uses) if uses else None,
            "at": [{"budget": budget, "share": share_within(own, budget), **_figure(run, variant, metric)}
                   for budget, variant in zip(budgets, variants, strict=True)]}


def _figure(run: Finished, variant: Variant, metric: str) -> dict[str, Any]:
    clusters = [run.grouped.of.get(question, question) for question in variant.answers]
    made = aggregate(list(variant.answers.values()), run.scoring, run.seed,
                     refusing=may_refuse(variant.row["rules"]), clusters=clusters)
    return dict(made.get(metric) or {"mean": None, "low": None, "high": None, "n": 0})


def _tests(run: Finished, sides: Sequence[Sequence[Variant]], budgets: Sequence[float],
           metric: str) -> tuple[list[dict[str, Any]], list[str]]:
    each = [tested_pairs(variants)[0] for variants in sides]
    pairs = max(map(len, each), default=0)
    most = min(pairs, _MOST_TESTS // max(len(budgets), 1))
    wanted = [(budget, *pair) for budget, own in zip(budgets, each, strict=True) for pair in own[:most]]
    made = [(budget, first, second, pairs_of(
        metric, first.answers, second.answers, run.grouped.of, run.scoring,
        may_refuse(first.row["rules"]) and may_refuse(second.row["rules"])))
        for budget, _, first, second in wanted]
    shown = [one for one in made if one[3].n]
    found = compare([pairs for *_, pairs in shown], run.seed)
    rows = [{"budget": budget, "first": run.labels[first.row["id"]], "second": run.labels[second.row["id"]],
             **one.plain()} for (budget, first, second, _), one in zip(shown, found, strict=True)]
    notes = tested_pairs(sides[0])[1] if sides else []
    left = [f"Tested are {most} of {pairs} pairs, each at every budget: more than {_MOST_TESTS} tests are not made; "
            "give fewer budgets by --at for more pairs."] if most < pairs else []
    return rows, [*notes, *left, *([run.grouped.note] if run.grouped.note else []),
                  f"p (Holm) is corrected for {len(rows)} comparisons: at each budget, all cells that differ in "
                  "exactly one factor."]


def budget_views(found: Mapping[str, Any], judge: str | None) -> list[View]:
    """Return a view of every way of answering at each budget, and one of which of them differ there.

    Args:
        found: as `budgets_of_run` makes it.
        judge: of the run.
    """
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
