"""What is mined for a question, what is kept of it, and what is turned away."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from documents.types import Chunk
from experiments.question import FoundBy, Question
from retrieval.mining import DRAWN, Asked

Reason = Literal["answer", "answer_words", "answer_name", "near_duplicate", "reranker", "repeated", "gold_page",
                 "gold_document"]
REASONS: Mapping[Reason, str] = {
    "answer": "an accepted answer, or the text of the right option, stands in it",
    "answer_words": "it holds most words of a long answer",
    "answer_name": "it holds a rare word of a name that is the answer",
    "near_duplicate": "it is almost a gold chunk, or a part of one, or holds one, with no other figures",
    "reranker": "the reranker scores it above every gold chunk",
    "repeated": "its text, or a part of it, is among the question's chunks already",
    "gold_page": "it is of a gold page, where gold is known by page",
    "gold_document": "it is of a gold document, where gold is known by document"}


def best_rank(found: Iterable[FoundBy]) -> int | None:
    """The best rank that any miner gave a candidate; None where it was only drawn, in which ranks say nothing."""
    return min((one.rank for one in found if one.miner != DRAWN), default=None)


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that is not taken.

    Attributes:
        figures: what the reason rests on, such as the answer that was found, or both scores.
        found: which miners found it; none where it was left out before anybody looked.
    """

    chunk: Chunk
    reason: Reason
    figures: Mapping[str, str | float] = field(default_factory=dict)
    found: tuple[FoundBy, ...] = ()

    @property
    def guarded(self) -> bool:
        """Whether a miner found it, and the guard took it for one that may answer the question."""
        return bool(self.found) and self.reason != "repeated"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question with what is to be mined for it.

    Attributes:
        kept: the chunks that it is shown in any case.
        keeps_own: whether these are all that it was given.
        gold: the gold chunks, as far as any are known: its own, and those of the index.
        fill: how many negatives fill it up.
        further: how many it is to have beside these.
        coarse: what is left out because gold is known no better than by page or document.
    """

    question: Question
    asked: Asked
    kept: tuple[Chunk, ...]
    keeps_own: bool
    gold: tuple[Chunk, ...]
    fill: int
    further: int
    coarse: tuple[Rejected, ...] = ()

    @property
    def total(self) -> int:
        return self.fill + self.further


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was mined for a question.

    Attributes:
        chunks: those that fill the question up, then the further ones.
        fill: how many of them fill it up.
        miners: by chunk id, whose turn took it.
        found: by chunk id, which miners found it.
        why_short: why there are fewer than wanted; None where there are not.
    """

    chunks: tuple[Chunk, ...]
    fill: int
    miners: Mapping[str, str]
    found: Mapping[str, tuple[FoundBy, ...]]
    rejected: tuple[Rejected, ...]
    why_short: str | None = None
