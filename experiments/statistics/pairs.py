"""Pairs: one metric of two cells over the questions that both have, as the sums that figures are made of.

Clusters: questions over the same documents are not independent of each other.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from experiments.metrics import GROUPS, METRICS
from experiments.metrics.aggregate import figures_of
from experiments.metrics.means import Means, Totals, means_of
from experiments.metrics.metric import family_of
from experiments.metrics.sample import Sample, ScoredRow, names_of, score_of
from experiments.metrics.scored import Scoring
from experiments.question import Question

if TYPE_CHECKING:
    from experiments.metrics.means import Floats

FEWEST = 6  # clusters below which no test finds anything: of five, no way to swap them has a p below 0.06


@dataclass(frozen=True, slots=True)
class Clusters:
    """The cluster of each question by its id: an id of one of the cluster's questions.

    Attributes:
        note: what a reader has to know of how they were made; empty where they are what they seem.
    """

    of: Mapping[str, str]
    note: str = ""


def clusters(questions: Iterable[Question]) -> Clusters:
    """Questions that share a gold document, directly or over others, are one cluster; one without gold is by itself.

    Where these are too few to draw, or a few of them hold most questions, as where every question joins several
    articles of one collection, questions are grouped by the first of their gold documents alone; and where that is no
    better, every question is by itself. The note says so. Too few are those that weigh as fewer than 6 of one size:
    n^2 / (sum of the squared sizes), Kish's effective number.
    """
    documents = {question.id: tuple(dict.fromkeys(_documents(question))) for question in questions}
    for most in (None, 1):
        found = _joined({question: names[:most] for question, names in documents.items()})
        if _usable(found):
            return Clusters(found, "" if most is None else (
                "Questions are clustered by the first of their gold documents: over all of them too many are "
                "connected."))
    return Clusters({question: question for question in documents}, (
        f"Questions share too few documents to draw documents, fewer than {FEWEST} as they weigh: intervals and tests "
        "are of questions over these documents, and say nothing of others."))


def _usable(found: Mapping[str, str]) -> bool:
    sizes = Counter(found.values())
    return len(sizes) == len(found) or len(found) ** 2 >= FEWEST * sum(size**2 for size in sizes.values())


def _documents(question: Question) -> Iterator[str]:
    """A place of a document, `DOCUMENT#PLACE`, counts as the document."""
    for gold in question.gold:
        name = gold.document.partition("#")[0] or gold.chunk
        if name:
            yield name


def _joined(documents: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """By question, the first question of those that are joined with it."""
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


_BY_SPLIT = "unified"  # whose figure is of two splits: a question must be in the same one in both cells


class Units(NamedTuple):
    """What is drawn and swapped as a whole: a question, or all questions over one document.

    Arrays of units by splits (answerable, unanswerable) by sides (first and second cell) by names: sums of the
    scores, and numbers of the questions that have one.
    """

    sums: Floats
    counts: Floats


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of one metric.

    Attributes:
        names: what the metric's figure is made of; of a metric that questions have, itself.
        questions: ids of the pairs, in order.
        scores: of each pair, pairs by sides; None for a metric that no single question has.
        answerable: of each pair, in the first cell.
        unpaired: questions that the metric applies to in one cell alone.
        refusing: whether the rules of both cells offer a refusal.
    """

    metric: str
    names: tuple[str, ...]
    questions: tuple[str, ...]
    units: Units
    scores: Floats | None
    answerable: tuple[bool, ...]
    unpaired: int = 0
    scoring: Scoring = "corrected"
    refusing: bool = True

    @property
    def n(self) -> int:
        return len(self.questions)

    @property
    def share(self) -> bool:
        """Whether every question has 0 or 1; no share is what is averaged over repeats."""
        known = METRICS.get(family_of(self.metric))
        return known is not None and known.share and self.scores is not None and bool(
            ((self.scores == 0) | (self.scores == 1)).all())

    @property
    def clustered(self) -> bool:
        """Whether any two questions share a document."""
        return len(self.units.sums) < self.n

    def flips(self) -> tuple[int, int]:
        """Pairs whose score is higher in the second cell, and lower; none for a metric of sets."""
        if self.scores is None:
            return 0, 0
        change = self.scores[:, 1] - self.scores[:, 0]
        return int((change > 0).sum()), int((change < 0).sum())

    @property
    def weights(self) -> Floats:
        """Of the pairs, by which the metric's figure is the mean of their scores."""
        import numpy as np

        split = np.array([not answerable and self.metric == _BY_SPLIT for answerable in self.answerable], dtype=np.intp)
        sizes = np.bincount(split, minlength=2)
        return np.asarray(1 / (sizes[split] * np.count_nonzero(sizes)))

    def figures(self, sums: Floats, counts: Floats) -> tuple[Floats, Floats]:
        """The metric of both cells for each draw; nan where it has none.

        Args:
            sums: draws by splits by sides by names; `counts` likewise.
        """
        first, second = (self.figure(sums[:, :, side], counts[:, :, side]) for side in (0, 1))
        return first, second

    def observed(self) -> tuple[float, float]:
        """The metric of both cells over the pairs."""
        first, second = self.figures(self.units.sums.sum(axis=0)[None], self.units.counts.sum(axis=0)[None])
        return float(first[0]), float(second[0])

    def side(self, side: int) -> Sample:
        """The scores of one of the cells."""
        return Sample(self.names, self.units.sums[:, :, side], self.units.counts[:, :, side],
                      frozenset([self.metric] if self.share else []))

    def figure(self, sums: Floats, counts: Floats) -> Floats:
        """The metric of one cell for each draw; nan where it has none.

        Args:
            sums: draws by splits by names; `counts` likewise.
        """
        import numpy as np

        total = self.units.counts.sum(axis=0)[:, 0]
        sizes = {name: (int(total[0, at]), int(total[1, at])) for at, name in enumerate(self.names)}
        splits = Totals(sums[:, 0], counts[:, 0]), Totals(sums[:, 1], counts[:, 1])
        figures = figures_of(means_of(splits, self.names, sizes, self.scoring, self.refusing))
        return figures[self.metric].values if self.metric in figures else np.full(len(sums), math.nan)


