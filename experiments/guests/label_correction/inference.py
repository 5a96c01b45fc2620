"""Correct scores for the judge's errors with people's grades of some answers: prediction-powered inference.

The method is that of Angelopoulos and others (Science 382, 2023), tuned as in "PPI++" (arXiv 2311.01453). It is
implemented here because ppi-python handles neither clusters nor few labels, needs numba and turns off all warnings, and
glide-py needs Python 3.12. A test checks it against ppi-python's numbers.
"""
from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from ragbed.experiments.analysis.view import Value, View, make_figure
from ragbed.experiments.cells import Cell
from ragbed.experiments.guests.rescoring.rejudge import Rater
from ragbed.experiments.metrics import METRICS, estimate, family_of, may_refuse, score_result
from ragbed.experiments.metrics.intervals import Interval, clip_interval, effective_size, student_quantile
from ragbed.experiments.metrics.scoring import score_range, set_figures
from ragbed.experiments.record import Result
from ragbed.experiments.runs.finished import Finished

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbed.experiments.metrics.metric import Floats

MIN_LABELS = 20  # with fewer labels there is no interval: see bench/corrected.py


@dataclass(frozen=True, slots=True, eq=False)
class CorrectedMean:
    """A mean corrected for the judge's errors.

    Attributes:
        center: middle of the interval, which like Wilson's differs slightly from the mean.
        influence: by cluster, its contribution to the mean's error.
        unseen: variance of the errors that a small number of labels may not show.
        labels: effective number of clusters with labels.
    """

    mean: float
    center: float
    influence: Floats
    unseen: float
    labels: float

    @property
    def interval(self) -> Interval:
        """Compute the 95 % interval by Student's distribution."""
        variance = float((self.influence**2).sum()) * self.labels / (self.labels - 1) + self.unseen
        half = student_quantile(self.labels - 2) * math.sqrt(variance)
        return Interval(self.center - half, self.center + half)

    def minus(self, other: CorrectedMean) -> CorrectedMean:
        """Return the difference from another mean over the same questions."""
        return CorrectedMean(self.mean - other.mean, self.center - other.center, self.influence - other.influence,
                             self.unseen + other.unseen, min(self.labels, other.labels))


def correct_mean(judged: Floats, people: Floats, due: NDArray[np.bool_], weights: Floats, split: NDArray[np.intp],
                 clusters: NDArray[np.intp], tuning: float | None = None) -> CorrectedMean | None:
    """Correct the weighted sum of scores. Return None if people graded too few answers.

    The answers that people graded must be a random sample of those that the judge graded. For the interval, four pairs
    of grades are added with half a weight each, one for every combination of two graders saying right or wrong. Without
    them, a judge would seem to be always right if a few grades show no error (Agresti and Min, Statistics in Medicine
    24, 2005).

    Args:
        judged: each question's score, which the judge gave if `due`. Other scores are known.
        people: people's scores, from 0 to 1; nan if nobody graded.
        weights, split, clusters: each question's weight in the sum, and the numbers of its split and its cluster.
        tuning: weight of the judge's scores, from 0 to 1; by default, the value with the smallest variance.
    """
    import numpy as np

    labelled = due & np.isfinite(people)
    left, n = due & ~labelled, int(labelled.sum())
    counts = np.bincount(clusters[labelled]).astype(np.float64)
    size = effective_size(counts[counts > 0]) if n else 0.0
    if size < MIN_LABELS:
        return None
    if tuning is None:
        spread = float(judged[due].var(ddof=1)) * (1 + n / max(left.sum(), 1))
        covariance = float(np.cov(people[labelled], judged[labelled], ddof=0)[0, 1])
        tuning = min(max(covariance / spread, 0.0), 1.0) if spread else 0.0
    tuning *= bool(left.any())
    values, share = np.where(labelled, people - tuning * judged, tuning * judged), float(weights[due].sum())
    influence, middles = np.zeros_like(weights), [0.0, 0.0]
    for at, some in enumerate((labelled, left)):
        if some.any():
            middles[at] = float(np.average(values[some], weights=weights[some]))
            influence[some] = share * weights[some] / weights[some].sum() * (values[some] - middles[at])
    scores = np.where(due, sum(middles), judged)
    own = np.bincount(split, weights * scores) / np.maximum(np.bincount(split, weights), 1e-9)
    corners, mean = np.array([0.0, -tuning, 1 - tuning, 1.0]) - middles[0], float(weights @ scores)
    return CorrectedMean(mean, mean + share * float(corners.sum()) / (2 * size + 4),
                         np.bincount(clusters, influence + weights * (scores - own[split])).astype(np.float64),
                         (share / size) ** 2 * float((corners**2).sum()) / 2, size)


