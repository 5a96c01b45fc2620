"""Small things that several retrievers do with what others found."""
from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import repeat
from math import fsum, isfinite
from numbers import Real
from typing import TypeVar

from ragbed.retrieval.types import Hit

T = TypeVar("T", bound=Hashable)

DECIMALS = 6  # of a cosine or a score: what differs by less is a tie, which the number of threads must not decide


def distinct(hits: Sequence[Hit]) -> list[Hit]:
    """Return each chunk once, where it stands first."""
    found: dict[str, Hit] = {}
    for hit in hits:
        found.setdefault(hit.chunk.id, hit)
    return list(found.values())


def number(value: object) -> float | None:
    """Return a number of whatever library as a float; None for what is none, a truth value, not finite or too large."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if isfinite(found) else None


def scaled(scores: Sequence[float]) -> list[float]:
    """Return scores moved to 0..1 by the least and the highest of them; all 1 where they are equal, or one alone."""
    least, highest = min(scores, default=0.0), max(scores, default=0.0)
    if highest - least <= 10 ** -DECIMALS * max(abs(least), abs(highest)):
        return [1.0] * len(scores)
    return [(score - least) / (highest - least) for score in scores]


def reciprocal_ranks(ranks: Iterable[Mapping[T, int]], weights: Iterable[float] | None = None,
                     constant: int = 60) -> dict[T, float]:
    """Return for each item the sum of weight / (constant + rank) over the lists that hold it.

    The sum does not depend on the order of the lists, so that what is tied stays tied. Source: Cormack, Clarke,
    Buettcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009, eq. 1.
    Each list has the rank of each of its items, from 1, and a weight; without weights 1 each.
    """
    parts: dict[T, list[float]] = {}
    for weight, places in zip(repeat(1.0) if weights is None else weights, ranks, strict=False):
        for item, rank in places.items():
            parts.setdefault(item, []).append(weight / (constant + rank))
    return {item: fsum(each) for item, each in parts.items()}


def in_turn(lists: Iterable[Sequence[T]]) -> list[T]:
    """Return the first of each list, then the second of each, and so on."""
    held = list(lists)
    return [one[at] for at in range(max(map(len, held), default=0)) for one in held if at < len(one)]


def continued(first: Sequence[Hit], rest: Iterable[Hit], k: int) -> list[Hit]:
    """Return at most `k` hits: those that were put into an order, and behind them others in the order in which they
    come, with 1, 2, 3 ... less than the last of the first. So a retriever that reorders so many of another's hits and
    no more has the same best ones however many are asked for."""
    known = {hit.chunk.id for hit in first}
    least, count = (first[-1].score, len(first)) if first else (0.0, 0)
    more = (hit for hit in rest if hit.chunk.id not in known)
    behind = [Hit(hit.chunk, least - place, count + place, hit.found_by) for place, hit in enumerate(more, 1)]
    return [*first, *behind][:k]
