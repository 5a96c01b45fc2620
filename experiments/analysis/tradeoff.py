"""The refusal trade-off: how many questions are answered, and how many of the answers are wrong.

These are coverage and selective risk of selective classification (El-Yaniv and Wiener, "On the Foundations of
Noise-free Selective Classification", JMLR 11, 2010, section 2), with loss 0 for right answers and loss 1 for all
others.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from ragbed.experiments.analysis.causes import Case, Cases, Grouped, share_by_question
from ragbed.experiments.analysis.view import Chart, Goal, Point, View
from ragbed.experiments.cells import Cell
from ragbed.experiments.formatting import format_percent, metric_title, truncate
from ragbed.experiments.metrics import Estimate, estimate, may_refuse
from ragbed.experiments.metrics.intervals import bootstrap_interval, clip_interval, effective_size
from ragbed.experiments.metrics.sample import Totals, draw_resamples

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

Sweeps = Mapping[str, tuple[str, float]]  # see `experiments.runs.run_manifest.Made`
_ANSWERED, _WRONG = "answered, not refused", "wrong among answered"


def estimate_tradeoff(cells: Sequence[Cell], cases: Cases, grouped: Grouped, sweeps: Sweeps,
                seed: int = 0) -> list[dict[str, Any]] | None:
    """Return the summary's `tradeoff`: a row for each cell whose rules offer a refusal. Return None if there are no
    such cells, or if the benchmark has no correctness metric.

    `answered` and `refused` are shares of all questions. The other questions failed or have no readable reply. `risk`
    is the share of scored and judged answers that are wrong. Partially correct answers, and all answers to unanswerable
    questions, count as wrong.

    Cells that differ only in their strategy's threshold form a sweep. Their rows have the same `sweep`, the cell's
    `threshold`, the shares of unanswerable (`rightly`) and answerable (`needlessly`) questions that it refuses, and
    `area`. This is the area under the risk-coverage curve, as scikit-learn's `auc` computes it.
    """
    if not cases:
        return None
    rows = [_tradeoff_row(cell, cases[cell.id], grouped, sweeps) for cell in cells if may_refuse(cell.rules)]
    for sweep in dict.fromkeys(row["sweep"] for row in rows if "sweep" in row):
        own = [row for row in rows if row.get("sweep") == sweep]
        area = _area([cases[row["cell"]] for row in own if row["risk"]["n"]], grouped, seed)
        for row in own:
            row["area"] = area
    return rows or None


def _area(points: Sequence[Mapping[str, Case]], grouped: Grouped, seed: int) -> Estimate | None:
    """Compute the area under the curve through these cells' points, with a bootstrap interval."""
    import numpy as np

    shared = sorted(set(points[0]).intersection(*points[1:])) if len(points) > 1 else []
    if not shared:
        return None
    units = np.unique([grouped.get(name, name) for name in shared], return_inverse=True)[1]
    table = np.zeros((2, int(units.max()) + 1, 2, 2, len(points)))
    for (at, cases), (unit, name) in product(enumerate(points), zip(units, shared, strict=True)):
        case = cases[name]
        told = case.answered and case.score is not None and not case.unjudged
        table[:, unit, int(not case.answerable), 0, at] += case.answered, 1
        table[:, unit, int(not case.answerable), 1, at] += told and not case.right, told

    def areas(totals: Totals) -> Floats:
        sums, counts = (array.sum(axis=1) for array in totals)
        coverage, risk = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0).swapaxes(0, 1)
        order = np.argsort(coverage, axis=1, kind="stable")
        x, y = (np.take_along_axis(one, order, axis=1) for one in (coverage, risk))
        return np.asarray(np.trapezoid(y, x, axis=1))

    sample = Totals(*table)
    drawn, = draw_resamples([sample], seed)
    area = float(areas(sample.whole())[0])
    interval = bootstrap_interval(area, areas(drawn), effective_size(table[1, :, :, 0, 0].sum(axis=1)))
    return estimate(area, clip_interval((0.0, 1.0), interval), len(shared))


def _tradeoff_row(cell: Cell, cases: Mapping[str, Case], grouped: Grouped, sweeps: Sweeps) -> dict[str, Any]:
    told = {question: not case.right for question, case in cases.items()
            if case.answered and case.score is not None and not case.unjudged}
    refused = {question: case.refused for question, case in cases.items()}
    row = {"cell": cell.id, "answered": share_by_question({question: case.answered for question, case in cases.items()},
                                                          grouped),
           "refused": share_by_question(refused, grouped), "risk": share_by_question(told, grouped)}
    if (swept := sweeps.get(cell.reasoning)) is None:
        return row
    needlessly, rightly = ({question: hit for question, hit in refused.items() if cases[question].answerable is one}
                           for one in (True, False))
    return {**row, "sweep": replace(cell, reasoning=swept[0]).id, "threshold": swept[1],
            "rightly": share_by_question(rightly, grouped), "needlessly": share_by_question(needlessly, grouped)}


