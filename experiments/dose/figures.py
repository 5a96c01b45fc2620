"""The `dose` of a run's summary: curves, the areas under them, what the dose does, and which areas differ."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from experiments.comparing.own_intervals import Figures, own_figures, together_of, with_own_intervals
from experiments.comparing.variants import Variant, variants_of
from experiments.dose.area import Areas, areas
from experiments.dose.curves import HARDNESS, Curve, curves_of
from experiments.dose.notes import MOST, notes
from experiments.dose.reached import Reached
from experiments.metrics.aggregate import aggregate
from experiments.metrics.sample import Row
from experiments.metrics.scored import Scoring, may_refuse
from experiments.statistics import Clusters, compare, pairs_of

BESIDE = ("citation_f1", "support_f1", "refused_answerable", "refusal_accuracy", "recall@5", "recall@10", "ndcg@10")


@dataclass(frozen=True, slots=True)
class _Run:
    """What all figures are computed with."""

    clusters: Clusters
    metric: str
    scoring: Scoring
    seed: int
    together: Mapping[str, Figures]
    reached: Mapping[str, Reached]

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that are shown: the one that is compared first."""
        return tuple(dict.fromkeys((self.metric, *BESIDE)))


def dose_of(rows: Sequence[Mapping[str, Any]], answers: Mapping[str, Mapping[str, Row]], clusters: Clusters,
            metric: str, scoring: Scoring, seed: int = 0, repeated: Sequence[Mapping[str, Any]] = (),
            reached: Mapping[str, Reached] | None = None) -> dict[str, Any] | None:
    """What doses of negatives do; None where no two cells differ in the dose alone.

    Of each curve: the figures of its cells; the areas (`area.areas`) with intervals, as any score has them; `change`,
    the last dose compared with the first, and over the number of negatives `slope`, that difference and its interval
    over the range of doses: by how much one more negative changes the metric on average. Areas are tested as any
    score is, question by question: all pairs of curves over the same doses that differ in one factor. p is corrected
    by Holm over all pairs, and over all changes.

    Args:
        rows: the cells of the summary.
        answers: by cell's id, then by question.
        metric: the one by which curves are compared; citations, refusals and rankings stand beside it. Where no cell
            has it, as none is right without the gold, the first of these is.
        repeated: the summary's, whose intervals are those of what was asked several times.
        reached: by cell's id, of `reached_of`.
    """
    curves = curves_of(variants_of(rows, answers))
    if not curves:
        return None
    run = _Run(clusters, metric, scoring, seed, together_of(repeated), reached or {})
    shown = _shown(curves, run)
    if shown and metric not in shown:
        run = replace(run, metric=shown[0])
    own = [areas(curve) for curve in curves]
    figures = [_areas(curve, found, run) for curve, found in zip(curves, own, strict=True)]
    every = [(factors[0], first, second) for first, second in combinations(range(len(curves)), 2)
             if curves[first].dosed == curves[second].dosed
             and len(factors := curves[first].differs(curves[second])) == 1]
    compared = _compared(curves, own, figures, every[:MOST], run)
    changes = _changes(curves, run)
    return {"metric": run.metric, "metrics": shown, "hardness": list(HARDNESS),
            "curves": [_curve(curve, found, made, change, run)
                       for curve, found, made, change in zip(curves, own, figures, changes, strict=True)],
            "comparisons": compared,
            "notes": notes(curves, own, run.reached, run.names, len(every), len(compared),
                           sum(one is not None for one in changes))}


def _shown(curves: Sequence[Curve], run: _Run) -> list[str]:
    """The metrics that any cell has, in the order in which they are shown."""
    known = {name for curve in curves for cell in curve.cells for name in _point(cell, run)["metrics"]}
    return [name for name in run.names if name in known]


def _curve(curve: Curve, found: Areas, figures: Figures, change: Mapping[str, Any] | None, run: _Run) -> dict[str, Any]:
    points = [{"dose": dose, **_point(cell, run)} for dose, cell in zip(curve.doses, curve.cells, strict=True)]
    return {"axis": curve.axis, "word": curve.word, "factors": dict(curve.levels), "points": points,
            "plain": None if curve.plain is None else _point(curve.plain, run), "areas": figures,
            "left_out": {name: count for name, count in found.left_out.items() if name in run.names and count},
            "change": change, "slope": _slope(curve, change)}


def _point(cell: Variant, run: _Run) -> dict[str, Any]:
    """The figures of a cell, as the run's table has them."""
    own, reached = own_figures(cell, run.together), run.reached.get(cell.row["id"], Reached())
    return {"cell": cell.row["id"], "fewer": reached.fewer, "hardness": reached.hardness,
            "metrics": {name: own[name] for name in run.names if name in own and own[name]["n"]}}


def _areas(curve: Curve, found: Areas, run: _Run) -> Figures:
    made = aggregate(list(found.of.values()), run.scoring, run.seed, refusing=_refusing(curve),
                     clusters=[run.clusters.of.get(question, question) for question in found.of])
    return {name: dict(made[name]) for name in run.names if name in made}


def _compared(curves: Sequence[Curve], own: Sequence[Areas], figures: Sequence[Figures],
              chosen: Sequence[tuple[str, int, int]], run: _Run) -> list[dict[str, Any]]:
    made = [pairs_of(run.metric, own[first].of, own[second].of, run.clusters.of, run.scoring,
                     _refusing(curves[first]) and _refusing(curves[second])) for _, first, second in chosen]
    shown = [(*place, pairs) for place, pairs in zip(chosen, made, strict=True) if pairs.n]
    tests = compare([pairs for *_, pairs in shown], run.seed)
    return [{"factor": factor, "first": first, "second": second,
             **with_own_intervals(one, figures[first], figures[second]).plain()}
            for (factor, first, second, _), one in zip(shown, tests, strict=True)]


def _changes(curves: Sequence[Curve], run: _Run) -> list[dict[str, Any] | None]:
    """The last dose of each curve against its first."""
    ends = [(curve.cells[0], curve.cells[-1]) for curve in curves]
    pairs = [pairs_of(run.metric, first.answers, last.answers, run.clusters.of, run.scoring, _refusing(curve))
             for curve, (first, last) in zip(curves, ends, strict=True)]
    tests = iter(compare([one for one in pairs if one.n], run.seed))
    return [with_own_intervals(next(tests), own_figures(first, run.together), own_figures(last, run.together)).plain()
            if one.n else None for one, (first, last) in zip(pairs, ends, strict=True)]


def _slope(curve: Curve, change: Mapping[str, Any] | None) -> dict[str, float | None] | None:
    if change is None or curve.axis != "negatives":
        return None
    across = curve.doses[-1] - curve.doses[0]
    return {name: None if change[of] is None else round(change[of] / across, 10)
            for name, of in (("mean", "difference"), ("low", "low"), ("high", "high"))}


def _refusing(curve: Curve) -> bool:
    return may_refuse(curve.cells[0].row["rules"])
