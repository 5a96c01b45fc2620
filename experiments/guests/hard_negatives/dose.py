"""Dose and response: compute how answers change with more or harder negatives, as curves and the areas under them."""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from statistics import fmean
from typing import Any, Literal

from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.replicates import (
    Answers,
    CellRows,
    Figures,
    ReplicateGroup,
    average_metrics,
    compare_groups,
    find_figures,
    group_replicates,
    pool_replicates,
    use_own_intervals,
)
from ragbed.experiments.cells import Cell
from ragbed.experiments.conditions import Perturbation
from ragbed.experiments.formatting import ON_INTERVALS
from ragbed.experiments.metrics import ScoredQuestion, ScoredRow, Scoring
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.experiments.runs.finished import Finished
from ragbed.retrieval.types import DECIMALS

Axis = Literal["negatives", "hardness"]
Levels = Mapping[str, str | None]
HARDNESS = ("easy", "medium", "hard")
_CHANGE = "perturbation"
_ANY = "any"  # level of `sort` for negatives of any sort


@dataclass(frozen=True, slots=True)
class Curve:
    """Cells in the order of their doses.

    Attributes:
        axis: what the dose measures: the number of negatives or, at a fixed number, their hardness (as index in
            `HARDNESS`).
        word: `negatives` are added to the gold; `pool` is searched.
        levels: the factor levels that all cells share, with `perturbation` without its dose. In addition, the `sort` of
            the negatives (`any` if not limited) or, over hardness, their `number`.
        plain: on the axis of hardness, the cell without negatives, if any. It is not a dose.
    """

    axis: Axis
    word: str
    levels: Levels
    doses: tuple[int, ...]
    cells: tuple[ReplicateGroup, ...]
    plain: ReplicateGroup | None = None

    @property
    def comparison_key(self) -> tuple[str, str, tuple[int, ...]]:
        """Return a key that is equal for curves with comparable areas."""
        return self.axis, self.word, self.doses

    def differing_factors(self, other: Curve) -> list[str]:
        """Return the factors in which two curves differ, except those that have no effect in one of them."""
        levels = ((name, self.levels.get(name), other.levels.get(name)) for name in self.levels)
        return [name for name, one, another in levels if one is not None and another is not None and one != another]


def find_curves(variants: Iterable[ReplicateGroup]) -> list[Curve]:
    """Return every curve with two doses or more. Curves over the number of negatives come first.

    A cell without a perturbation is dose 0 of the curves for `negatives`. Curves for `pool` have no dose 0, because
    such a cell searches other chunks.
    """
    several = [(variant, Perturbation.parse(variant.factor_levels[_CHANGE] or "none")) for variant in variants]
    without = {_shared_levels(variant, change): variant for variant, change in several
               if not change.negatives + change.pool}
    return [*_curves_over("negatives", several, without), *_curves_over("hardness", several, without)]


def _curves_over(axis: Axis, variants: Iterable[tuple[ReplicateGroup, Perturbation]],
                 without: Mapping[tuple[str | None, ...], ReplicateGroup]) -> Iterator[Curve]:
    groups: dict[tuple[str | None, ...], tuple[str, Levels, ReplicateGroup | None, dict[int, ReplicateGroup]]] = {}
    for variant, change in variants:
        if (placed := _place(axis, change)) is None:
            continue
        word, name, level, dose = placed
        shared = _shared_levels(variant, change)
        own: Levels = {**variant.factor_levels, _CHANGE: shared[0], name: level}
        plain = without.get(shared) if word == "negatives" else None
        groups.setdefault((word, level, *shared), (word, own, plain, {}))[-1][dose] = variant
    for word, levels, plain, found in groups.values():
        if axis == "negatives" and plain is not None:
            found, plain = {0: plain, **found}, None
        if len(found) > 1:
            doses = sorted(found)
            yield Curve(axis, word, levels, tuple(doses), tuple(found[dose] for dose in doses), plain)


