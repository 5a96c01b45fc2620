"""Negatives: hard ones mined for the questions of a benchmark, with a guard against those that answer them."""
from __future__ import annotations

from ragbed.experiments.negatives.mining import mine
from ragbed.experiments.negatives.types import MiningSettings

__all__ = ["MiningSettings", "mine"]