def corrected_views(run: Finished, people: Sequence[Rater]) -> list[View]:
    """Return two views. One has the judged metrics of the run's table: as the judge scored them, from people's grades
    only, and corrected. The other has the corrected differences between cells without repeats. If several people graded
    an answer, their scores are averaged.
    """
    results = defaultdict[str, list[Result]](list)
    for result in run.folder.results(traces=True):
        results[result.cell].append(result)
    graded, rows, found = Counter(cell for rater in people for cell, _ in rater.verdicts), [], {}
    for row, cell in zip(run.rows, run.cells, strict=True):
        for name, pair in _correct_cell(run, cell, results[cell.id], people):
            found[cell.id, name] = pair[1]
            raw = row["metrics"][name]
            rows.append((name, run.labels[cell.id], raw["n"], graded[cell.id], raw, *(
                _value(one, raw["n"], score_range(name)) for one in pair)))
    if not rows:  # no metric of the table uses the judge
        return []
    header = ("metric", "cell", "n", "graded", f"judge {run.judge}", "people only", "corrected")
    notes = ("`corrected`: the judge's errors on the answers that people graded are subtracted from its other grades "
             "(prediction-powered inference). This is valid if the graded answers are a random sample, as the first "
             "rows of a sheet are.",
             *([f"A cell is corrected if people graded at least {MIN_LABELS} answers; answers in one cluster count as "
                "fewer."] if None in found.values() else []))
    tested = run.summary.get("comparisons") or {"metric": "", "pairs": []}
    changes, repeated = [], {row["cell"] for row in run.summary["repeated"]}
    for pair in tested["pairs"]:
        sides = pair["first"], pair["second"]
        first, second = (found.get((id, tested["metric"])) for id in sides)
        if first and second and not pair["unpaired"] and not repeated & {*sides}:
            names = [run.labels[id] for id in sides]
            changes.append(({"text": " → ".join(names), "cells": names}, make_figure(
                pair["difference"], pair["low"], pair["high"], pair["n"]), _value(second.minus(first), pair["n"])))
    return [View("corrected", "Scores corrected by people", header, tuple(rows), 2, 6, notes),
            *([View("corrected:differences", f"Differences of {tested['metric']} corrected by people", (
                "what changes", *header[4::2]), tuple(changes), signed=header[4::2])] if changes else [])]


def _value(one: CorrectedMean | None, n: int, ends: tuple[float, float] = (-math.inf, math.inf)) -> Value:
    return None if one is None else estimate(one.mean, clip_interval(ends, one.interval), n)


def _correct_cell(run: Finished, cell: Cell, results: Sequence[Result],
                  people: Sequence[Rater]) -> Iterator[tuple[str, list[CorrectedMean | None]]]:
    """Yield each judged metric, its mean over people's grades only, and its corrected mean."""
    import numpy as np

    scored = [[score_result(result.model_copy(update={"verdict": verdict}), run.questions[result.question], run.scheme,
                             run.scoring, cell.rules, cell.separators, cell.searched).scores
               for rater in people if (verdict := rater.verdicts.get((cell.id, result.question)))]
              for result in results]
    split = np.array([not result.answerable for result in results], dtype=np.intp)
    clusters = np.unique([run.grouped.of[result.question] for result in results], return_inverse=True)[1]
    for name in run.scheme.metrics:
        judged, labels = (np.array(values, dtype=np.float64) for values in (
            [result.scores.get(name) for result in results],
            [fmean(scores.get(name) or 0.0 for scores in own) if own else None for own in scored]))
        has_score = np.isfinite(judged)
        if (metric := METRICS[family_of(name)]).judged and not metric.of_set and has_score.any():
            sizes = np.bincount(split[has_score], minlength=2)
            figure = set_figures({name: (sizes[0], sizes[1])}, run.scoring, may_refuse(cell.rules))[name]
            ends = np.where(sizes > 0, np.eye(2), np.nan)[:, :, None]  # one split has only ones
            shares = figure.value((sizes / sizes.sum())[:, None], ends)
            due = has_score & np.array([result.verdict is not None for result in results])
            weights = has_score * (shares / np.maximum(sizes, 1))[split]
            yield name, [correct_mean(np.where(has_score, judged, 0.0), labels, due, weights, split, clusters, tuning)
                         for tuning in (0.0, None)]
