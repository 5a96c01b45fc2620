"""Statistics that compare cells over the same questions, from stored scores."""
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.statistics.comparison import (
    Comparison,
    bootstrap,
    compare,
    difference_interval,
    share_difference_interval,
)
from ragbed.experiments.statistics.paired import Clusters, Pairs, cluster_questions, pair_scores
from ragbed.experiments.statistics.testing import (
    POWER,
    describe_assumptions,
    holm,
    mcnemar,
    mcnemar_power,
    permutation,
    planned_difference,
    smallest_difference,
    smallest_share_difference,
)

__all__ = [
    "ALPHA",
    "POWER",
    "Clusters",
    "Comparison",
    "Pairs",
    "bootstrap",
    "cluster_questions",
    "compare",
    "describe_assumptions",
    "difference_interval",
    "holm",
    "mcnemar",
    "mcnemar_power",
    "pair_scores",
    "permutation",
    "planned_difference",
    "share_difference_interval",
    "smallest_difference",
    "smallest_share_difference",
]
