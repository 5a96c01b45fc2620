"""Statistics of two cells over the same questions, from stored scores alone."""
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.statistics.comparison import Comparison, bootstrap, compare, interval_of, of_shares
from ragbed.experiments.statistics.paired import Clusters, Pairs, clusters, pairs_of
from ragbed.experiments.statistics.testing import (
    POWER,
    assumed,
    holm,
    mcnemar,
    mcnemar_power,
    permutation,
    planned,
    smallest_by_error,
    smallest_share,
)

__all__ = ["ALPHA", "POWER", "Clusters", "Comparison", "Pairs", "assumed", "bootstrap", "clusters", "compare", "holm",
           "interval_of", "mcnemar", "mcnemar_power", "of_shares", "pairs_of", "permutation", "planned",
           "smallest_by_error", "smallest_share"]
