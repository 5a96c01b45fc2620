"""Metrics: pure functions of one question, and the figures of a set."""
from __future__ import annotations

from experiments.metrics.aggregate import Estimate, aggregate, outcomes
from experiments.metrics.metric import Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring
from experiments.metrics.table import GROUPS, METRICS, metric_named, score, shown_name

__all__ = ["GROUPS", "METRICS", "Estimate", "Group", "Metric", "Scored", "Scores", "Scoring", "aggregate",
           "metric_named", "outcomes", "score", "shown_name"]
