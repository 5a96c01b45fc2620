"""Variants: the cells of a run that are one way of answering, asked once or several times, and in what two differ."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from ragbed.experiments.cells import FACTORS, OWN, PIPELINE, REPLICATED, labels
from ragbed.experiments.metrics import Estimate, ScoredQuestion, ScoredRow, Scoring, aggregate, may_refuse
from ragbed.experiments.statistics import Clusters, Comparison, compare, pairs_of

Answers = Mapping[str, Mapping[str, ScoredRow]]  # by cell's id, then by question
CellRows = Sequence[Mapping[str, Any]]  # the cells of a summary
Figures = Mapping[str, Mapping[str, Any]]  # Estimates by metric

VARIED = tuple(name for name in FACTORS if name not in REPLICATED)
_OF_PIPELINES = ("benchmark", "model", "condition", "perturbation")  # the first two of any
_UNCHANGED = {"perturbation": "none", "variation": "as_asked"}  # levels among others, though cells have None
_GO_WITH_CONDITION = ("rules", "perturbation")  # which mean nothing closed-book, though the cell names them


@dataclass(frozen=True, slots=True)
class Variant:
    """Cells that differ in repeats and seeds alone."""

    row: Mapping[str, Any]  # of the first of them
    answers: Mapping[str, ScoredRow]  # by question; where there are several cells, averaged over them
    cells: int  # how many

    @property
    def levels(self) -> dict[str, str | None]:
        """The values of the factors; None of one that has no effect in it. A pipeline stands in the place of a model
        and a strategy, and, where it searches by itself, of all that finds evidence too: it is one factor."""
        row, closed = self.row, self.row["condition"] == "closed-book"
        without: tuple[str, ...] = _GO_WITH_CONDITION if closed else ()
        if row["reasoning"] == PIPELINE:
            kept = _OF_PIPELINES if row["retrieval"] != OWN else _OF_PIPELINES[:2]
            without = tuple(name for name in VARIED if name not in kept)
        return {name: None if name in without else _level(name, row) for name in VARIED}

    @property
    def refusing(self) -> bool:
        """Tell whether its rules offer a refusal."""
        return may_refuse(self.row["rules"])

    @property
    def row_without(self) -> dict[str, Any]:
        """Its row without the repeat and the seed, which are of one of its cells alone."""
        return {**self.row, **dict.fromkeys(REPLICATED)}


def _level(name: str, row: Mapping[str, Any]) -> str | None:
    value = _UNCHANGED.get(name) if row.get(name) is None else row[name]
    return None if value is None else str(value)


def variants_of(rows: CellRows, answers: Answers) -> list[Variant]:
    """Return the variants, in the order of the cells."""
    return [Variant(cells[0], _averaged([answers.get(row["id"], {}) for row in cells]), len(cells))
            for cells in replicates(rows)]


def labels_of(variants: Iterable[Variant]) -> list[str]:
    """Return what each variant is called: as its first cell, without the repeat and the seed."""
    return labels([one.row_without for one in variants])


def replicates(rows: CellRows) -> list[list[Mapping[str, Any]]]:
    """Return the cells of each variant, in their order."""
    alike: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        alike.setdefault(tuple(str(row.get(name)) for name in VARIED), []).append(row)
    return list(alike.values())


def _averaged(cells: Sequence[Mapping[str, ScoredRow]]) -> Mapping[str, ScoredRow]:
    """A score is averaged over the cells in which the question has one."""
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


def differing(first: Variant, second: Variant) -> list[str]:
    """Return the factors in which two variants differ. One that has no effect in one of them, as the retriever has none
    closed-book, does not count: it has none because of another one, in which they do. Rules and perturbations have none
    closed-book."""
    one, other = first.levels, second.levels
    return [name for name in VARIED if one[name] is not None and other[name] is not None and one[name] != other[name]]


def pairs_by_factor(variants: Sequence[Variant]) -> Iterator[tuple[str, Variant, Variant]]:
    """Yield all pairs that differ in exactly one factor, by factor and then in the order of the variants."""
    found = [(factors[0], first, second) for place, first in enumerate(variants) for second in variants[place + 1:]
             if len(factors := differing(first, second)) == 1]
    yield from sorted(found, key=lambda pair: VARIED.index(pair[0]))


def averages_of(variant: Variant, grouped: Mapping[str, str], scoring: Scoring, seed: int) -> dict[str, Estimate]:
    """Return every metric over the questions of a variant; `grouped` is by question its cluster, and one that is not
    named is by itself."""
    return aggregate(list(variant.answers.values()), scoring, seed, refusing=variant.refusing,
                     clusters=[grouped.get(question, question) for question in variant.answers])


def compared(metric: str, couples: Iterable[tuple[Variant, Variant]], grouped: Mapping[str, str], scoring: Scoring,
             seed: int) -> list[Comparison | None]:
    """Compare the second of each couple with its first, p corrected over all; None where they share no question."""
    made = [pairs_of(metric, first.answers, second.answers, grouped, scoring, first.refusing and second.refusing)
            for first, second in couples]
    found = iter(compare([pairs for pairs in made if pairs.n], seed))
    return [next(found) if pairs.n else None for pairs in made]


def repeated(rows: CellRows, answers: Answers, clusters: Clusters, scoring: Scoring,
             seed: int = 0) -> list[dict[str, Any]]:
    """Return the figures of every way of answering that was asked several times, over its repeats and seeds: rows of
    `cell`, the id of the first of its cells, `cells`, how many they are, and `metrics`. A question's score is its mean
    over them, so that the intervals, which are of questions, shrink as far as its answers vary, and count no question
    twice."""
    return [{"cell": one.row["id"], "cells": one.cells, "metrics": averages_of(one, clusters.of, scoring, seed)}
            for one in variants_of(rows, answers) if one.cells > 1]


def together_of(repeated: Iterable[Mapping[str, Any]]) -> dict[str, Figures]:
    """Return the figures of what was asked several times, by the id of its first cell, from a summary's `repeated`."""
    return {row["cell"]: row["metrics"] for row in repeated}


def own_figures(variant: Variant, together: Mapping[str, Figures]) -> Figures:
    """Return those of its row, or over all its repeats and seeds; empty where neither is known."""
    found: Figures = variant.row.get("metrics", {}) if variant.cells == 1 else together.get(variant.row["id"], {})
    return found


def with_own_intervals(found: Comparison, first: Figures, second: Figures) -> Comparison:
    """Return the comparison with one interval for one figure, wherever it stands: a cell whose questions all have a
    pair has the interval of the run's table, and another one keeps that over its pairs."""
    before, after = first.get(found.metric, {}), second.get(found.metric, {})
    if _same(before, found.before, found.n):
        found = replace(found, before_low=before["low"], before_high=before["high"])
    if _same(after, found.after, found.n):
        found = replace(found, after_low=after["low"], after_high=after["high"])
    return found


def _same(own: Mapping[str, Any], mean: float | None, n: int) -> bool:
    return mean is not None and own.get("n") == n and own["mean"] is not None and math.isclose(
        own["mean"], mean, abs_tol=1e-9)
