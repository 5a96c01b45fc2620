"""The race of a run: which cells compete, in which order they are asked, and what is said of them in the end."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ragbed.documents.errors import SettingsError
from ragbed.experiments.analysis.pairs import row_of, tested_pairs
from ragbed.experiments.analysis.variants import (
    Answers,
    CellRows,
    Variant,
    compared,
    labels_of,
    replicates,
    variants_of,
)
from ragbed.experiments.metrics import METRICS, Scoring, family_of
from ragbed.experiments.metrics.intervals import NO_INTERVAL, Interval
from ragbed.experiments.metrics.metric import BY_SPLIT
from ragbed.experiments.metrics.scoring import range_of, score_of
from ragbed.experiments.question import Question
from ragbed.experiments.statistics import Clusters, mcnemar, pairs_of, permutation
from ragbed.experiments.statistics.racing import Race, RaceVerdict, anytime_interval, race
from ragbed.experiments.words import listed, metric_words

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

_CIRCUMSTANCES = ("benchmark", "condition", "perturbation", "show", "variation")  # no competitors


class RunRace:
    """The race of a run's cells by a metric. Those compete that differ in one factor alone, which is no circumstance
    such as the condition. Questions are asked in a random order, all of a cluster together. Raises SettingsError where
    a cell competes with none, or no single question has the metric."""

    def __init__(self, rows: CellRows, questions: Mapping[str, Question], grouped: Clusters, metric: str,
                 scoring: Scoring, seed: int) -> None:
        self.rows, self.metric, self.scoring, self.seed, self.grouped = rows, metric, scoring, seed, grouped
        variants = variants_of(rows, {})
        self.members = [[row["id"] for row in alike] for alike in replicates(rows)]
        self.labels = labels_of(variants)
        place = {one.row["id"]: number for number, one in enumerate(variants)}
        self.pairs = [(place[first.row["id"]], place[second.row["id"]]) for factor, first, second
                      in tested_pairs(variants)[0] if factor not in _CIRCUMSTANCES]
        alone = set(range(len(variants))) - {cell for pair in self.pairs for cell in pair}
        if alone:
            raise SettingsError(f"race: {self.labels[min(alone)]} competes with no other cell: none differs from it in "
                                f"one factor alone, {', '.join(_CIRCUMSTANCES)} aside; run without --race")
        if METRICS[family_of(metric)].of_set:
            raise SettingsError(f"race: {metric} is a figure of all questions together, which no race can follow; run "
                                "without --race")
        units: dict[str, list[str]] = {}
        for question in questions:
            units.setdefault(grouped.of[question], []).append(question)
        names = list(units)
        Random(f"race {seed}").shuffle(names)
        self.order = [question for name in names for question in units[name]]
        self.ends = np.cumsum([len(units[name]) for name in names])  # of each unit, among the questions in their order
        self.unit = np.repeat(np.arange(len(names)), [len(units[name]) for name in names])
        splits = [metric == BY_SPLIT and not questions[name].answerable for name in self.order]
        self.weights = np.array([len(splits) / Counter(splits)[split] for split in splits])

    def follow(self, answers: Answers) -> Race:
        """Return how far the race has come by these answers; it looks at none that it would not have asked for."""
        variants = variants_of(self.rows, answers)
        there = np.array([[all(question in answers.get(cell, {}) for cell in cells) for question in self.order]
                          for cells in self.members])
        changes = self._changes(variants)

        def until(look: int, places: list[int]) -> Floats | None:
            end = self.ends[look - 1]
            if not all(there[cell, :end].all() for place in places for cell in self.pairs[place]):
                return None
            weighed = np.nan_to_num(changes[places, :end]) * self.weights[:end]
            return np.stack([np.bincount(self.unit[:end], one) for one in weighed], axis=1)

        return race(self.pairs, len(self.ends), until, lambda place: self.whole_p(variants, place))

    def whole_p(self, variants: Sequence[Variant], place: int) -> float | None:
        """Return the p of the whole run's test of a pair; None where no question has both scores."""
        first, second = (variants[cell] for cell in self.pairs[place])
        made = pairs_of(self.metric, first.answers, second.answers, self.grouped.of, self.scoring,
                        first.refusing and second.refusing)
        exact = made.share and not made.clustered
        return None if not made.n else mcnemar(*made.flips()) if exact else permutation(made, self.seed)

    def _changes(self, variants: Sequence[Variant]) -> Floats:
        """The score of each pair's second cell less the first's, pairs by questions; nan where there is none."""
        rows = [[one.answers.get(name) for name in self.order] for one in variants]
        scores = np.array([[math.nan if row is None else score_of(row, self.metric) for row in own] for own in rows])
        split = np.array([[row is not None and self.metric == BY_SPLIT and not row.answerable for row in own]
                          for own in rows])
        firsts, seconds = np.array(self.pairs).T
        return np.where(split[firsts] == split[seconds], scores[seconds] - scores[firsts], math.nan)

    def due(self, answers: Answers) -> set[tuple[str, str]]:
        """Return the (cell, question) pairs that are asked by now, by these answers, and those that come next."""
        found = self.follow(answers)
        return {(cell, question) for place, cells in enumerate(self.members) for cell in cells
                for question in self.order[:self._end(found, place)]}

    def _end(self, found: Race, place: int) -> int:
        """How many questions a cell is asked."""
        last = found.until if place in found.running else max(
            one.units for number, one in found.verdicts.items() if place in self.pairs[number])
        return int(self.ends[last - 1])

    def comparisons(self, answers: Answers) -> dict[str, Any]:
        """Return the race's verdicts in the form of `analysis.pairs.comparisons`, each over the questions that it is
        of, and as `said` the race in sentences."""
        found, variants, made = self.follow(answers), variants_of(self.rows, answers), []
        changes = self._changes(variants)
        for place, verdict in sorted(found.verdicts.items()):
            end = int(self.ends[verdict.units - 1])
            first, second = (replace(variants[cell], answers={
                name: variants[cell].answers[name] for name in self.order[:end]}) for cell in self.pairs[place])
            one, = compared(self.metric, [(first, second)], self.grouped.of, self.scoring, self.seed)
            if one is not None:
                low, high = self._interval(changes[place, :end])
                made.append(row_of(first, second, replace(
                    one, low=low, high=high, test="race", p=verdict.p, p_holm=verdict.p_holm, smallest=None,
                    said=self._said(place, verdict, found))))
        return {"metric": self.metric, "pairs": made, "said": list(self._sentences(found)), "notes": [
            f"A race: questions came in a random order (seed {self.seed}), and a cell was asked until each of its "
            "verdicts was given. Verdicts, p and intervals of these comparisons hold however often one looks, p (Holm) "
            f"for all {len(self.pairs)} together; each row is over the questions that its verdict is of."]}

    def _interval(self, changes: Floats) -> Interval:
        ranges = [range_of(self.metric, answerable) for answerable in (True, False)]
        width = max(high for _, high in ranges) - min(low for low, _ in ranges)
        if len(set(self.weights)) > 1 or len(self.ends) < len(self.order):  # no mean of questions alone
            return NO_INTERVAL
        return anytime_interval(changes[~np.isnan(changes)], -width, width)

    def _said(self, place: int, verdict: RaceVerdict, found: Race) -> str | None:
        if verdict.beaten:
            gone = next(cell for cell in self.pairs[place] if cell in found.out)
            return f"none: {self.labels[gone]} was worse than another and was asked no more"
        return None if verdict.chance is None else (
            f"no difference expected: the other questions show one with a chance of {verdict.chance:.0%}")

    def _sentences(self, found: Race) -> Iterator[str]:
        ends = [self._end(found, place) for place in range(len(self.members))]
        asked = sum(end * len(cells) for end, cells in zip(ends, self.members, strict=True))
        most = len(self.order) * sum(map(len, self.members))
        left = [label for place, label in enumerate(self.labels) if place not in found.out]
        yield (f"A race by {metric_words(self.metric)}: {asked:,} of {most:,} answers were asked for. "
               f"Not worse than any that they were compared with: {listed(left, len(left))}.")
        for place, pair in found.out.items():
            better = self.labels[next(cell for cell in self.pairs[pair] if cell != place)]
            yield f"{self.labels[place]} is worse than {better}, after {ends[place]} of {len(self.order)} questions."
