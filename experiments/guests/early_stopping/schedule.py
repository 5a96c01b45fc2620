"""Schedule a run with early stopping: choose the cells to compare, order the questions, and give the final verdicts."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ragbed.documents.errors import SettingsError
from ragbed.experiments.analysis.pairs import comparison_row, select_pairs
from ragbed.experiments.analysis.replicates import (
    Answers,
    CellRows,
    ReplicateGroup,
    compare_groups,
    group_replicates,
    label_groups,
    split_replicates,
)
from ragbed.experiments.formatting import join_names, metric_title
from ragbed.experiments.guests.early_stopping.sequential_test import (
    RaceState,
    RaceVerdict,
    anytime_interval,
    follow_race,
)
from ragbed.experiments.metrics import METRICS, Scoring, family_of
from ragbed.experiments.metrics.intervals import NO_INTERVAL, Interval, match_test
from ragbed.experiments.metrics.metric import BY_SPLIT
from ragbed.experiments.metrics.scoring import get_score, score_range
from ragbed.experiments.question import Question
from ragbed.experiments.statistics import Clusters, mcnemar, pair_scores, permutation

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

_CONTEXT = ("benchmark", "condition", "perturbation", "show", "variation")  # cells that differ in these do not compete


class RaceSchedule:
    """A race of a run's cells by one metric: see `running.hooks.Schedule`.

    Two cells compete if they differ in exactly one factor, except context factors such as the condition. Questions are
    asked in a random order, all of a cluster together. Raises SettingsError if a cell competes with no other, or if no
    single question has the metric.
    """

    def __init__(self, rows: CellRows, questions: Mapping[str, Question], grouped: Clusters, metric: str,
                 scoring: Scoring, seed: int) -> None:
        self.rows, self.metric, self.scoring, self.seed, self.grouped = rows, metric, scoring, seed, grouped
        variants = group_replicates(rows, {})
        self.members = [[row["id"] for row in alike] for alike in split_replicates(rows)]
        self.labels = label_groups(variants)
        self.pairs = self.choose_pairs(variants)
        units: dict[str, list[str]] = {}
        for question in questions:
            units.setdefault(grouped.of[question], []).append(question)
        names = list(units)
        Random(f"race {seed}").shuffle(names)
        self.order = [question for name in names for question in units[name]]
        self.ends = np.cumsum([len(units[name]) for name in names])  # for each unit, its end in the order of questions
        self.unit = np.repeat(np.arange(len(names)), [len(units[name]) for name in names])
        splits = [metric == BY_SPLIT and not questions[name].answerable for name in self.order]
        self.weights = np.array([len(splits) / Counter(splits)[split] for split in splits])

    def choose_pairs(self, variants: Sequence[ReplicateGroup]) -> list[tuple[int, int]]:
        """Return the pairs of competing cells, by their places. Raises SettingsError if these cells cannot race."""
        place = {one.first["id"]: number for number, one in enumerate(variants)}
        pairs = [(place[first.first["id"]], place[second.first["id"]]) for factor, first, second
                 in select_pairs(variants)[0] if factor not in _CONTEXT]
        alone = set(range(len(variants))) - {cell for pair in pairs for cell in pair}
        if alone:
            raise SettingsError(f"race: {self.labels[min(alone)]} competes with no other cell: no other cell differs "
                                f"from it in exactly one factor ({', '.join(_CONTEXT)} do not count); run without "
                                "--race")
        known = METRICS[family_of(self.metric)]
        if known.less or known.high is None or known.low is None:
            raise SettingsError(f"race: {self.metric} cannot decide a race, which needs a score that has a range and "
                                "where more is better; choose another headline, or run without --race")
        if known.of_set:
            raise SettingsError(f"race: {self.metric} is computed over all questions together, so it cannot be "
                                "followed question by question; run without --race")
        return pairs

    def follow(self, answers: Answers) -> RaceState:
        """Return the state of the race after these answers. Ignores answers that the race did not request."""
        variants = group_replicates(self.rows, answers)
        present = np.array([[all(question in answers.get(cell, {}) for cell in cells) for question in self.order]
                            for cells in self.members])
        changes = self._changes(variants)

        def changes_until(look: int, places: list[int]) -> Floats | None:
            end = self.ends[look - 1]
            if not all(present[cell, :end].all() for place in places for cell in self.pairs[place]):
                return None
            weighted = np.nan_to_num(changes[places, :end]) * self.weights[:end]
            return np.stack([np.bincount(self.unit[:end], one) for one in weighted], axis=1)

        return self.decide(changes_until, lambda place: self.final_p(variants, place))

    def decide(self, changes: Callable[[int, list[int]], Floats | None],
               final_p: Callable[[int], float | None]) -> RaceState:
        """Follow the race as far as its answers go; the arguments are those of `follow_race`."""
        return follow_race(self.pairs, len(self.ends), changes, final_p)

    def final_p(self, variants: Sequence[ReplicateGroup], place: int) -> float | None:
        """Return the p-value of a pair over the whole run; None if no question has both scores."""
        first, second = (variants[cell] for cell in self.pairs[place])
        made = pair_scores(self.metric, first.answers, second.answers, self.grouped.of, self.scoring,
                        first.offers_refusal and second.offers_refusal)
        exact = made.share and not made.clustered
        return None if not made.n else mcnemar(*made.flips()) if exact else permutation(made, self.seed)

    def _changes(self, variants: Sequence[ReplicateGroup]) -> Floats:
        """Return each pair's second score minus its first, pairs by questions; nan if one is missing."""
        rows = [[one.answers.get(name) for name in self.order] for one in variants]
        scores = np.array([[math.nan if row is None else get_score(row, self.metric) for row in own] for own in rows])
        split = np.array([[row is not None and self.metric == BY_SPLIT and not row.answerable for row in own]
                          for own in rows])
        firsts, seconds = np.array(self.pairs).T
        return np.where(split[firsts] == split[seconds], scores[seconds] - scores[firsts], math.nan)

    def due(self, answers: Answers) -> set[tuple[str, str]]:
        """Return the (cell, question) pairs to ask, given these answers: all so far, and the next ones."""
        state = self.follow(answers)
        return {(cell, question) for place, cells in enumerate(self.members) for cell in cells
                for question in self.order[:self._count_asked(state, place)]}

    def _count_asked(self, state: RaceState, place: int) -> int:
        last = state.until if place in state.running else max(
            one.units for number, one in state.verdicts.items() if place in self.pairs[number])
        return int(self.ends[last - 1])

    @property
    def notes(self) -> list[str]:
        """Return notes for the run's summary."""
        return [f"Early stopping: n is the number of the {len(self.order):,} questions that a cell was asked. The "
                "interval of a cell's mean is computed as if this number had been fixed in advance."]

    def comparisons(self, answers: Answers) -> dict[str, Any]:
        """Return the verdicts in the form of `analysis.pairs.comparisons`, each over the questions that led to it;
        `said` has the result in sentences.
        """
        state, variants, made = self.follow(answers), group_replicates(self.rows, answers), []
        changes = self._changes(variants)
        for place, verdict in sorted(state.verdicts.items()):
            end = int(self.ends[verdict.units - 1])
            first, second = (replace(variants[cell], answers={
                name: variants[cell].answers[name] for name in self.order[:end]}) for cell in self.pairs[place])
            one, = compare_groups(self.metric, [(first, second)], self.grouped.of, self.scoring, self.seed)
            if one is not None:
                low, high = match_test(one.difference or 0.0, self._interval(changes[place, :end]), verdict.p)
                made.append(comparison_row(first, second, replace(
                    one, low=low, high=high, test="race", p=verdict.p, p_holm=verdict.p_holm, smallest=None,
                    said=self._describe_verdict(place, verdict, state))))
        return {"metric": self.metric, "pairs": made, "said": list(self._describe(state)), "notes": [
            f"Early stopping: questions were asked in a random order (seed {self.seed}), and a cell was asked until "
            "all its comparisons were decided. Verdicts, p and intervals stay valid however often one looks. p (Holm) "
            f"is corrected for all {len(self.pairs)} comparisons. Each row covers the questions until its verdict."]}

    def _interval(self, changes: Floats) -> Interval:
        ranges = [score_range(self.metric, answerable) for answerable in (True, False)]
        width = max(high for _, high in ranges) - min(low for low, _ in ranges)
        if len(set(self.weights)) > 1 or len(self.ends) < len(self.order):  # the metric is not a plain mean
            return NO_INTERVAL
        return anytime_interval(changes[~np.isnan(changes)], -width, width)

    def _describe_verdict(self, place: int, verdict: RaceVerdict, state: RaceState) -> str | None:
        if verdict.beaten:
            gone = next(cell for cell in self.pairs[place] if cell in state.out)
            return f"not compared further: {self.labels[gone]} is worse than another cell"
        return None if verdict.chance is None else (
            f"stopped: the chance that the remaining questions show a difference is {verdict.chance:.0%}")

    def _describe(self, state: RaceState) -> Iterator[str]:
        ends = [self._count_asked(state, place) for place in range(len(self.members))]
        asked = sum(end * len(cells) for end, cells in zip(ends, self.members, strict=True))
        most = len(self.order) * sum(map(len, self.members))
        left = [label for place, label in enumerate(self.labels) if place not in state.out]
        yield (f"Early stopping by {metric_title(self.metric)}: {asked:,} of {most:,} answers were needed. "
               f"Not worse than any cell they were compared with: {join_names(left, len(left))}.")
        for place, pair in state.out.items():
            better = self.labels[next(cell for cell in self.pairs[pair] if cell != place)]
            yield f"{self.labels[place]} is worse than {better}, after {ends[place]} of {len(self.order)} questions."