def _place(axis: Axis, change: Perturbation) -> tuple[str, str, str, int] | None:
    """Return the word, the other axis' name and level, and the dose; None if the perturbation is not on this axis."""
    number, word = (change.pool, "pool") if change.pool else (change.negatives, "negatives")
    if not number:
        return None
    if axis == "negatives":
        return word, "sort", change.sort or _ANY, number
    return (word, "number", str(number), HARDNESS.index(change.sort)) if change.sort in HARDNESS else None


def _shared_levels(variant: ReplicateGroup, change: Perturbation) -> tuple[str | None, ...]:
    """Return the levels that are the same at every dose: the rest of the perturbation, and all other factors."""
    rest = str(replace(change, negatives=0, pool=0, sort=""))
    return (rest, *(level for name, level in variant.factor_levels.items() if name != _CHANGE))


def curve_area(doses: Sequence[float], scores: Sequence[float]) -> float:
    """Return the mean height of a curve over its range of doses, by the trapezoidal rule.

    With doses d_1 < ... < d_m and scores s_i it is sum((s_i + s_(i+1)) / 2 * (d_(i+1) - d_i)) / (d_m - d_1). A score of
    1 at every dose gives 1.
    """
    parts = ((first + second) / 2 * (to - at)
             for (at, to), (first, second) in zip(pairwise(doses), pairwise(scores), strict=True))
    return sum(parts) / (doses[-1] - doses[0])


@dataclass(frozen=True, slots=True)
class Areas:
    """Areas under the scores of each question.

    Attributes:
        of: area by question and metric; None if the question lacks the metric at a dose.
        left_out: by metric, number of questions that lack it at some of the doses.
    """

    of: Mapping[str, ScoredRow]
    left_out: Mapping[str, int]


def compute_areas(curve: Curve) -> Areas:
    """Return the areas of all questions that any cell of the curve has.

    A question has no area if a cell lacks it, or if it is answerable in some cells only. An area is a weighted mean of
    scores, so it keeps the metric's range. Metrics over all questions are computed from areas instead of scores:
    citation F1 is the harmonic mean of the average areas by precision and by recall.
    """
    made: dict[str, ScoredRow] = {}
    left_out: Counter[str] = Counter()
    for question in dict.fromkeys(question for cell in curve.cells for question in cell.answers):
        own = [cell.answers[question] for cell in curve.cells if question in cell.answers]
        whole = len(own) == len(curve.cells) and len({one.answerable for one in own}) == 1
        names = dict.fromkeys(name for one in own for name, score in one.scores.items() if score is not None)
        known = {name: [score for one in own if (score := one.scores.get(name)) is not None] for name in names}
        scores = {name: curve_area(curve.doses, found) if whole and len(found) == len(own) else None
                  for name, found in known.items()}
        left_out.update(name for name, score in scores.items() if score is None)
        made[question] = ScoredQuestion(own[0].answerable, own[0].outcome, scores)
    return Areas(made, left_out)


_SHORT = ("negatives", "pool")  # kinds of notes about fewer negatives


@dataclass(frozen=True, slots=True)
class Reached:
    """The actual dose of a cell.

    Attributes:
        fewer: number of questions with fewer negatives than the dose asks for.
        hardness: mean cosine of a question with its mined negatives (under `pool`, those searched with its gold),
            averaged over the questions that have any; None if none were mined.
    """

    fewer: int = 0
    hardness: float | None = None


def reached_dose(change: Perturbation, results: Collection[Result], questions: Mapping[str, Question]) -> Reached:
    """Return the actual dose of a cell with this perturbation."""
    fewer = sum(any(note.partition(":")[0] in _SHORT for note in result.notes) for result in results)
    own = []
    for result in results:
        question = questions[result.question]
        if not question.mined:
            continue  # `evidence` would read the whole record
        ids = question.interleave_mined(change.sort)[:change.pool] if change.pool else [
            one.chunk for one in result.evidence]
        if found := [question.mined[id].hardness for id in ids if id in question.mined]:
            own.append(fmean(found))
    return Reached(fewer, round(fmean(own), DECIMALS) if own else None)


MAX_PAIRS = 200  # maximum pairs of curves to compare, at tens of milliseconds each
_SAME = 0.01  # smaller differences of mean hardness are ignored


