"""How alike two texts are, by the runs of characters that they share."""
from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from strategies.normalising import normalize_answer

_SHINGLE = 5
_FEWEST = 20
"""Shingles below which a text is too short to be called a part of another."""


class Likeness(NamedTuple):
    """Shares of shingles, 0 to 1.

    Attributes:
        same: Jaccard's index: those that both hold, of those that either holds.
        part: those that both hold, of those of the smaller; 0 where that has too few.
    """

    same: float
    part: float


@lru_cache(maxsize=1_024)
def shingles(text: str) -> frozenset[str]:
    """The runs of five characters of the normalised text (Broder, On the resemblance and containment of documents,
    1997, with characters in place of words, so that scripts without spaces are alike); a shorter text is its own."""
    plain = normalize_answer(text)
    return frozenset(plain[at:at + _SHINGLE] for at in range(max(len(plain) - _SHINGLE + 1, 1)))


def likeness(one: Collection[str], other: Collection[str]) -> Likeness:
    """Of two sets of shingles."""
    both = len(frozenset(one) & frozenset(other))
    smaller = min(len(one), len(other))
    return Likeness(both / (len(one) + len(other) - both), both / smaller if smaller >= _FEWEST else 0.0)
