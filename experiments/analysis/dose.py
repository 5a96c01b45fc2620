"""Dose and response: what more, or harder, negatives do to each way of answering, as curves and their areas."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any

from experiments.analysis.dose_curves import HARDNESS, Areas, Curve, areas, curves_of
from experiments.analysis.variants import Figures, Variant, own_figures, together_of, variants_of, with_own_intervals
from experiments.metrics import ScoredRow, Scoring, aggregate, may_refuse
from experiments.question import Question
from experiments.record import Result
from experiments.runs.finished import Finished
from experiments.statistics import Clusters, compare, pairs_of
from experiments.words import ON_INTERVALS
from retrieval.conditions import Perturbation
from retrieval.hits import DECIMALS

_SHORT = ("negatives", "pool")  # kinds of notes that fewer negatives could be had


@dataclass(frozen=True, slots=True)
class Reached:
    """Attributes:
        fewer: for how many questions of the cell fewer negatives could be had than its dose.
        hardness: of the mined negatives that each question is shown, or under `pool` searched over beside its gold:
            the mean, averaged over the questions that have any. It is the mean cosine with the question; None where
            none were mined.
    """

    fewer: int = 0
    hardness: float | None = None


def reached_of(change: Perturbation, results: Collection[Result], questions: Mapping[str, Question]) -> Reached:
    """Of one cell, by what it does to the evidence."""
    fewer = sum(any(note.partition(":")[0] in _SHORT for note in result.notes) for result in results)
    own = [found for result in results if (found := _hardness(change, result, questions[result.question]))]
    return Reached(fewer, round(fmean(map(fmean, own)), DECIMALS) if own else None)


def _hardness(change: Perturbation, result: Result, question: Question) -> list[float]:
    ids = question.in_turns(change.sort)[:change.pool] if change.pool else [one.chunk for one in result.evidence]
    return [question.mined[id].hardness for id in ids if id in question.mined]


MOST = 200  # comparisons of areas: each takes tens of milliseconds
_SAME = 0.01  # a mean hardness that differs by less is the same to two decimals


def notes(curves: Sequence[Curve], own: Sequence[Areas], reached: Mapping[str, Reached], metrics: Sequence[str],
          pairs: int, compared: int, changes: int) -> list[str]:
    """Return what the figures do not say by themselves.

    Args:
        reached: by cell.
        metrics: those that are shown, where any cell has them.
        pairs: of curves that could be compared; `compared` of them have p, as `changes` of the curves have.
    """
    return ["An area is the mean height of a curve over its range of doses: that of each question's own scores, "
            "averaged over the questions; 1 is a score of 1 at every dose.",
            *_on_hardness(curves), *_on_both(curves, reached), *_on_left_out(own, metrics),
            *_on_fewer(curves, reached), *_on_doses(curves), *([ON_INTERVALS] if compared + changes else []),
            *([f"{pairs} pairs of curves differ in one factor, more than are tested at once: the first {MOST} are "
               "compared."] if pairs > MOST else []),
            *([f"p (Holm) of areas is corrected for {compared} comparisons: all curves over the same doses that "
               "differ in one factor."] if compared > 1 else []),
            *([f"p (Holm) of changes is corrected for {changes} curves."] if changes > 1 else [])]


def _on_hardness(curves: Sequence[Curve]) -> list[str]:
    if not any(curve.axis == "hardness" or curve.levels.get("sort") in HARDNESS for curve in curves):
        return []
    return ["Easy, medium and hard are the thirds of each question's own mined negatives by their cosine with the "
            "question, not levels that questions share: the mean cosine of what each brought stands beside it. They "
            "stand one step from each other; what has no negatives is no dose of hardness, and in no area over it."]


def _on_both(curves: Sequence[Curve], reached: Mapping[str, Reached]) -> list[str]:
    """That a curve over the number of negatives is over their hardness too."""
    apart = []
    for curve in (curve for curve in curves if curve.axis == "negatives"):
        known = [one.hardness for cell in curve.cells
                 if (one := reached.get(cell.row["id"], Reached())).hardness is not None]
        if known:
            apart.append(max(known) - min(known))
    return [f"Number and hardness go together: the mean hardness of the negatives (their cosine with the question) is "
            f"not the same at each number of them, by up to {most:.2f} in one curve, so a change is of both."
            ] if (most := max(apart, default=0.0)) >= _SAME else []


def _on_left_out(own: Sequence[Areas], metrics: Sequence[str]) -> list[str]:
    lacking = {name: [found.left_out[name] for found in own if found.left_out.get(name)] for name in metrics}
    said = [f"{name} in {len(counts)} of {len(own)} areas, up to {max(counts)} questions"
            for name, counts in lacking.items() if counts]
    return [f"A point is of the questions that have the metric at its dose, an area of those that have it at every "
            f"dose. Areas leave out what has it at some doses only: {'; '.join(said)}."] if said else []


def _on_fewer(curves: Sequence[Curve], reached: Mapping[str, Reached]) -> list[str]:
    cells = {cell.row["id"]: cell for curve in curves for cell in curve.cells}
    short = [reached[id].fewer for id in cells if id in reached and reached[id].fewer]
    return [f"In {len(short)} of {len(cells)} cells some questions have fewer negatives than the dose, up to "
            f"{max(short)}: there were no more of the sort. Points and areas stand at the dose that was asked for, so "
            "that a curve goes on flat where nothing was added."] if short else []


def _on_doses(curves: Sequence[Curve]) -> list[str]:
    apart = any(first.dosed[:2] == second.dosed[:2] and first.doses != second.doses
                and len(first.differs(second)) == 1 for first, second in combinations(curves, 2))
    return ["Curves over other doses are not compared with each other."] if apart else []


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


def dose_of(rows: Sequence[Mapping[str, Any]], answers: Mapping[str, Mapping[str, ScoredRow]], clusters: Clusters,
            metric: str, scoring: Scoring, seed: int = 0, repeated: Sequence[Mapping[str, Any]] = (),
            reached: Mapping[str, Reached] | None = None) -> dict[str, Any] | None:
    """Return what doses of negatives do; None where no two cells differ in the dose alone.

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


def dose_of_run(run: Finished, metric: str) -> dict[str, Any] | None:
    """As its summary's `dose`, by any metric, and of a run from before summaries had it; None without a curve."""
    by_cell: dict[str, dict[str, Result]] = defaultdict(dict)
    for result in run.folder.results():
        by_cell[result.cell][result.question] = result
    return dose_of(run.rows, by_cell, run.grouped, metric, run.rows[0]["scoring"], run.summary["seed"],
                   run.summary.get("repeated") or (),
                   {cell.id: reached_of(cell.change, by_cell[cell.id].values(), run.questions) for cell in run.cells})