def _figure_notes(own: Sequence[Areas], metrics: Sequence[str], pairs: int, compared: int,
                  changes: int) -> Iterator[str]:
    """Yield notes on areas and tests: which questions areas leave out, and how many comparisons were corrected."""
    lacking = {name: [found.left_out[name] for found in own if found.left_out.get(name)] for name in metrics}
    if parts := [f"{name} in {len(counts)} of {len(own)} areas, up to {max(counts)} questions"
                 for name, counts in lacking.items() if counts]:
        yield ("A point covers the questions with the metric at its dose, an area those with the metric at every dose. "
               f"Areas leave out questions that have it at some doses only: {'; '.join(parts)}.")
    if compared + changes:
        yield ON_INTERVALS
    if pairs > MAX_PAIRS:
        yield f"{pairs} pairs of curves differ in one factor; only the first {MAX_PAIRS} are compared."
    if compared > 1:
        yield (f"p (Holm) of areas is corrected for {compared} comparisons: all curves over the same doses that differ "
               "in one factor.")
    if changes > 1:
        yield f"p (Holm) of changes is corrected for {changes} curves."


def _dose_notes(curves: Sequence[Curve], reached: Mapping[str, Reached]) -> Iterator[str]:
    yield ("An area is the mean height of a curve over its range of doses, computed per question and then averaged. A "
           "score of 1 at every dose gives an area of 1.")
    if any(curve.axis == "hardness" or curve.levels.get("sort") in HARDNESS for curve in curves):
        yield ("Easy, medium and hard are thirds of each question's mined negatives by cosine with the question. "
               "Questions do not share these levels, so the table shows the mean cosine of each. The three are equally "
               "spaced. Cells without negatives have no hardness, so areas over hardness leave them out.")
    known = [[found for cell in curve.cells if (found := reached.get(cell.first["id"], Reached()).hardness) is not None]
             for curve in curves if curve.axis == "negatives"]
    if (most := max((max(one) - min(one) for one in known if one), default=0.0)) >= _SAME:
        yield ("Number and hardness of negatives change together: their mean hardness (cosine with the question) "
               f"differs by up to {most:.2f} within one curve, so a change may be due to either.")
    cells = {cell.first["id"] for curve in curves for cell in curve.cells}
    if short := [reached[id].fewer for id in cells if id in reached and reached[id].fewer]:
        yield (f"In {len(short)} of {len(cells)} cells some questions have fewer negatives than the dose, up to "
               f"{max(short)} in one cell: there were no more of that sort. Points and areas use the intended "
               "dose, so a curve stays flat where nothing was added.")
    if any(first.comparison_key[:2] == second.comparison_key[:2] and first.doses != second.doses
           and len(first.differing_factors(second)) == 1 for first, second in combinations(curves, 2)):
        yield "Curves over different doses are not compared."


OTHER_METRICS = ("citation_f1", "support_f1", "refused_answerable", "refusal_accuracy", "recall@5", "recall@10",
                 "ndcg@10")


