"""Metrics: pure functions of one question, and the figures of a set."""
from __future__ import annotations

from experiments.metrics.aggregate import Estimate, aggregate, estimate, outcomes, share_among, share_of
from experiments.metrics.as_published import refused_as_published
from experiments.metrics.bounds import Interval
from experiments.metrics.catalogue import (
    GROUPS,
    METRICS,
    measured_in,
    metric_named,
    score,
    scored_result,
    shown_name,
)
from experiments.metrics.chain import chain_pattern
from experiments.metrics.metric import Group, Metric, cut_of, family_of
from experiments.metrics.ranking import precision_omega
from experiments.metrics.sample import ScoredRow, range_of
from experiments.metrics.scored import Extent, Scored, Scores, Scoring, Sub, may_refuse, reasoning_of, scored_of

__all__ = ["GROUPS", "METRICS", "Estimate", "Extent", "Group", "Interval", "Metric", "Scored", "ScoredRow", "Scores",
           "Scoring", "Sub", "aggregate", "chain_pattern", "cut_of", "estimate", "family_of", "may_refuse",
           "measured_in", "metric_named", "outcomes", "precision_omega", "range_of", "reasoning_of",
           "refused_as_published", "score", "scored_of", "scored_result", "share_among", "share_of", "shown_name"]
