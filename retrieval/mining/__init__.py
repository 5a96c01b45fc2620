"""Mining: chunks that are near to a query in one way or another; which of them are left out is the caller's to know."""
from __future__ import annotations

from retrieval.mining.catalogue import check_miners, miner_names, open_miner
from retrieval.mining.miners import DRAWN, Nearness, Rows
from retrieval.mining.types import Asked, Miner

__all__ = ["DRAWN", "Asked", "Miner", "Nearness", "Rows", "check_miners", "miner_names", "open_miner"]
