"""Merge the evidence of several searches into one list, each passage once, in the order of the prompts."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field

from ragbed.retrieval.hits import interleave as alternating
from ragbed.retrieval.hits import reciprocal_ranks
from ragbed.strategies.types import Evidence, Passage

Keep = Annotated[int | None, Field(ge=1)]
"""How many passages are kept of several searches at most; None means as many as the longest of them found."""


def fuse(lists: Sequence[Evidence], keep: Keep = None) -> Evidence:
    """Merge by reciprocal ranks, for queries that mean the same: what several of them found comes first. A passage's
    score is the sum of 1 / (60 + rank) over the lists that hold it (Cormack et al. 2009, eq. 1). Ties go to what an
    earlier list, and in it an earlier rank, holds. `keep_limit` says how many are kept."""
    scores = reciprocal_ranks({number: rank for rank, number in enumerate(
        dict.fromkeys(passage.number for passage in one), start=1)} for one in lists)
    ranked = sorted(concatenate(lists), key=lambda passage: -scores[passage.number])
    return tuple(ranked[:keep_limit(lists, keep)])


def interleave(lists: Sequence[Evidence], keep: Keep = None) -> Evidence:
    """Take the first of each list, then the second of each, for queries that ask for different things: reciprocal ranks
    would put what several of them found a little before what answers one of them best."""
    return concatenate([alternating(lists)])[:keep_limit(lists, keep)]


def concatenate(lists: Iterable[Sequence[Passage]]) -> Evidence:
    """Put one list after the other."""
    return tuple({passage.number: passage for one in lists for passage in one}.values())


def keep_limit(lists: Sequence[Evidence], keep: Keep) -> int:
    """Return how many passages are kept: `keep`, or where that is None as many as the longest list has. What many
    searches found is then compared with what one found over equally much evidence."""
    return max(map(len, lists), default=0) if keep is None else keep


def new_passages(seen: Evidence, evidence: Evidence) -> Evidence:
    """Return the passages of the evidence that are not among those seen."""
    numbers = {passage.number for passage in seen}
    return tuple(passage for passage in evidence if passage.number not in numbers)


def format_numbers(evidence: Evidence) -> str:
    """Return the numbers of passages as decisions name them: `[2] [4]`."""
    return " ".join(f"[{passage.number}]" for passage in evidence)