def compute_dose(rows: CellRows, answers: Answers, clusters: Mapping[str, str], metric: str, scoring: Scoring,
                 seed: int = 0, repeated: CellRows = (),
                 reached: Mapping[str, Reached] | None = None) -> dict[str, Any] | None:
    """Return the effects of doses; None if no two cells differ only in the dose.

    Each curve has the figures of its cells, the areas (`curve_area`) with intervals, and `change`, the last dose
    compared with the first. Over the number of negatives it also has `slope`: the change, with its interval, per
    additional negative.

    Areas are tested question by question, for all pairs of curves over the same doses that differ in one factor. p is
    Holm-corrected over all pairs, and over all changes. If the cells lack `metric`, curves are compared by the first
    metric that they have. `repeated`, from the summary, has the intervals of repeated questions; `reached` is by cell
    id.
    """
    curves, reached, pooled = find_curves(group_replicates(rows, answers)), reached or {}, pool_replicates(repeated)
    if not curves:
        return None
    names = tuple(dict.fromkeys((metric, *OTHER_METRICS)))
    points = [[_point(cell, names, pooled, reached) for cell in curve.cells] for curve in curves]
    shown = [name for name in names if any(name in point["metrics"] for own in points for point in own)]
    metric = shown[0] if shown and metric not in shown else metric
    own = [compute_areas(curve) for curve in curves]
    whole = [replace(curve.cells[0], answers=found.of) for curve, found in zip(curves, own, strict=True)]
    averages = [average_metrics(one, clusters, scoring, seed) for one in whole]
    figures: list[Figures] = [{name: dict(made[name]) for name in names if name in made} for made in averages]
    every = [(factors[0], first, second) for first, second in combinations(range(len(curves)), 2)
             if curves[first].comparison_key == curves[second].comparison_key
             and len(factors := curves[first].differing_factors(curves[second])) == 1]
    tests = compare_groups(metric, [(whole[first], whole[second]) for _, first, second in every[:MAX_PAIRS]],
                           clusters, scoring, seed)
    apart = [{"factor": factor, "first": first, "second": second,
              **use_own_intervals(one, figures[first], figures[second]).plain()}
             for (factor, first, second), one in zip(every, tests, strict=False) if one]
    ends = [(curve.cells[0], curve.cells[-1]) for curve in curves]
    changes = [use_own_intervals(one, *(find_figures(cell, pooled) for cell in cells)).plain() if one else None
               for one, cells in zip(compare_groups(metric, ends, clusters, scoring, seed), ends, strict=True)]
    rows = [{"axis": curve.axis, "word": curve.word, "factors": dict(curve.levels),
             "points": [{"dose": dose, **point} for dose, point in zip(curve.doses, placed, strict=True)],
             "plain": curve.plain and _point(curve.plain, names, pooled, reached), "areas": made,
             "left_out": {name: count for name, count in found.left_out.items() if name in names and count},
             "change": change, "slope": _slope(curve, change)}
            for curve, placed, found, made, change in zip(curves, points, own, figures, changes, strict=True)]
    return {"metric": metric, "metrics": shown, "hardness": list(HARDNESS), "curves": rows, "comparisons": apart,
            "notes": [*_dose_notes(curves, reached), *_figure_notes(own, names, len(every), len(apart),
                                                                    sum(one is not None for one in changes))]}


def _point(cell: ReplicateGroup, names: Sequence[str], pooled: Mapping[str, Figures],
           reached: Mapping[str, Reached]) -> dict[str, Any]:
    own, found = find_figures(cell, pooled), reached.get(cell.first["id"], Reached())
    return {"cell": cell.first["id"], "fewer": found.fewer, "hardness": found.hardness,
            "metrics": {name: own[name] for name in names if name in own and own[name]["n"]}}


def _slope(curve: Curve, change: Mapping[str, Any] | None) -> dict[str, float | None] | None:
    if change is None or curve.axis != "negatives":
        return None
    across = curve.doses[-1] - curve.doses[0]
    return {name: None if change[of] is None else round(change[of] / across, 10)
            for name, of in (("mean", "difference"), ("low", "low"), ("high", "high"))}


def compute_run_dose(run: Finished, metric: str) -> dict[str, Any] | None:
    """Return the summary's `dose` for any metric; None without a curve."""
    by_cell: dict[str, dict[str, Result]] = defaultdict(dict)
    for result in run.folder.results():
        by_cell[result.cell][result.question] = result
    return compute_dose(run.rows, by_cell, run.grouped.of, metric, run.rows[0]["scoring"], run.summary["seed"],
                        run.summary.get("repeated") or (),
                   {cell.id: reached_dose(cell.change, by_cell[cell.id].values(), run.questions) for cell in run.cells})


def dose_finding(run: AnalysisInput) -> dict[str, Any] | None:
    """Return the curves of a run by its first metric, for the summary; None without a curve."""
    reached = {row["id"]: reached_dose(Cell.of(row).change, run.results[row["id"]], run.questions) for row in run.cells}
    return compute_dose(run.cells, run.answers, run.clusters, run.metric, run.scoring, run.seed,
                        run.found.get("repeated") or (), reached)
