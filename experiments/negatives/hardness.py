"""How hard a question's negatives are, beside each other."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.negatives.types import Chosen
from experiments.question import Bucket, Mined
from retrieval.hits import DECIMALS

_THIRDS: tuple[Bucket, ...] = ("hard", "medium", "easy")


def hardness_of(cosine: float) -> float:
    """From 0 to 1: the cosine, and 0 where it is negative."""
    return round(min(max(cosine, 0.0), 1.0), DECIMALS)


def mined(chosen: Chosen, cosines: Sequence[float]) -> Mapping[str, Mined]:
    """By chunk id, in the order in which they were taken, how each negative was mined, and how hard it is.

    Hardness is the cosine of the question's vector and that of the chunk's nearest window, by the embedder of the
    collection, and 0 where it is negative: the same for whichever miner found the chunk. The bucket is the third of the
    question's own negatives, so that each question has as many hard ones as easy ones to be asked with; it is no level
    that questions share.

    Args:
        cosines: of the question with each chunk, in the order of `chosen.chunks`.
    """
    hardness = [hardness_of(cosine) for cosine in cosines]
    order = sorted(range(len(hardness)), key=lambda place: (-hardness[place], place))
    buckets = {place: _THIRDS[rank * len(_THIRDS) // len(order)] for rank, place in enumerate(order)}
    return {chunk.id: Mined(chosen.miners[chunk.id], chosen.found[chunk.id], hardness[place], buckets[place])
            for place, chunk in enumerate(chosen.chunks)}
