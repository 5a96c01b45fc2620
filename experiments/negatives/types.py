"""The settings of mining negatives, and what is mined for a question, kept and turned away."""
from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.types import Chunk
from ragbed.experiments.negatives.guard import Rejected, Thresholds
from ragbed.experiments.question import FoundBy, Mined, Question
from ragbed.retrieval.mining import DRAWN, MiningQuery
from ragbed.retrieval.models.finding import MINILM
from ragbed.retrieval.rerankers import RerankerSettings


class MiningSettings(BaseModel):
    """How negatives are mined.

    Attributes:
        miners: in the order of their turns (`retrieval.mining.miner_names`); the first alone fills questions up, as
            long as it finds any.
        per_question: how many further negatives each question is to have beside those that fill it up.
        fill: to how many chunks a question is filled up, its gold among them; 0 for not at all.
        keep: whether all chunks that a question was given stay; else only its gold does, and its other chunks are
            candidates like any. Where the gold of an answerable question is not known, they stay in any case.
        index: where candidates come from; None for the benchmark's own chunks.
        embedder: of the benchmark's own chunks; an index has its own.
        reranker: what must not score a candidate above the question's gold, or where it is a judge, which grades, not
            grade it 2 or 3; None for no such check.
        depth: how many candidates of each miner are looked at for a question at the most.
        seed: of what is drawn: the order of a question that was filled up, and the miner `random`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    miners: tuple[str, ...] = Field(default=("dense", "bm25", "same_document", "entity"), min_length=1)
    per_question: int = Field(default=10, ge=0)
    fill: int = Field(default=10, ge=0)
    keep: bool = False
    index: Path | None = None
    embedder: str = MINILM
    reranker: RerankerSettings | None = None
    thresholds: Thresholds = Thresholds()
    depth: int = Field(default=1_000, ge=1)
    seed: int = 0


def best_rank(found: Iterable[FoundBy]) -> int | None:
    """Return the best rank that any miner gave a candidate; None where it was only drawn, in no order."""
    return min((one.rank for one in found if one.miner != DRAWN), default=None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question with what is to be mined for it."""

    question: Question
    asked: MiningQuery
    kept: tuple[Chunk, ...]  # the chunks that it is shown in any case
    keeps_own: bool  # whether these are all that it was given
    gold: tuple[Chunk, ...]  # the gold chunks, as far as any are known: its own, and those of the index
    fill: int  # how many negatives fill it up
    further: int  # how many it is to have beside these
    coarse: tuple[Rejected, ...] = ()  # what is left out because gold is known no better than by page or document

    @property
    def total(self) -> int:
        return self.fill + self.further


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was mined for a question."""

    chunks: tuple[Chunk, ...]  # those that fill the question up, then the further ones
    fill: int  # how many of them fill it up
    miners: Mapping[str, str]  # by chunk id, whose turn took it
    found: Mapping[str, tuple[FoundBy, ...]]  # by chunk id, which miners found it
    rejected: tuple[Rejected, ...]
    why_short: str | None = None  # why there are fewer than wanted; None where there are not


def with_negatives(wanted: Wanted, chosen: Chosen, mined: Mapping[str, Mined], seed: int) -> Question:
    """Return the question with negatives among its chunks and further ones behind these.

    Where any fill it up, the order of its chunks is drawn, so that gold has no place of its own. The benchmark's own
    negatives, where they are kept, follow the mined ones; no dose has them, since nobody knows how hard they are.
    """
    question = wanted.question
    given = (*wanted.kept, *chosen.chunks[:chosen.fill])
    if chosen.fill:
        given = tuple(random.Random(f"{seed}:{question.id}:given").sample(given, len(given)))
    further = chosen.chunks[chosen.fill:]
    there = {chunk.id for chunk in (*given, *further)}
    own = tuple(chunk for chunk in question.negatives if chunk.id not in there) if wanted.keeps_own else ()
    return replace(question, given=given, pool=question.pool if wanted.keeps_own else (),
                   negatives=(*further, *own), mined=mined)
