"""Metrics: pure functions of one question, and the figures of a set."""
from __future__ import annotations

from experiments.metrics.aggregate import Estimate, aggregate, outcomes
from experiments.metrics.scored import Scored, Scores, Scoring, needs_judge
from experiments.metrics.table import METRICS, Metric, score, shown_name

__all__ = ["METRICS", "Estimate", "Metric", "Scored", "Scores", "Scoring", "aggregate", "needs_judge", "outcomes",
           "score", "shown_name"]
