"""Operations on hits and scores that several retrievers share."""
from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import repeat
from math import fsum, isfinite
from numbers import Real
from typing import TypeVar

from ragbed.retrieval.types import Hit

T = TypeVar("T", bound=Hashable)

DECIMALS = 6  # smaller differences of scores are ties; otherwise the number of threads would decide the order


def distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Return the first hit of each chunk."""
    found: dict[str, Hit] = {}
    for hit in hits:
        found.setdefault(hit.chunk.id, hit)
    return list(found.values())


def number(value: object) -> float | None:
    """Convert a number of any library to a float; None for booleans, other values, and if it is not finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None


def min_max_scale(scores: Sequence[float]) -> list[float]:
    """Scale scores to 0..1 by their minimum and maximum. If all scores are equal, they become 1."""
    least, highest = min(scores, default=0.0), max(scores, default=0.0)
    if highest - least <= 10 ** -DECIMALS * max(abs(least), abs(highest)):
        return [1.0] * len(scores)
    return [(score - least) / (highest - least) for score in scores]


def reciprocal_ranks(ranks: Iterable[Mapping[T, int]], weights: Iterable[float] | None = None,
                     constant: int = 60) -> dict[T, float]:
    """Return for each item the sum of weight / (constant + rank) over the lists that contain it.

    The sum does not depend on the order of the lists, so ties stay ties. Source: Cormack, Clarke, Buettcher,
    "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009, eq. 1.

    Args:
        ranks: for each list, the rank of each item, counted from 1.
        weights: one per list. Default: 1 each.
    """
    parts: dict[T, list[float]] = {}
    for weight, places in zip(repeat(1.0) if weights is None else weights, ranks, strict=False):
        for item, rank in places.items():
            parts.setdefault(item, []).append(weight / (constant + rank))
    return {item: fsum(each) for item, each in parts.items()}


def interleave(lists: Iterable[Sequence[T]]) -> list[T]:
    """Return the first item of each list, then the second of each, and so on."""
    every = list(lists)
    return [one[at] for at in range(max(map(len, every), default=0)) for one in every if at < len(one)]


def append_rest(first: Sequence[Hit], rest: Iterable[Hit], k: int) -> list[Hit]:
    """Return at most `k` hits: the reordered `first`, then the hits of `rest` that are not in `first`. The latter get
    the score of the last reordered hit minus 1, 2, 3 ... So a retriever that reorders only the best hits of another has
    the same best hits for every `k`."""
    known = {hit.chunk.id for hit in first}
    least, count = (first[-1].score, len(first)) if first else (0.0, 0)
    more = (hit for hit in rest if hit.chunk.id not in known)
    behind = [Hit(hit.chunk, least - place, count + place, hit.found_by) for place, hit in enumerate(more, 1)]
    return [*first, *behind][:k]
