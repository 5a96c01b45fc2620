"""Metrics: pure functions of one question, and the figures of a set."""
from __future__ import annotations

from experiments.metrics.aggregate import Estimate, aggregate, outcomes
from experiments.metrics.catalogue import GROUPS, METRICS, metric_named, score, shown_name
from experiments.metrics.chain import chain_pattern
from experiments.metrics.means import Derived, Means
from experiments.metrics.metric import Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring

__all__ = ["GROUPS", "METRICS", "Derived", "Estimate", "Group", "Means", "Metric", "Scored", "Scores", "Scoring",
           "aggregate", "chain_pattern", "metric_named", "outcomes", "score", "shown_name"]
