"""Counting what the guard decided: by reason, by miner, and which questions got fewer negatives than asked for."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from sys import maxsize
from typing import Any

from experiments.negatives.types import REASONS, Chosen, Wanted, best_rank
from experiments.question import Bucket, Mined
from retrieval.hits import DECIMALS

_BUCKETS: tuple[Bucket, ...] = ("hard", "medium", "easy")
BANDS: Mapping[str, range] = {"1-5": range(1, 6), "6-10": range(6, 11), "11-20": range(11, 21),
                              "later": range(21, maxsize)}
"""Ranks of candidates: what stands first is nearest, and most often the answer."""
NOBODY = "left out"
"""In the place of a miner: what was left out before anybody looked."""


def counted(wanted: Sequence[Wanted], chosen: Sequence[Chosen], mined: Sequence[Mapping[str, Mined]],
            rejected_near: Sequence[float]) -> dict[str, Any]:
    """Everything that a table of a mining shows, as the manifest keeps it.

    A candidate that several miners found counts once in `candidates`, and under each of these miners in `miners`.

    Args:
        rejected_near: the hardness of every candidate that the guard rejected.
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
            "guard": {"ranks": _by_rank(chosen),
                      "hardness": {"kept": _mean([each.hardness for one in mined for each in one.values()]),
                                   "rejected": _mean(rejected_near)}},
            "short": sum(one.why_short is not None for one in chosen)}


def short(wanted: Sequence[Wanted], chosen: Sequence[Chosen]) -> dict[str, dict[str, Any]]:
    """By question id: how many negatives it was to have, how many it has, how many were rejected, and why no more."""
    return {one.question.id: {"wanted": one.total, "kept": len(found.chunks), "rejected": len(found.rejected),
                              "why": found.why_short}
            for one, found in zip(wanted, chosen, strict=True) if found.why_short is not None}


def _by_rank(chosen: Sequence[Chosen]) -> dict[str, dict[str, int]]:
    """How many candidates of each band of ranks were kept, and how many the guard rejected, by the best rank that a
    miner gave them. Repeated ones are neither."""
    kept = [best_rank(found) for one in chosen for found in one.found.values()]
    rejected = [best_rank(each.found) for one in chosen for each in one.rejected if each.guarded]
    return {name: {what: sum(rank is not None and rank in band for rank in ranks)
                   for what, ranks in (("kept", kept), ("rejected", rejected))} for name, band in BANDS.items()}


def _mean(values: Sequence[float]) -> float | None:
    return round(fmean(values), DECIMALS) if values else None


def _hardness(every: Sequence[Mined]) -> dict[str, dict[str, float]]:
    """Of each bucket: how many, and the least, mean and greatest hardness."""
    found = {bucket: [one.hardness for one in every if one.bucket == bucket] for bucket in _BUCKETS}
    return {bucket: {"n": len(values), "least": min(values), "mean": round(sum(values) / len(values), 6),
                     "greatest": max(values)} for bucket, values in found.items() if values}
