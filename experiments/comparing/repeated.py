"""What was asked several times, together: the `repeated` of a run's summary."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.comparing.variants import variants_of
from experiments.metrics.aggregate import aggregate
from experiments.metrics.sample import Row
from experiments.metrics.scored import Scoring, may_refuse
from experiments.statistics import Clusters


def repeated(rows: Sequence[Mapping[str, Any]], answers: Mapping[str, Mapping[str, Row]], clusters: Clusters,
             scoring: Scoring, seed: int = 0) -> list[dict[str, Any]]:
    """The figures of every way of answering that was asked several times, over its repeats and seeds.

    A question's score is its mean over them, so that the intervals, which are of questions, shrink as far as its
    answers vary, and count no question twice.

    Args:
        rows: the cells of the summary.
        answers: by cell's id, then by question.

    Returns:
        rows of `cell`, the id of the first of its cells, `cells`, how many they are, and `metrics`.
    """
    return [{"cell": one.row["id"], "cells": one.cells,
             "metrics": aggregate(list(one.answers.values()), scoring, seed, refusing=may_refuse(one.row["rules"]),
                                  clusters=[clusters.of.get(question, question) for question in one.answers])}
            for one in variants_of(rows, answers) if one.cells > 1]
