"""Counting what the guard decided: by reason, by miner, and which questions got fewer negatives than asked for."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.negatives.types import REASONS, Chosen, Wanted
from experiments.question import Bucket, Mined

_BUCKETS: tuple[Bucket, ...] = ("hard", "medium", "easy")
NOBODY = "left out"
"""In the place of a miner: what was left out before anybody looked."""


def counted(wanted: Sequence[Wanted], chosen: Sequence[Chosen], mined: Sequence[Mapping[str, Mined]]) -> dict[str, Any]:
    """Everything that a table of a mining shows, as the manifest keeps it.

    A candidate that several miners found counts once in `candidates`, and under each of these miners in `miners`.
    """
    by_miner: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for one in chosen:
        for rejected in one.rejected:
            reasons[rejected.reason] += 1
            for miner in [each.miner for each in rejected.found] or [NOBODY]:
                by_miner.setdefault(miner, Counter())[rejected.reason] += 1
        for found in one.found.values():
            for each in found:
                by_miner.setdefault(each.miner, Counter())["kept"] += 1
    kept = sum(len(one.chunks) for one in chosen)
    return {"questions": len(wanted), "wanted": sum(one.total for one in wanted), "kept": kept,
            "filled_up_with": sum(one.fill for one in chosen),
            "candidates": {"kept": kept, **{reason: reasons[reason] for reason in REASONS}},
            "miners": {name: dict(counts) for name, counts in by_miner.items()},
            "hardness": _hardness([each for one in mined for each in one.values()]),
            "short": sum(one.why_short is not None for one in chosen)}


def short(wanted: Sequence[Wanted], chosen: Sequence[Chosen]) -> dict[str, dict[str, Any]]:
    """By question id: how many negatives it was to have, how many it has, how many were rejected, and why no more."""
    return {one.question.id: {"wanted": one.total, "kept": len(found.chunks), "rejected": len(found.rejected),
                              "why": found.why_short}
            for one, found in zip(wanted, chosen, strict=True) if found.why_short is not None}


def _hardness(every: Sequence[Mined]) -> dict[str, dict[str, float]]:
    """Of each bucket: how many, and the least, mean and greatest hardness."""
    found = {bucket: [one.hardness for one in every if one.bucket == bucket] for bucket in _BUCKETS}
    return {bucket: {"n": len(values), "least": min(values), "mean": round(sum(values) / len(values), 6),
                     "greatest": max(values)} for bucket, values in found.items() if values}
