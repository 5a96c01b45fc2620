"""Metrics: pure functions of one question, and the figures of a set."""
from __future__ import annotations

from ragbed.experiments.metrics.aggregate import (
    Estimate,
    ScoredQuestion,
    aggregate,
    count_outcomes,
    estimate,
    estimate_clustered_share,
    estimate_share,
)
from ragbed.experiments.metrics.answers import chain_pattern
from ragbed.experiments.metrics.intervals import Interval
from ragbed.experiments.metrics.matching import best_overlap, contains_answer, exact_match, is_korean, token_f1, tokens
from ragbed.experiments.metrics.metric import Metric, cut_of, family_of
from ragbed.experiments.metrics.ranking import GOLD, judged_ranking, judgements_at, precision_omega
from ragbed.experiments.metrics.scored import (
    Extent,
    Scored,
    ScoredRow,
    Scoring,
    Sub,
    extract_reasoning,
    judgement_name,
    make_scored,
    may_cite,
    may_refuse,
    text_as_published,
)
from ragbed.experiments.metrics.scoring import (
    GROUPS,
    METRICS,
    custom_metrics,
    find_metric,
    name_with_judge,
    score,
    score_result,
)

__all__ = [
    "GOLD",
    "GROUPS",
    "METRICS",
    "Estimate",
    "Extent",
    "Interval",
    "Metric",
    "Scored",
    "ScoredQuestion",
    "ScoredRow",
    "Scoring",
    "Sub",
    "aggregate",
    "best_overlap",
    "chain_pattern",
    "contains_answer",
    "count_outcomes",
    "custom_metrics",
    "cut_of",
    "estimate",
    "estimate_clustered_share",
    "estimate_share",
    "exact_match",
    "extract_reasoning",
    "family_of",
    "find_metric",
    "is_korean",
    "judged_ranking",
    "judgement_name",
    "judgements_at",
    "make_scored",
    "may_cite",
    "may_refuse",
    "name_with_judge",
    "precision_omega",
    "score",
    "score_result",
    "text_as_published",
    "token_f1",
    "tokens",
]
