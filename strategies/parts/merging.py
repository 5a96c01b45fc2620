"""Merge the evidence of several searches into one list, each passage once, in the order of the prompts."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field

from ragbed.retrieval.types import interleave as alternating
from ragbed.retrieval.types import reciprocal_ranks
from ragbed.strategies.types import Evidence, Passage

Keep = Annotated[int | None, Field(ge=1)]
"""Maximum number of passages kept from several searches; None keeps as many as the longest list has."""


def fuse(lists: Sequence[Evidence], keep: Keep = None) -> Evidence:
    """Merge the results of equivalent queries by reciprocal rank fusion, which favours passages in several lists.

    A passage scores the sum of 1 / (60 + rank) over its lists (Cormack et al. 2009, eq. 1). Ties go to the earlier
    list, then to the earlier rank. See `keep_limit` for how many are kept.
    """
    scores = reciprocal_ranks({number: rank for rank, number in enumerate(
        dict.fromkeys(passage.number for passage in one), start=1)} for one in lists)
    ranked = sorted(concatenate(lists), key=lambda passage: -scores[passage.number])
    return tuple(ranked[:keep_limit(lists, keep)])


def interleave(lists: Sequence[Evidence], keep: Keep = None) -> Evidence:
    """Merge the results of different questions: the first passage of each list, then the second of each, and so on.

    Reciprocal rank fusion is not used: it would rank a passage that several queries found above one query's best.
    """
    return concatenate([alternating(lists)])[:keep_limit(lists, keep)]


def concatenate(lists: Iterable[Sequence[Passage]]) -> Evidence:
    """Join lists one after another. Keep each passage once."""
    return tuple({passage.number: passage for one in lists for passage in one}.values())


def keep_limit(lists: Sequence[Evidence], keep: Keep) -> int:
    """Return how many passages to keep: `keep`, or the length of the longest list. This way, strategies with many
    searches and with a single one are compared on the same amount of evidence."""
    return max(map(len, lists), default=0) if keep is None else keep


def new_passages(seen: Evidence, evidence: Evidence) -> Evidence:
    """Return the passages of `evidence` that are not in `seen`."""
    numbers = {passage.number for passage in seen}
    return tuple(passage for passage in evidence if passage.number not in numbers)


def format_numbers(evidence: Evidence) -> str:
    """Format passage numbers for a decision: `[2] [4]`."""
    return " ".join(f"[{passage.number}]" for passage in evidence)
