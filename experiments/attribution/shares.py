"""Shares of questions, with the intervals that all figures have."""
from __future__ import annotations

from collections.abc import Mapping

from experiments.metrics.aggregate import Estimate, share_among

Grouped = Mapping[str, str]  # by question, its cluster; see `experiments.statistics.clusters`


def share(hits: Mapping[str, bool], grouped: Grouped) -> Estimate:
    """The share of the questions that are hits.

    Args:
        hits: by question's id.
    """
    return share_among(list(hits.values()), [grouped.get(question, question) for question in hits])
