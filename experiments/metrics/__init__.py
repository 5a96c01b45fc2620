"""Metrics: pure functions of one question, and the figures of a set."""
from __future__ import annotations

from ragbed.experiments.metrics.aggregate import (
    Estimate,
    ScoredQuestion,
    aggregate,
    estimate,
    outcomes,
    share_among,
    share_of,
)
from ragbed.experiments.metrics.answers import chain_pattern
from ragbed.experiments.metrics.intervals import Interval
from ragbed.experiments.metrics.matching import best_overlap, exact_match, holds, is_korean, token_f1, tokens
from ragbed.experiments.metrics.metric import Metric, cut_of, family_of
from ragbed.experiments.metrics.ranking import GOLD, judgements_at, named_ranking, precision_omega
from ragbed.experiments.metrics.scored import (
    Extent,
    Scored,
    ScoredRow,
    Scoring,
    Sub,
    may_cite,
    may_refuse,
    name_of,
    reasoning_of,
    scored_of,
    text_as_published,
)
from ragbed.experiments.metrics.scoring import (
    GROUPS,
    METRICS,
    measured_in,
    metric_named,
    score,
    scored_result,
    shown_name,
)

__all__ = ["GOLD", "GROUPS", "METRICS", "Estimate", "Extent", "Interval", "Metric", "Scored", "ScoredQuestion",
           "ScoredRow", "Scoring", "Sub", "aggregate", "best_overlap", "chain_pattern", "cut_of", "estimate",
           "exact_match", "family_of", "holds", "is_korean", "judgements_at", "may_cite", "may_refuse", "measured_in",
           "metric_named", "name_of", "named_ranking", "outcomes", "precision_omega", "reasoning_of", "score",
           "scored_of", "scored_result", "share_among", "share_of", "shown_name", "text_as_published", "token_f1",
           "tokens"]
