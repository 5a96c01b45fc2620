"""Retrievers that rework another retriever's hits: `mmr` makes them differ, `expanded` shows the text around them."""
from ragbed.experiments.guests.more_retrievers.diverse import Mmr
from ragbed.experiments.guests.more_retrievers.expanded import Expanded

__all__ = ["Expanded", "Mmr"]