def refusal_views(stored: Sequence[Mapping[str, Any]] | None, rows: Sequence[Mapping[str, Any]],
                  called: Mapping[str, str], correctness_metrics: Sequence[str]) -> list[View]:
    """Return views of the result of `estimate_tradeoff`: shares, with a chart if anything was refused, thresholds, and
    areas. `called` maps the ids of the cells to show to their labels."""
    own = [row for row in stored or () if row["cell"] in called]
    if not own:
        return []
    sweeps = list(dict.fromkeys(row["sweep"] for row in own if row.get("sweep")))
    swept = sorted((row for row in own if row.get("sweep")),
                   key=lambda row: (sweeps.index(row["sweep"]), row["threshold"]))
    placed = [row for row in own if row["answered"]["mean"] is not None and row["risk"]["mean"] is not None]
    drawn = any(row["answered"]["mean"] != 1 for row in placed)
    chart = _chart([*(row for row in placed if row not in swept), *(row for row in swept if row in placed)], rows,
                   called, correctness_metrics)
    views = [View("refusals", "Refusals: how many questions are answered, and how many of the answers are wrong", (
        "cell", _ANSWERED, _WRONG), tuple((called[row["cell"]], row["answered"], row["risk"]) for row in own), main=1,
        notes=() if drawn else ("No cell refused anything, so there is no trade-off to draw.",),
        charts=(chart,) if drawn else (), section="Refusals")]
    if swept:
        views.append(View("refusals:thresholds", "Answers and refusals at each threshold", (
            "cell", "threshold", _ANSWERED, _WRONG, "rightly refused", "needlessly refused"), tuple(
            (called[row["cell"]], float(row["threshold"]), row["answered"], row["risk"], row["rightly"],
             row["needlessly"]) for row in swept), 2, 2, section="Refusals", notes=(
            "The best threshold is chosen on the same questions that measure it, so its figures are optimistic.",)))
        firsts = [next(row for row in swept if row["sweep"] == sweep) for sweep in sweeps]
        views.append(View("refusals:areas", "Area under each line (wrong among answered, by share answered)", (
            "first cell of the line", "area"), tuple((called[row["cell"]], row["area"]) for row in firsts), main=1,
            section="Refusals", notes=("A smaller area is better, but only between lines that cover the same shares "
                                       "of answers.",)))
    return views


def _chart(own: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], called: Mapping[str, str],
           correctness_metrics: Sequence[str]) -> Chart:
    points = []
    for row in own:
        answered, risk, label = row["answered"], row["risk"], called[row["cell"]]
        at = (f"threshold {row['threshold']:g}",) if row.get("sweep") else ()
        points.append(Point(
            label, answered["mean"], risk["mean"], risk["low"], risk["high"], answered["low"], answered["high"], label,
            row.get("sweep") or "", (
                truncate(label), *at, f"answers {format_percent(answered['mean'])} of {answered['n']}",
                f"wrong in {format_percent(risk['mean'])} of {risk['n']} answered")))
    shares = set()  # shares of answerable questions; None if unknown
    for row in (row for row in rows if any(row["id"] == one["cell"] for one in own)):
        over, right = (row["metrics"].get(name, {}).get("n", 0) for name in ("refused_answerable", "refusal_accuracy"))
        shares.add(over / (over + right) if over + right else None)
    ideal = shares.pop() if len(shares) == 1 else None  # several shares mean that some cells dropped gold
    goal = None if ideal is None else Goal(
        ideal, 0.0, "all are answerable" if ideal == 1 else f"{format_percent(ideal)} are answerable",
        "all answerable questions answered, none wrong")
    said = ["Cells further left refuse more. A cell is lower if it refuses the questions that it would get wrong."]
    if any(point.line for point in points):
        said.append("A line joins strategies that differ only in their threshold. Its best point is chosen on the same "
                    "questions that measure it, so it is optimistic.")
    if goal is None:
        said.append("The ideal cannot be drawn: the share of answerable questions differs between cells or is unknown.")
    if correctness_metrics:
        names = ", or ".join(map(metric_title, correctness_metrics))
        said.append(f"An answer is wrong if {names} is below 1, or if the question is unanswerable.")
    return Chart("scatter", "Share of questions answered, and share of wrong answers among them",
                 "questions answered, not refused", _WRONG, tuple(points), percent=True, goal=goal,
                 caption=" ".join(said))
