"""Mining: chunks that are near to a query in one way or another; which of them are left out is the caller's to know."""
from __future__ import annotations

from ragbed.retrieval.mining.miner import Miner, MiningQuery, Rows
from ragbed.retrieval.mining.miners import DRAWN, Nearness, check_miners, miner_names, open_miner

__all__ = ["DRAWN", "Miner", "MiningQuery", "Nearness", "Rows", "check_miners", "miner_names", "open_miner"]
