"""The guard against false negatives: candidates that may answer the question, by their text alone."""
from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from html import unescape
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.numbers import find_values
from ragbed.documents.types import Chunk, Format, normalize
from ragbed.experiments.guests.hard_negatives.names import extract_numbers
from ragbed.experiments.metrics import contains_answer
from ragbed.experiments.question import FoundBy, Question
from ragbed.experiments.running.gold import revealing_answers
from ragbed.strategies.normalizing import normalize_answer, with_values


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


Reason = Literal["answer", "answer_words", "answer_name", "near_duplicate", "reranker", "relevance", "repeated",
                 "gold_page", "gold_document"]
REASONS: Mapping[Reason, str] = {
    "answer": "an accepted answer, or the text of the right option, stands in it",
    "answer_words": "it holds most words of a long answer",
    "answer_name": "it holds a rare word of a name that is the answer",
    "near_duplicate": "it is almost a gold chunk, or a part of one, or holds one, with no other figures",
    "reranker": "the reranker scores it above every gold chunk",
    "relevance": "a model grades it 2 or 3 of 3 for the question",
    "repeated": "its text, or a part of it, is among the question's chunks already",
    "gold_page": "it is of a gold page, where gold is known by page",
    "gold_document": "it is of a gold document, where gold is known by document"}


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that is not taken."""

    chunk: Chunk
    reason: Reason
    figures: Mapping[str, str | float] = field(default_factory=dict)  # such as the answer that was found
    found: tuple[FoundBy, ...] = ()  # none where it was left out before anybody looked

    @property
    def by_guard(self) -> bool:
        """Tell whether a miner found it, and the guard took it for one that may answer the question."""
        return bool(self.found) and self.reason != "repeated"


_SHINGLE = 5
_FEWEST = 20  # shingles below which a text is too short to be called a part of another


def similarity(one: Collection[str], other: Collection[str]) -> tuple[float, float]:
    """Return two shares of the shingles that both texts hold: of those that either holds (Jaccard's index), and of
    those of the smaller text; 0 where that has too few."""
    both = len(frozenset(one) & frozenset(other))
    smaller = min(len(one), len(other))
    return both / (len(one) + len(other) - both), both / smaller if smaller >= _FEWEST else 0.0


@lru_cache(maxsize=1_024)
def shingles(text: str) -> frozenset[str]:
    """Return the runs of five characters of the normalised text; a shorter text is its own.

    Broder, On the resemblance and containment of documents, 1997, with characters in place of words, so that scripts
    without spaces are alike.
    """
    plain = normalize_answer(text)
    return frozenset(plain[at:at + _SHINGLE] for at in range(max(len(plain) - _SHINGLE + 1, 1)))


_LONG = 5  # distinct words from which on an answer is told by most of its words, not only by all in a row
_SHORTEST = 4  # letters of such a word
_NAME = range(2, 5)  # how many words a name has of which one alone may tell it
_FEW, _SHARE = 20, 0.002  # a word is rare in at most so many chunks, or that share of them, whichever is more
_KEPT = 1_024  # texts whose forms are kept: neighbouring questions share candidates, and answers recur


class RareWords:
    """The words that are rare among the chunks that negatives are found in."""

    def __init__(self, contents: Iterable[str]) -> None:
        self._holders: Counter[str] = Counter()
        self._count = 0
        for content in contents:
            self._holders.update(frozenset(_plain(content).split()))  # nothing is kept of a text looked at once
            self._count += 1

    def __contains__(self, word: object) -> bool:
        return self._holders[str(word)] <= max(_FEW, _SHARE * self._count)


class Guard:
    """Decide over the candidates of one question.

    Args:
        gold: the chunks that answer it; a candidate that reads like one may answer it too.
        rarity: the words that are rare enough to tell a name.

    Attributes:
        answers: the accepted ones that a text which holds them may tell; none of a question of yes or no.
        name_words: the words of answers by which alone a text may call their bearer.
    """

    def __init__(self, question: Question, gold: Iterable[Chunk], thresholds: Thresholds,
                 rarity: Container[str]) -> None:
        options, telling_answers = dict(question.options), set(revealing_answers(question))
        texts = (options.get(answer, answer) for answer in question.answers)
        self.answers = tuple(text for text in texts if normalize_answer(text) in telling_answers)
        self.name_words = _name_words(self.answers, question.text, rarity)
        self._gold = [(chunk.id, extract_numbers(_body(chunk)), shingles(_body(chunk))) for chunk in gold]
        self._thresholds = thresholds

    def check(self, chunk: Chunk) -> Rejected | None:
        """Return why the chunk may be a false negative, the surest reason first; None where nothing tells."""
        return self._tells(chunk) or self._alike(chunk)

    def _tells(self, chunk: Chunk) -> Rejected | None:
        text = visible_text(chunk.content, chunk.format)
        for answer in self.answers:
            if _holds_answer(text, answer):
                return Rejected(chunk, "answer", {"answer": answer})
            words = _words(answer)
            if len(words) >= _LONG:
                share = len(words & _words(text)) / len(words)
                if share >= self._thresholds.answer_words:
                    return Rejected(chunk, "answer_words", {"answer": answer, "share": round(share, 3)})
        part = min(self.name_words & _words(text), default=None) if self.name_words else None
        return Rejected(chunk, "answer_name", {"word": part}) if part else None

    def _alike(self, chunk: Chunk) -> Rejected | None:
        """A chunk that reads like the gold and states other figures says something else, and is as hard as can be."""
        stated = extract_numbers(_body(chunk))
        same = [(id, theirs) for id, numbers, theirs in self._gold if stated <= numbers or numbers <= stated]
        if not same:
            return None
        ours = shingles(_body(chunk))
        (near, part), id = max(((similarity(ours, theirs), id) for id, theirs in same), key=lambda one: max(one[0]))
        if near < self._thresholds.same and part < self._thresholds.part:
            return None
        return Rejected(chunk, "near_duplicate", {"gold": id, "same": round(near, 3), "part": round(part, 3)})


def _name_words(answers: Iterable[str], question: str, rarity: Container[str]) -> frozenset[str]:
    """The words of answers that are names, by which alone news and later sentences call their bearers: `Manziel` for
    Johnny Manziel. A word that is not rare, or that the question has itself, tells nothing."""
    names = (answer for answer in answers
             if len(answer.split()) in _NAME and all(word[0].isupper() for word in answer.split()))
    asked = _words(question)
    return frozenset(word for name in names for word in _words(name) - asked
                     if len(word) >= _SHORTEST and not any(map(str.isdecimal, word)) and word in rarity)


def _body(chunk: Chunk) -> str:
    """What the chunk says itself: a title that all chunks of a document begin with makes none the like of another."""
    return visible_text(chunk.content.removeprefix(chunk.prefix), chunk.format)


_TAG = re.compile(r"<[^<>]*>")


def visible_text(content: str, format: Format) -> str:
    """Return the text as a reader of that rendering sees it: cells of a table are words apart, and tags are none."""
    return unescape(_TAG.sub(" ", content)) if format == "html" else content


def _holds_answer(content: str, answer: str) -> bool:
    """Whether the answer stands in the text, or, of one with figures, its values: `1,577` where the text has 1577, and
    `March 20` where the answer has the year too."""
    if contains_answer(_normalised(content), _normalised(answer)):
        return True
    if not any(map(str.isdecimal, answer)):
        return False
    return contains_answer(_valued(content), _valued(answer)) or bool(_days(answer, with_year=True) & _days(content))


def _plain(content: str) -> str:
    """The normalised text without accents, which one text writes and another does not."""
    parts = normalize("NFD", content)
    return normalize_answer("".join(part for part in parts if unicodedata.category(part) != "Mn"))


_normalised, _valued = lru_cache(_KEPT)(_plain), lru_cache(_KEPT)(with_values)


@lru_cache(maxsize=_KEPT)
def _days(text: str, with_year: bool = False) -> frozenset[tuple[int | None, int | None]]:
    """Month and day of the text's dates that state a year, or of those that state none."""
    dates = (value.date for value in find_values(text) if value.date is not None)
    return frozenset((month, day) for year, month, day in dates if day and (year is not None) == with_year)


@lru_cache(maxsize=_KEPT)
def _words(content: str) -> frozenset[str]:
    return frozenset(_normalised(content).split())


_ALIKE = 0.4
"""Of the words of the smaller of two texts that the other holds: below that they are not alike by their shingles."""


class GuardedIndex:
    """The chunks of an index, each normalised once, so that the guard decides over all of them for every question.

    What tells an answer is looked up in what was normalised, and `Guard.check` decides over what was found: the time of
    a question is linear in the chunks, at about two millionths of a second for each.
    """

    def __init__(self, chunks: Sequence[Chunk], thresholds: Thresholds | None = None) -> None:
        self.chunks = chunks
        self._thresholds = thresholds or Thresholds()
        self._texts = [_plain(visible_text(chunk.content, chunk.format)) for chunk in chunks]
        self._rows: dict[str, array[int]] = defaultdict(lambda: array("I"))
        self._sizes = []
        for row, text in enumerate(self._texts):
            words = frozenset(text.split())
            self._sizes.append(len(words))
            for word in words:
                self._rows[word].append(row)

    def __contains__(self, word: object) -> bool:
        return len(self._rows.get(str(word), ())) <= max(_FEW, _SHARE * len(self.chunks))

    def guard(self, question: Question, gold: Collection[Chunk] = ()) -> Guard:
        """Return the guard of one question, to which words are rare that are rare in this index."""
        return Guard(question, gold, self._thresholds, self)

    def find_rejected(self, question: Question, gold: Collection[Chunk] = (),
                      also: Iterable[Chunk] = ()) -> Iterator[Rejected]:
        """Yield every chunk, the gold too, that may answer the question, with the reason, in the order of the index;
        behind them those of `also`, which need not be of the index."""
        guard = self.guard(question, gold)
        rows = {row for word in guard.name_words for row in self._rows.get(word, ())}
        for answer in guard.answers:
            rows |= self._telling(answer)
        for chunk in gold:
            rows |= self._sharing(_words(_body(chunk)), _ALIKE)
        chunks = {chunk.id: chunk for chunk in (*(self.chunks[row] for row in sorted(rows)), *also)}
        return (found for chunk in chunks.values() if (found := guard.check(chunk)) is not None)

    def _telling(self, answer: str) -> set[int]:
        plain, words = _normalised(answer), _words(answer)
        rows = {row for row, text in enumerate(self._texts) if plain in text}
        if any(map(str.isdecimal, answer)):
            value, days = _valued(answer), _days(answer, with_year=True)
            rows.update(row for row, (text, stated) in enumerate(self._figures) if value in text or days & stated)
        return rows | self._sharing(words, self._thresholds.answer_words) if len(words) >= _LONG else rows

    def _sharing(self, words: Collection[str], share: float) -> set[int]:
        """Rows that hold that share of the words, or that share of whose words are among them."""
        shared = Counter[int]()
        for word in words:
            shared.update(self._rows.get(word, ()))
        return {row for row, count in shared.items() if count >= share * min(len(words), self._sizes[row])}

    @cached_property
    def _figures(self) -> list[tuple[str, frozenset[tuple[int | None, int | None]]]]:
        """Of each chunk its text with figures as values, and the days that it states without a year."""
        texts = (visible_text(chunk.content, chunk.format) for chunk in self.chunks)
        return [(with_values(text), _days(text)) for text in texts]
