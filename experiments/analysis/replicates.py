"""Replicate groups: the cells of a run that differ only in repeat and seed, and the factors in which groups differ."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from ragbed.experiments.cells import FACTORS, OWN, PIPELINE, REPLICATED, label_rows
from ragbed.experiments.metrics import Estimate, ScoredQuestion, ScoredRow, Scoring, aggregate, may_refuse
from ragbed.experiments.metrics.aggregation import drop_judge_scores
from ragbed.experiments.statistics import Clusters, Comparison, compare, pair_scores

Answers = Mapping[str, Mapping[str, ScoredRow]]  # by cell's id, then by question
CellRows = Sequence[Mapping[str, Any]]  # the cells of a summary
Figures = Mapping[str, Mapping[str, Any]]  # Estimates by metric

VARIED = tuple(name for name in FACTORS if name not in REPLICATED)
_PIPELINE_FACTORS = ("benchmark", "model", "condition", "perturbation")  # one that retrieves has only the first two
_UNCHANGED = {"perturbation": "none", "variation": "as_asked"}  # the level that None stands for
_FOLLOW_CONDITION = ("rules", "perturbation")  # closed-book cells have these factors, but they have no effect


@dataclass(frozen=True, slots=True)
class ReplicateGroup:
    """Cells that share every factor level except repeat and seed.

    Attributes:
        first: summary row of the first cell.
        answers: scored answer per question id, averaged over the cells.
        size: number of cells.
    """

    first: Mapping[str, Any]
    answers: Mapping[str, ScoredRow]
    size: int

    @property
    def factor_levels(self) -> dict[str, str | None]:
        """Return the level of each factor, or None if the factor has no effect in these cells.

        A user's pipeline replaces the model and the strategy. If it also retrieves, it replaces the retrieval factors
        too, so only the benchmark and the pipeline remain.
        """
        row = self.first
        without: tuple[str, ...] = _FOLLOW_CONDITION if row["condition"] == "closed-book" else ()
        if row["reasoning"] == PIPELINE:
            kept = _PIPELINE_FACTORS if row["retrieval"] != OWN else _PIPELINE_FACTORS[:2]
            without = tuple(name for name in VARIED if name not in kept)
        return {name: None if name in without else _level(name, row) for name in VARIED}

    @property
    def offers_refusal(self) -> bool:
        """Return whether the rules of these cells offer a refusal."""
        return may_refuse(self.first["rules"])

    @property
    def shared_row(self) -> dict[str, Any]:
        """Return the first cell's row without its repeat and seed."""
        return {**self.first, **dict.fromkeys(REPLICATED)}


def _level(name: str, row: Mapping[str, Any]) -> str | None:
    value = _UNCHANGED.get(name) if row.get(name) is None else row[name]
    return None if value is None else str(value)


def group_replicates(rows: CellRows, answers: Answers) -> list[ReplicateGroup]:
    """Return the cells' replicate groups, in the order of the cells."""
    return [ReplicateGroup(cells[0], _average([answers.get(row["id"], {}) for row in cells]), len(cells))
            for cells in split_replicates(rows)]


def label_groups(groups: Iterable[ReplicateGroup]) -> list[str]:
    """Return the label of each group: that of its first cell, without repeat and seed."""
    return label_rows([group.shared_row for group in groups])


def split_replicates(rows: CellRows) -> list[list[Mapping[str, Any]]]:
    """Return the rows of each replicate group, in their order."""
    alike: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        alike.setdefault(tuple(str(row.get(name)) for name in VARIED), []).append(row)
    return list(alike.values())


def _average(cells: Sequence[Mapping[str, ScoredRow]]) -> Mapping[str, ScoredRow]:
    """Average each score over the cells in which the question has it."""
    cells = [dict(zip(cell, drop_judge_scores(cell.values()), strict=True)) for cell in cells]
    if len(cells) == 1:
        return cells[0]
    found: dict[str, ScoredRow] = {}
    for question, first in cells[0].items():
        rows = [cell[question] for cell in cells if question in cell]
        scores = {name: [score for row in rows if (score := row.scores.get(name)) is not None]
                  for name in dict.fromkeys(name for row in rows for name in row.scores)}
        found[question] = ScoredQuestion(first.answerable, first.outcome, {
            name: fmean(own) if own else None for name, own in scores.items()})
    return found


