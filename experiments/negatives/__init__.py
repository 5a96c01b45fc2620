"""Negatives: hard ones mined for the questions of a benchmark, with a guard against those that answer them."""
from __future__ import annotations

from experiments.negatives.mining import mine
from experiments.negatives.types import MiningSettings

__all__ = ["MiningSettings", "mine"]
