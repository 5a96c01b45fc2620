"""Settings of the mining of negatives."""
from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from retrieval.models.finding import MINILM
from retrieval.rerankers import RerankerSettings


class Thresholds(BaseModel):
    """From where on a candidate is taken for one that may answer the question; each is a share, 0 to 1.

    Attributes:
        answer_words: of the distinct words of an answer of five words or more that the candidate holds.
        same: Jaccard's index of the five-character shingles of the candidate and of a gold chunk, where one of the two
            states all figures that the other does.
        part: of the shingles of the smaller of the two that the other holds, likewise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    answer_words: float = Field(default=0.8, gt=0, le=1)
    same: float = Field(default=0.5, gt=0, le=1)
    part: float = Field(default=0.8, gt=0, le=1)


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
        reranker: what must not score a candidate above the question's gold; None for no such check.
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