def differing_factors(first: ReplicateGroup, second: ReplicateGroup) -> list[str]:
    """Return the factors in which two groups differ. Factors without effect in one of them do not count."""
    one, other = first.factor_levels, second.factor_levels
    return [name for name in VARIED if one[name] is not None and other[name] is not None and one[name] != other[name]]


def pair_by_factor(groups: Sequence[ReplicateGroup]) -> Iterator[tuple[str, ReplicateGroup, ReplicateGroup]]:
    """Yield each pair of groups that differ in exactly one factor, with that factor, in the order of the factors."""
    found = [(factors[0], first, second) for place, first in enumerate(groups) for second in groups[place + 1:]
             if len(factors := differing_factors(first, second)) == 1]
    yield from sorted(found, key=lambda pair: VARIED.index(pair[0]))


def average_metrics(group: ReplicateGroup, clusters: Mapping[str, str], scoring: Scoring,
                    seed: int) -> dict[str, Estimate]:
    """Compute every metric over a group's questions. In `clusters`, a missing question is its own cluster."""
    return aggregate(list(group.answers.values()), scoring, seed, refusing=group.offers_refusal,
                     clusters=[clusters.get(question, question) for question in group.answers])


def compare_groups(metric: str, couples: Iterable[tuple[ReplicateGroup, ReplicateGroup]], clusters: Mapping[str, str],
                   scoring: Scoring, seed: int) -> list[Comparison | None]:
    """Compare the second group of each couple with the first. p is corrected over all couples. Without common
    questions, the result is None."""
    made = [pair_scores(metric, first.answers, second.answers, clusters, scoring,
                        first.offers_refusal and second.offers_refusal) for first, second in couples]
    found = iter(compare([pairs for pairs in made if pairs.n], seed))
    return [next(found) if pairs.n else None for pairs in made]


def summarise_replicates(rows: CellRows, answers: Answers, clusters: Clusters, scoring: Scoring,
                         seed: int = 0) -> list[dict[str, Any]]:
    """Return the figures of each group that has several cells, for the summary's key `repeated`.

    Each entry has `cell` (the id of the group's first cell), `cells` (their number) and `metrics`. A question's score
    is its mean over the cells, so no question counts twice. Repeats narrow an interval only because they average out
    the variation of a question's answers.
    """
    return [{"cell": group.first["id"], "cells": group.size,
             "metrics": average_metrics(group, clusters.of, scoring, seed)}
            for group in group_replicates(rows, answers) if group.size > 1]


def pool_replicates(repeated: Iterable[Mapping[str, Any]]) -> dict[str, Figures]:
    """Return the pooled figures of replicate groups, by the id of their first cell, from a summary's `repeated`."""
    return {row["cell"]: row["metrics"] for row in repeated}


def find_figures(group: ReplicateGroup, pooled: Mapping[str, Figures]) -> Figures:
    """Return a group's figures, pooled if it has several cells. The result is empty if they are unknown."""
    found: Figures = group.first.get("metrics", {}) if group.size == 1 else pooled.get(group.first["id"], {})
    return found


def use_own_intervals(found: Comparison, first: Figures, second: Figures) -> Comparison:
    """For each side whose questions are all paired, use the interval that the run's table shows."""
    before, after = first.get(found.metric, {}), second.get(found.metric, {})
    if _is_same(before, found.before, found.n):
        found = replace(found, before_low=before["low"], before_high=before["high"])
    if _is_same(after, found.after, found.n):
        found = replace(found, after_low=after["low"], after_high=after["high"])
    return found


def _is_same(own: Mapping[str, Any], mean: float | None, n: int) -> bool:
    return mean is not None and own.get("n") == n and own["mean"] is not None and math.isclose(
        own["mean"], mean, abs_tol=1e-9)