def pairs_of(metric: str, first: Mapping[str, ScoredRow], second: Mapping[str, ScoredRow], clusters: Mapping[str, str],
             scoring: Scoring = "corrected", refusing: bool = True) -> Pairs:
    """The pairs of two cells' questions by id.

    A question whose gold one of the cells dropped is no pair of `unified`: what is right of it differs.

    Args:
        clusters: by question; see `experiments.statistics.pairs`.
    """
    import numpy as np

    rows = [*first.values(), *second.values()]
    of_set = not any(metric in row.scores for row in rows)
    names, basis = _of_set(metric, rows, scoring, refusing) if of_set else ((metric,), metric)
    before, after = ({name: row for name, row in cell.items() if not math.isnan(score_of(row, basis))}
                     for cell in (first, second))
    both = sorted(name for name in before.keys() & after.keys()
                  if metric != _BY_SPLIT or before[name].answerable == after[name].answerable)
    pairs = [(before[name], after[name]) for name in both]
    scores = np.array([[[score_of(row, name) for name in names] for row in pair] for pair in pairs])
    scores = scores.reshape(len(pairs), 2, len(names))
    units = _units(scores, pairs, [clusters.get(name, name) for name in both])
    return Pairs(metric, names, tuple(both), units, None if of_set else scores[:, :, 0],
                 tuple(row.answerable for row, _ in pairs), len(before.keys() | after.keys()) - len(both), scoring,
                 refusing)


class _Asked(dict[str, "Floats"]):
    """Means that remember which of them were asked for."""

    def __init__(self, means: Mapping[str, Floats]) -> None:
        super().__init__(means)
        self.names: dict[str, None] = {}

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name):
            self.names[str(name)] = None
            return True
        return False

    def __getitem__(self, name: str) -> Floats:
        self.names[name] = None
        return super().__getitem__(name)


def _of_set(metric: str, rows: Sequence[ScoredRow], scoring: Scoring, refusing: bool) -> tuple[tuple[str, ...], str]:
    """What a metric of a set is made of, and the name whose questions it is over."""
    import numpy as np

    counts = Counter(name for row in rows for name, score in row.scores.items() if score is not None)
    counts.update({name: sum(not math.isnan(score_of(row, name)) for row in rows) for name in names_of(rows)
                   if "&" in name})
    some, none = np.ones(1), np.full(1, math.nan)  # which means there are decides, not what they are
    pooled = {name: some if count else none for name, count in counts.items()}
    means = Means(pooled, {name: (mean, mean) for name, mean in pooled.items()},
                  {name: (count, 0) for name, count in counts.items()}, scoring, refusing)
    for group in GROUPS.values():
        asked = _Asked(means.pooled)
        figures = group.derive(replace(means, pooled=asked))
        if metric in figures:
            return tuple(asked.names), figures[metric].basis
    return (), metric


def _units(scores: Floats, pairs: Sequence[tuple[ScoredRow, ScoredRow]], clusters: Sequence[str]) -> Units:
    """The sums of each cluster, in the order of the clusters' names.

    Args:
        scores: pairs by sides by names, nan where there is none.
    """
    import numpy as np

    places = {name: place for place, name in enumerate(sorted(set(clusters)))}
    sums = np.zeros((len(places), 2, 2, scores.shape[2]))
    counts = np.zeros_like(sums)
    unit = np.array([[places[name]] * 2 for name in clusters], dtype=np.intp).reshape(-1, 2)
    split = np.array([[not row.answerable for row in pair] for pair in pairs], dtype=np.intp).reshape(-1, 2)
    at = unit, split, np.broadcast_to([0, 1], unit.shape)
    np.add.at(sums, at, np.nan_to_num(scores))
    np.add.at(counts, at, ~np.isnan(scores))
    return Units(sums, counts)
