"""Evidence of several searches as one list, each passage once: the order in which prompts show it."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from math import fsum

from strategies.types import Evidence, Passage

_CONSTANT = 60  # of reciprocal ranks: Cormack et al. 2009


def fused(lists: Sequence[Evidence], keep: int | None = None) -> Evidence:
    """By reciprocal ranks, for queries that mean the same: what several of them found comes first.

    A passage's score is the sum of 1 / (60 + rank) over the lists that hold it (Cormack et al. 2009, eq. 1). Ties go
    to what an earlier list, and in it an earlier rank, holds.

    Args:
        keep: how many passages at most; None means what `bound` says.
    """
    places: dict[int, list[int]] = {}
    for one in lists:
        for rank, number in enumerate(dict.fromkeys(passage.number for passage in one), start=1):
            places.setdefault(number, []).append(rank)
    scores = {number: fsum(1 / (_CONSTANT + rank) for rank in ranks) for number, ranks in places.items()}
    ranked = sorted(in_order(lists), key=lambda passage: -scores[passage.number])
    return tuple(ranked[:bound(lists, keep)])


def in_turn(lists: Sequence[Evidence], keep: int | None = None) -> Evidence:
    """The first of each list, then the second of each, for queries that ask for different things.

    Reciprocal ranks would put what several of them found a little before what answers one of them best.

    Args:
        keep: as `fused` has it.
    """
    rows = zip_longest(*lists)
    return _distinct(passage for row in rows for passage in row if passage is not None)[:bound(lists, keep)]


def in_order(lists: Iterable[Evidence]) -> Evidence:
    """One list after the other."""
    return _distinct(chain.from_iterable(lists))


def _distinct(passages: Iterable[Passage]) -> Evidence:
    return tuple({passage.number: passage for passage in passages}.values())


def bound(lists: Sequence[Evidence], keep: int | None) -> int:
    """How many passages are kept: as many as `keep` says, else as the longest list has.

    What many searches found is then compared with what one found over equally much evidence.
    """
    return max(map(len, lists), default=0) if keep is None else keep


def beyond(seen: Evidence, evidence: Evidence) -> Evidence:
    """The passages of the evidence that are not among those seen."""
    numbers = {passage.number for passage in seen}
    return tuple(passage for passage in evidence if passage.number not in numbers)


def named(evidence: Evidence) -> str:
    """The numbers of passages as a decision tells them: `[2] [4]`."""
    return " ".join(f"[{passage.number}]" for passage in evidence)
