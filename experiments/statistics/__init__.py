"""Statistics of two cells over the same questions, from stored scores alone."""
from experiments.statistics.comparison import Comparison, compare
from experiments.statistics.pairs import Clusters, Pairs, clusters, pairs_of
from experiments.statistics.power import assumed, planned, smallest_mean, smallest_share
from experiments.statistics.testing import holm, mcnemar, permutation

__all__ = ["Clusters", "Comparison", "Pairs", "assumed", "clusters", "compare", "holm", "mcnemar", "pairs_of",
           "permutation", "planned", "smallest_mean", "smallest_share"]
