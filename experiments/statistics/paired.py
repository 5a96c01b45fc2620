"""Paired scores of two cells over the questions that both have (`Pairs`), and groups of questions that share documents
and are therefore not independent (`Clusters`)."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbed.experiments.metrics.metric import BY_SPLIT, SetFigure, pooled_mean
from ragbed.experiments.metrics.sample import Sample, Totals, sum_units
from ragbed.experiments.metrics.scored import ScoredRow, Scoring
from ragbed.experiments.metrics.scoring import count_scores, get_score, is_share, score_ranges, set_figures
from ragbed.experiments.question import Question

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

MIN_CLUSTERS = 6  # no test on fewer clusters can be significant: with five, p is at least 0.06


@dataclass(frozen=True, slots=True)
class Clusters:
    """The cluster of each question, and a note if the default clustering was not used. A cluster is named after one of
    its questions.
    """

    of: Mapping[str, str]
    note: str = ""


def cluster_questions(questions: Iterable[Question]) -> Clusters:
    """Cluster questions that share a gold document or a conversation, directly or through others.

    If there are too few clusters, questions are clustered by their first gold document only. If that is not enough
    either, every question is its own cluster. The note says so. Too few means that Kish's effective number, n^2 / (sum
    of the squared sizes), is below `MIN_CLUSTERS`.
    """
    documents = {question.id: tuple(dict.fromkeys(_documents(question))) for question in questions}
    for most in (None, 1):
        found = _joined({question: names[:most] for question, names in documents.items()})
        sizes = Counter(found.values())
        if len(sizes) == len(found) or len(found) ** 2 >= MIN_CLUSTERS * sum(size**2 for size in sizes.values()):
            return Clusters(found, "" if most is None else (
                "Questions are clustered by their first gold document: all of their documents would connect too many "
                "of them."))
    return Clusters({question: question for question in documents}, (
        f"The questions cover fewer than {MIN_CLUSTERS} documents (effective number), too few to resample: intervals "
        "and tests do not generalise to other documents."))


def _documents(question: Question) -> Iterator[str]:
    """Yield the keys by which a question is clustered: its gold documents (`DOCUMENT#PLACE` counts as the document) and
    its conversation.
    """
    yield from (f"conversation {name}" for name in question.tags.get("conversation", ()))
    for gold in question.gold:
        name = gold.document.partition("#")[0] or gold.chunk
        if name:
            yield name


def _joined(documents: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Map each question to the first question of its cluster."""
    above: dict[str, str] = {question: question for question in documents}

    def top(question: str) -> str:
        while above[question] != question:
            above[question] = question = above[above[question]]
        return question

    holder: dict[str, str] = {}
    for question, names in documents.items():
        for name in names:
            above[top(question)] = top(holder.setdefault(name, question))
    return {question: top(question) for question in documents}


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of one metric."""

    metric: str
    figure: SetFigure  # how the metric's figure is computed from scores
    questions: tuple[str, ...]  # ids of the pairs, in order
    units: Totals  # units x splits x sides x names; a unit (question or cluster) is drawn and swapped whole
    scores: Floats | None  # pairs x sides; None for a set-level metric
    answerable: tuple[bool, ...]  # whether each pair's question is answerable in the first cell
    unpaired: int = 0  # questions to which the metric applies in only one cell

    @property
    def n(self) -> int:
        return len(self.questions)

    @property
    def share(self) -> bool:
        """Whether every score is 0 or 1. Means over repeats may lie between."""
        return is_share(self.metric) and self.scores is not None and bool(
            ((self.scores == 0) | (self.scores == 1)).all())

    @property
    def clustered(self) -> bool:
        """Whether any two questions share a document."""
        return len(self.units.sums) < self.n

    def flips(self) -> tuple[int, int]:
        """Count the pairs whose score is higher, and lower, in the second cell. Both are 0 for a set-level metric."""
        if self.scores is None:
            return 0, 0
        change = self.scores[:, 1] - self.scores[:, 0]
        return int((change > 0).sum()), int((change < 0).sum())

    @property
    def weights(self) -> Floats:
        """The weight of each pair in the metric's mean."""
        import numpy as np

        split = np.array([not answerable and self.metric == BY_SPLIT for answerable in self.answerable], dtype=np.intp)
        sizes = np.bincount(split, minlength=2)
        return np.asarray(1 / (sizes[split] * np.count_nonzero(sizes)))

    def side(self, side: int) -> Sample:
        """Return the scores of one of the cells."""
        return Sample(self.figure.names, self.units.side(side), score_ranges(self.figure.names),
                      frozenset([self.metric] if self.share else []))

    def figures(self, totals: Totals) -> tuple[Floats, Floats]:
        """Compute the metric of both cells for each draw of totals (splits x sides x names); nan if undefined."""
        first, second = (self.side(side).values(self.figure, totals.side(side)) for side in (0, 1))
        return first, second

    def changes(self, totals: Totals) -> Floats:
        """Compute how far the second cell's metric is above the first's for each draw; nan if undefined."""
        import numpy as np

        first, second = self.figures(totals)
        with np.errstate(invalid="ignore"):
            return second - first

    def observed(self) -> tuple[float, float]:
        """Compute the metric of both cells over the pairs."""
        first, second = self.figures(self.units.whole())
        return float(first[0]), float(second[0])


def pair_scores(metric: str, first: Mapping[str, ScoredRow], second: Mapping[str, ScoredRow],
             clusters: Mapping[str, str], scoring: Scoring = "corrected", refusing: bool = True) -> Pairs:
    """Pair two cells' questions by id. For `unified`, a question whose gold was dropped in only one of the cells is not
    paired, since the right answers differ. `refusing`: whether the rules of both cells offer a refusal."""
    import numpy as np

    rows = [*first.values(), *second.values()]
    of_set = not any(metric in row.scores for row in rows)
    figures = set_figures(count_scores(rows) if of_set else {metric: (len(rows), 0)}, scoring, refusing)
    figure = figures[metric] if metric in figures else SetFigure((metric,), pooled_mean)
    before, after = ({name: row for name, row in cell.items() if not math.isnan(get_score(row, figure.names[0]))}
                     for cell in (first, second))
    both = sorted(name for name in before.keys() & after.keys()
                  if metric != BY_SPLIT or before[name].answerable == after[name].answerable)
    scores = np.array([[[get_score(cell[question], name) for name in figure.names] for cell in (before, after)]
                       for question in both]).reshape(len(both), 2, len(figure.names))
    unit = np.unique([clusters.get(name, name) for name in both], return_inverse=True)[1].astype(np.intp)
    split = np.array([[not cell[name].answerable for name in both] for cell in (before, after)], dtype=np.intp)
    sides = [sum_units(scores[:, side], unit, split[side]) for side in (0, 1)]
    return Pairs(metric, figure, tuple(both), Totals(*(np.stack(of, axis=2) for of in zip(*sides, strict=True))),
                 None if of_set else scores[:, :, 0], tuple(before[name].answerable for name in both),
                 len(before.keys() | after.keys()) - len(both))
