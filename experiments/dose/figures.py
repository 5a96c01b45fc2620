"""The `dose` of a run's summary: curves, the areas under them, and which of these differ."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from experiments.comparing.own_intervals import Figures, own_figures, together_of
from experiments.comparing.variants import Variant, variants_of
from experiments.dose.area import areas
from experiments.dose.curves import HARDNESS, Curve, curves_of
from experiments.metrics.aggregate import aggregate
from experiments.metrics.sample import Row
from experiments.metrics.scored import Scoring, may_refuse
from experiments.statistics import Clusters, compare, pairs_of

_BESIDE = ("citation_f1", "refused_answerable", "refusal_accuracy", "recall@5", "recall@10", "ndcg@10")
_MOST = 200  # comparisons of areas


def dose_of(rows: Sequence[Mapping[str, Any]], answers: Mapping[str, Mapping[str, Row]], clusters: Clusters,
            metric: str, scoring: Scoring, seed: int = 0,
            repeated: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any] | None:
    """What doses of negatives do; None where no two cells differ in the dose alone.

    Areas are tested as any metric is: question by question, all pairs of curves over the same doses that differ in one
    factor, p corrected by Holm over all of them.

    Args:
        rows: the cells of the summary.
        answers: by cell's id, then by question.
        metric: the one by which curves are compared; refusals, citations and rankings stand beside it.
        repeated: the summary's, whose intervals are those of what was asked several times.
    """
    curves = curves_of(variants_of(rows, answers))
    if not curves:
        return None
    together = together_of(repeated)
    own = [areas(curve, _metrics(curve, metric)) for curve in curves]
    compared = _compared(curves, own, clusters, metric, scoring, seed)
    return {"metric": metric, "hardness": list(HARDNESS),
            "curves": [{"axis": curve.axis, "held": curve.held, "rest": curve.rest, "factors": dict(curve.levels),
                        "points": _points(curve, together, metric),
                        "areas": _areas(curve, found, clusters, scoring, seed)}
                       for curve, found in zip(curves, own, strict=True)],
            "comparisons": compared,
            "notes": _notes(curves, own, metric, len(compared))}


def _metrics(curve: Curve, metric: str) -> list[str]:
    scored = {name for cell in curve.cells for row in cell.answers.values() for name in row.scores}
    return [name for name in dict.fromkeys((metric, *_BESIDE)) if name in scored]


def _points(curve: Curve, together: Mapping[str, Figures], metric: str) -> list[dict[str, Any]]:
    """The figures of each cell, as the run's table has them."""
    names = (metric, *_BESIDE)
    return [{"dose": dose, "cell": cell.row["id"],
             "metrics": {name: found for name in dict.fromkeys(names)
                         if (found := own_figures(cell, together).get(name)) is not None}}
            for dose, cell in zip(curve.doses, curve.cells, strict=True)]


def _areas(curve: Curve, found: Mapping[str, Row], clusters: Clusters, scoring: Scoring, seed: int) -> dict[str, Any]:
    figures = aggregate(list(found.values()), scoring, seed, refusing=_refusing(curve.cells[0]),
                        clusters=[clusters.of.get(question, question) for question in found])
    scored = {name for row in found.values() for name, score in row.scores.items() if score is not None}
    return {name: figure for name, figure in figures.items() if name in scored}


def _compared(curves: Sequence[Curve], own: Sequence[Mapping[str, Row]], clusters: Clusters, metric: str,
              scoring: Scoring, seed: int) -> list[dict[str, Any]]:
    chosen = [(factors[0], first, second) for first, second in combinations(range(len(curves)), 2)
              if len(factors := curves[first].differs(curves[second])) == 1][:_MOST]
    made = [pairs_of(metric, own[first], own[second], clusters.of, scoring,
                     _refusing(curves[first].cells[0]) and _refusing(curves[second].cells[0]))
            for _, first, second in chosen]
    shown = [place for place, pairs in enumerate(made) if pairs.n]
    return [{"factor": chosen[place][0], "first": chosen[place][1], "second": chosen[place][2], **one.plain()}
            for place, one in zip(shown, compare([made[place] for place in shown], seed), strict=True)]


def _refusing(variant: Variant) -> bool:
    return may_refuse(variant.row["rules"])


def _notes(curves: Sequence[Curve], own: Sequence[Mapping[str, Row]], metric: str, compared: int) -> list[str]:
    lacking = sum(any(row.scores.get(metric) is None for row in found.values()) for found in own)
    return [*(["An area is the mean height of a curve over its range of doses: that of each question's own scores, "
               "averaged over the questions; 1 is a score of 1 at every dose."]),
            *([f"{lacking} of {len(curves)} areas leave out questions that have no {metric} at every dose."]
              if lacking else []),
            *([f"p (Holm) is corrected for {compared} comparisons: all curves over the same doses that differ in one "
               "factor."] if compared > 1 else [])]
