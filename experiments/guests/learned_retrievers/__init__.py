"""Retrievers with learned representations other than one vector per text: sparse encoders and late interaction."""
from ragbed.experiments.guests.learned_retrievers.late_interaction_search import LateInteractionSearch
from ragbed.experiments.guests.learned_retrievers.sparse import Sparse

__all__ = ["LateInteractionSearch", "Sparse"]
