"""The guard against false negatives: candidates that may answer the question, by their text alone."""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from documents.types import Chunk
from experiments.answers import holds, normalize_answer, with_values
from experiments.evidence.perturbing import telling
from experiments.negatives.likeness import Likeness, likeness, shingles
from experiments.negatives.settings import Thresholds
from experiments.negatives.types import Rejected, Wanted
from experiments.question import Question
from retrieval.mining.names import numbers_of

_LONG = 5
"""Distinct words from which on an answer is told by most of its words, not only by all in a row."""


class Guard:
    """Decides over candidates of one question."""

    def __init__(self, wanted: Wanted, thresholds: Thresholds) -> None:
        self._answers = _stated(wanted.question)
        self._gold = [(chunk.id, numbers_of(_body(chunk)), shingles(_body(chunk))) for chunk in wanted.gold]
        self._thresholds = thresholds

    def check(self, chunk: Chunk) -> Rejected | None:
        """Why the chunk may be a false negative, the surest reason first; None where nothing says so."""
        return self._tells(chunk) or self._alike(chunk)

    def _tells(self, chunk: Chunk) -> Rejected | None:
        for answer in self._answers:
            if _stands(chunk.content, answer):
                return Rejected(chunk, "answer", {"answer": answer})
            words = _words(answer)
            if len(words) >= _LONG:
                share = len(words & _words(chunk.content)) / len(words)
                if share >= self._thresholds.answer_words:
                    return Rejected(chunk, "answer_words", {"answer": answer, "share": round(share, 3)})
        return None

    def _alike(self, chunk: Chunk) -> Rejected | None:
        """A chunk that reads like the gold and states other figures says something else, and is as hard as can be."""
        stated = numbers_of(_body(chunk))
        same = [(id, theirs) for id, numbers, theirs in self._gold if stated <= numbers or numbers <= stated]
        if not same:
            return None
        ours = shingles(_body(chunk))
        near, id = max(((likeness(ours, theirs), id) for id, theirs in same), key=lambda one: max(one[0]))
        if not self._too_near(near):
            return None
        return Rejected(chunk, "near_duplicate",
                        {"gold": id, "same": round(near.same, 3), "part": round(near.part, 3)})

    def _too_near(self, near: Likeness) -> bool:
        return near.same >= self._thresholds.same or near.part >= self._thresholds.part


def above_gold(chunk: Chunk, score: float, gold: Sequence[float]) -> Rejected | None:
    """The decision on a candidate that a reranker scored, beside its scores of the gold chunks."""
    if not gold or score <= max(gold):
        return None
    return Rejected(chunk, "reranker", {"score": round(score, 4), "gold": round(max(gold), 4)})


def _stated(question: Question) -> tuple[str, ...]:
    """The accepted answers that tell something, as they are stated; of options, the text of the right one."""
    options, tell = dict(question.options), set(telling(question))
    stated = (options.get(answer, answer) for answer in question.answers)
    return tuple(answer for answer in stated if normalize_answer(answer) in tell)


def _body(chunk: Chunk) -> str:
    """What the chunk says itself: a title that all chunks of a document begin with makes none the like of another."""
    return chunk.content.removeprefix(chunk.prefix)


def _stands(content: str, answer: str) -> bool:
    """Whether the answer stands in the text, or, of one with figures, its values: `1,577` where the text has 1577."""
    if holds(_normalised(content), _normalised(answer)):
        return True
    return any(map(str.isdecimal, answer)) and holds(_valued(content), _valued(answer))


@lru_cache(maxsize=65_536)
def _normalised(content: str) -> str:
    return normalize_answer(content)


@lru_cache(maxsize=65_536)
def _valued(content: str) -> str:
    return with_values(content)


@lru_cache(maxsize=65_536)
def _words(content: str) -> frozenset[str]:
    return frozenset(_normalised(content).split())
