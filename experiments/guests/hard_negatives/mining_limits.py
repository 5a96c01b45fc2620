"""Limit the candidates of a question by rank and by score, as sentence-transformers' `mine_hard_negatives` does."""
from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from ragbed.documents.types import Chunk
from ragbed.experiments.guests.hard_negatives.guard import Reason, Rejected
from ragbed.retrieval.types import Hit

_PER_NEGATIVE = 10  # candidates to look at for each negative that is needed, by default


class Limits(BaseModel):
    """Limits of rank and score, with the names and the meaning of sentence-transformers' `mine_hard_negatives`.

    Scores are cosines of the question and the chunk, whichever miner found it, or those of the cross-encoder or other
    reranker that the user names. The gold's score is the lowest of its gold chunks; for gold that is known only by
    page or document, each document counts by its best chunk.

    Attributes:
        range_min: number of candidates of each miner to skip. Gold, and what the other limits leave out, do not count.
        range_max: number of candidates of each miner to look at. Default: `range_min`, ten per negative, and the
            largest number of gold chunks of a question.
        max_score: leave out candidates with a higher score.
        min_score: leave out candidates with a lower score.
        absolute_margin: leave out candidates whose score is not this much below the gold's.
        relative_margin: leave out candidates with a score above (1 - margin) times the gold's.
        sampling: `top` takes the best of the remaining candidates, and `random` draws from them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    range_min: int = Field(default=0, ge=0)
    range_max: int | None = Field(default=None, ge=1)
    max_score: FiniteFloat | None = None
    min_score: FiniteFloat | None = None
    absolute_margin: FiniteFloat | None = None
    relative_margin: FiniteFloat | None = None
    sampling: Literal["top", "random"] = "top"

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.range_max is not None and self.range_max <= self.range_min:
            raise ValueError(f"range_max {self.range_max} is not above range_min {self.range_min}")
        if self.max_score is not None and self.min_score is not None and self.max_score < self.min_score:
            raise ValueError(f"max_score {self.max_score} is below min_score {self.min_score}")
        return self

    @property
    def by_margin(self) -> bool:
        return self.absolute_margin is not None or self.relative_margin is not None

    @property
    def by_score(self) -> bool:
        return self.by_margin or self.max_score is not None or self.min_score is not None

    def last_rank(self, negatives: int, most_gold: int) -> int:
        """Return `range_max`, or its default for this number of negatives per question."""
        return self.range_max or self.range_min + _PER_NEGATIVE * max(negatives, 1) + most_gold


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of a question's candidates and gold.

    Attributes:
        near: cosine of the question and each candidate, by chunk id.
        gold_near: cosine of the question and each gold item.
        used: scores that the limits compare, by chunk id; `near`, or a reranker's.
        gold: scores of the gold items on the scale of `used`.
    """

    near: Mapping[str, float]
    gold_near: Sequence[float]
    used: Mapping[str, float]
    gold: Sequence[float]


@dataclass(frozen=True, slots=True)
class Limited:
    """The hits that remain of each miner, and the candidates that the limits left out, by chunk id."""

    hits: Mapping[str, Sequence[Hit]]
    left_out: Mapping[str, Rejected] = field(default_factory=dict)


def apply_limits(found: Mapping[str, Sequence[Hit]], scores: Scores, limits: Limits, last_rank: int, most_gold: int,
                 seed: str) -> Limited:
    """Apply the limits to the hits of each miner.

    In the order of sentence-transformers: look at the first `last_rank + most_gold` candidates with the gold among
    them; leave out the gold and what exceeds a score; of the rest, take those from `range_min` to `last_rank`.
    """
    kept: dict[str, Sequence[Hit]] = {}
    left_out: dict[str, Rejected] = {}
    for miner, hits in found.items():
        ahead = [sum(gold > scores.near[hit.chunk.id] for gold in scores.gold_near) for hit in hits]
        seen = [hit for place, hit in enumerate(hits) if place + ahead[place] < last_rank + most_gold]
        rest: list[Hit] = []
        for hit in seen:
            reason = _exceeded(limits, scores.used[hit.chunk.id], scores.gold)
            if reason is None:
                rest.append(hit)
            else:
                left_out[hit.chunk.id] = _reject(hit.chunk, reason, scores)
        if scores.used is not scores.near:
            rest.sort(key=lambda hit: -scores.used[hit.chunk.id])
        for hit in rest[:limits.range_min]:
            left_out.setdefault(hit.chunk.id, _reject(hit.chunk, "range", scores))
        own = rest[limits.range_min:last_rank]
        kept[miner] = random.Random(f"{seed}:{miner}").sample(own, len(own)) if limits.sampling == "random" else own
    return Limited(kept, left_out)


def _exceeded(limits: Limits, score: float, gold: Sequence[float]) -> Reason | None:
    """Return the first limit that the score exceeds. Without gold there is no margin."""
    least = min(gold, default=None)
    checks: list[tuple[Reason, Callable[[float], bool]]] = []
    if least is not None and (margin := limits.absolute_margin) is not None:
        checks.append(("absolute_margin", lambda one: one + margin > least))
    if least is not None and (share := limits.relative_margin) is not None:
        checks.append(("relative_margin", lambda one: one > least - abs(least) * share))
    if (most := limits.max_score) is not None:
        checks.append(("max_score", lambda one: one > most))
    if (lowest := limits.min_score) is not None:
        checks.append(("min_score", lambda one: one < lowest))
    return next((reason for reason, exceeds in checks if exceeds(score)), None)


def _reject(chunk: Chunk, reason: Reason, scores: Scores) -> Rejected:
    gold = {"gold": round(min(scores.gold), 4)} if scores.gold else {}
    return Rejected(chunk, reason, {"score": round(scores.used[chunk.id], 4), **gold})
