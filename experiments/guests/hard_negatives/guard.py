"""Guard against false negatives: reject candidates whose text may answer the question."""
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
from ragbed.experiments.guests.hard_negatives.gold_text import GoldText
from ragbed.experiments.guests.hard_negatives.names import extract_numbers
from ragbed.experiments.metrics.matching import contains_answer
from ragbed.experiments.question import FoundBy, Question
from ragbed.experiments.running.gold import revealing_answers
from ragbed.strategies.normalizing import normalize_answer, normalize_values


class Thresholds(BaseModel):
    """Thresholds from 0 to 1. A candidate is rejected if it reaches one of them.

    Attributes:
        answer_words: share of the distinct words of an answer of five words or more that the candidate contains.
        same: Jaccard index of the five-character shingles of the candidate and a gold chunk, if one of the two states
            all numbers of the other.
        part: containment of the two, which is the share of the smaller text's shingles that the other has.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    answer_words: float = Field(default=0.8, gt=0, le=1)
    same: float = Field(default=0.5, gt=0, le=1)
    part: float = Field(default=0.8, gt=0, le=1)


Reason = Literal["answer", "answer_words", "answer_name", "near_duplicate", "gold_sentence", "gold_words",
                 "gold_detail", "reranker", "relevance", "absolute_margin", "relative_margin", "max_score", "min_score",
                 "range", "repeated", "gold_page", "gold_document"]
REASONS: Mapping[Reason, str] = {
    "answer": "it contains an accepted answer, or the text of the correct option",
    "answer_words": "it contains most words of a long answer",
    "answer_name": "it contains a rare word of a name that is the answer",
    "near_duplicate": "it nearly equals, contains or is part of a gold chunk, with no other numbers",
    "gold_sentence": "the answers are unknown, and it has a whole sentence of a gold chunk",
    "gold_words": "the answers are unknown, and it has most words of the gold sentence nearest to the question",
    "gold_detail": "the answers are unknown, and it has words of the question and a rare detail of that sentence",
    "reranker": "the reranker scores it above every gold chunk",
    "relevance": "a model grades it 2 or 3 of 3 for the question",
    "absolute_margin": "its score is not far enough below the gold's",
    "relative_margin": "its score is too large a share of the gold's",
    "max_score": "its score is too high",
    "min_score": "its score is too low",
    "range": "it ranks before range_min",
    "repeated": "its text, or part of it, is already among the question's chunks",
    "gold_page": "it is from a gold page, and gold is known only by page",
    "gold_document": "it is from a gold document, and gold is known only by document"}
LIMITS: frozenset[Reason] = frozenset({"absolute_margin", "relative_margin", "max_score", "min_score", "range"})


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that was rejected or excluded.

    Attributes:
        figures: evidence for the rejection, such as the answer that was found.
        found: miners that found it; empty if it was excluded before mining.
    """

    chunk: Chunk
    reason: Reason
    figures: Mapping[str, str | float] = field(default_factory=dict)
    found: tuple[FoundBy, ...] = ()

    @property
    def by_guard(self) -> bool:
        """Whether a miner found the candidate and the guard rejected it as a possible answer."""
        return bool(self.found) and self.reason != "repeated" and self.reason not in LIMITS


_SHINGLE = 5
_MIN_SHINGLES = 20  # shingles; containment of a text with fewer is not measured


def similarity(one: Collection[str], other: Collection[str]) -> tuple[float, float]:
    """Return the Jaccard index and the containment of two sets of shingles. Containment is 0 for tiny sets."""
    both = len(frozenset(one) & frozenset(other))
    smaller = min(len(one), len(other))
    return both / (len(one) + len(other) - both), both / smaller if smaller >= _MIN_SHINGLES else 0.0


@lru_cache(maxsize=1_024)
def shingles(text: str) -> frozenset[str]:
    """Return all runs of five characters of the normalised text, or the whole text if it is shorter. See Broder, On the
    resemblance and containment of documents, 1997; characters instead of words also suit scripts without spaces."""
    plain = normalize_answer(text)
    return frozenset(plain[at:at + _SHINGLE] for at in range(max(len(plain) - _SHINGLE + 1, 1)))


_LONG = 5  # an answer with this many distinct words is long: most of them identify it
_MIN_LETTERS = 4  # characters of a word, from which it may identify a name
_NAME = range(2, 5)  # a single word may identify a name of 2 to 4 words
_FEW, _SHARE = 20, 0.002  # a rare word is in at most 20 chunks or 0.2 % of all chunks
_CACHED = 1_024  # normalised texts to cache: questions share candidates, and answers recur


class RareWords:
    """The words that are rare among the chunks to mine in."""

    def __init__(self, contents: Iterable[str]) -> None:
        self._holders: Counter[str] = Counter()
        self._count = 0
        for content in contents:
            self._holders.update(frozenset(_plain(content).split()))  # not cached: each text is read once
            self._count += 1

    def __contains__(self, word: object) -> bool:
        return self._holders[str(word)] <= max(_FEW, _SHARE * self._count)


class Guard:
    """Checks the candidates of one question.

    Args:
        gold: chunks that answer the question; a similar candidate may answer it too. If there is no answer to search
            for, a candidate that states the same may answer it as well.
        rarity: contains every word that is rare enough to identify a name.

    Attributes:
        answers: accepted answers to search for; none for a yes-or-no question.
        name_words: words of answers that identify a person or thing on their own.
    """

    def __init__(self, question: Question, gold: Iterable[Chunk], thresholds: Thresholds,
                 rarity: Container[str]) -> None:
        self.answers = _answers_to_find(question)
        self.name_words = _name_words(self.answers, question.text, rarity)
        texts_of_gold = {chunk.id: _strip_title(chunk) for chunk in gold}
        self._gold = [(id, extract_numbers(text), shingles(text)) for id, text in texts_of_gold.items()]
        self._gold_text = None if self.answers else GoldText(question.text, texts_of_gold.values(), rarity)
        self._thresholds = thresholds

    def check(self, chunk: Chunk) -> Rejected | None:
        """Return the strongest reason why the chunk may be a false negative; None if there is none."""
        return self._contains_answer(chunk) or self._resembles_gold(chunk) or self._states_gold(chunk)

    def _contains_answer(self, chunk: Chunk) -> Rejected | None:
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

    def _resembles_gold(self, chunk: Chunk) -> Rejected | None:
        """Reject a chunk similar to the gold. One with other numbers stays: it is the hardest kind of negative.
        """
        stated = extract_numbers(_strip_title(chunk))
        same = [(id, theirs) for id, numbers, theirs in self._gold if stated <= numbers or numbers <= stated]
        if not same:
            return None
        ours = shingles(_strip_title(chunk))
        (near, part), id = max(((similarity(ours, theirs), id) for id, theirs in same), key=lambda one: max(one[0]))
        if near < self._thresholds.same and part < self._thresholds.part:
            return None
        return Rejected(chunk, "near_duplicate", {"gold": id, "same": round(near, 3), "part": round(part, 3)})

    def _states_gold(self, chunk: Chunk) -> Rejected | None:
        """Reject a chunk that states what the gold states, if there is no answer to search for."""
        found = None if self._gold_text is None else self._gold_text.find_in(visible_text(chunk.content, chunk.format))
        return Rejected(chunk, found[0], {"gold": found[1]}) if found else None


def _answers_to_find(question: Question) -> tuple[str, ...]:
    options, telling_answers = dict(question.options), set(revealing_answers(question))
    texts = (options.get(answer, answer) for answer in question.answers)
    return tuple(text for text in texts if normalize_answer(text) in telling_answers)


def has_answer_to_find(question: Question) -> bool:
    """Return whether the question has an answer that the guard can search for; `yes` is none."""
    return bool(_answers_to_find(question))


def _name_words(answers: Iterable[str], question: str, rarity: Container[str]) -> frozenset[str]:
    """Return the words that texts use alone for a name's bearer, such as `Manziel` for Johnny Manziel. Common words and
    words of the question are left out.
    """
    names = (answer for answer in answers
             if len(answer.split()) in _NAME and all(word[0].isupper() for word in answer.split()))
    asked = _words(question)
    return frozenset(word for name in names for word in _words(name) - asked
                     if len(word) >= _MIN_LETTERS and not any(map(str.isdecimal, word)) and word in rarity)


def _strip_title(chunk: Chunk) -> str:
    """Return the chunk's own text, without a title that all chunks of the document share."""
    return visible_text(chunk.content.removeprefix(chunk.prefix), chunk.format)


_TAG = re.compile(r"<[^<>]*>")


def visible_text(content: str, format: Format) -> str:
    """Return the text as a reader sees it: without tags, and with table cells as separate words."""
    return unescape(_TAG.sub(" ", content)) if format == "html" else content


def _holds_answer(content: str, answer: str) -> bool:
    """Return whether the text contains the answer. Numbers and dates are compared by value: `1,577` matches 1577, and
    `March 20` matches an answer that adds the year."""
    if contains_answer(_normalised(content), _normalised(answer)):
        return True
    if not any(map(str.isdecimal, answer)):
        return False
    return contains_answer(_valued(content), _valued(answer)) or bool(_dates(answer, with_year=True) & _dates(content))


def _plain(content: str) -> str:
    """Return the normalised text without accents, because not all texts write them."""
    parts = normalize("NFD", content)
    return normalize_answer("".join(part for part in parts if unicodedata.category(part) != "Mn"))


_normalised, _valued = lru_cache(_CACHED)(_plain), lru_cache(_CACHED)(normalize_values)


@lru_cache(maxsize=_CACHED)
def _dates(text: str, with_year: bool = False) -> frozenset[tuple[int | None, int | None]]:
    """Return month and day of the text's dates, either those with a year or those without."""
    dates = (value.date for value in find_values(text) if value.date is not None)
    return frozenset((month, day) for year, month, day in dates if day and (year is not None) == with_year)


@lru_cache(maxsize=_CACHED)
def _words(content: str) -> frozenset[str]:
    return frozenset(_normalised(content).split())


_ALIKE = 0.4
"""Share of the smaller text's words in the other; with less, two texts are not similar by shingles either."""


class GuardedIndex:
    """The chunks of an index, normalised once, so that the guard can check all of them for every question. A lookup
    finds candidates, and `Guard.check` decides. A question takes about two microseconds per chunk."""

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
        """Return the guard for a question. A word is rare if it is rare in this index."""
        return Guard(question, gold, self._thresholds, self)

    def find_rejected(self, question: Question, gold: Collection[Chunk] = (),
                      also: Iterable[Chunk] = ()) -> Iterator[Rejected]:
        """Yield every chunk that may answer the question, including gold, with the reason. Chunks of the index come
        first, in order, then those of `also`."""
        guard = self.guard(question, gold)
        rows = {row for word in guard.name_words for row in self._rows.get(word, ())}
        for answer in guard.answers:
            rows |= self._rows_with_answer(answer)
        for chunk in gold:
            rows |= self._find_sharing_rows(_words(_strip_title(chunk)), _ALIKE)
        chunks = {chunk.id: chunk for chunk in (*(self.chunks[row] for row in sorted(rows)), *also)}
        return (found for chunk in chunks.values() if (found := guard.check(chunk)) is not None)

    def _rows_with_answer(self, answer: str) -> set[int]:
        plain, words = _normalised(answer), _words(answer)
        rows = {row for row, text in enumerate(self._texts) if plain in text}
        if any(map(str.isdecimal, answer)):
            value, days = _valued(answer), _dates(answer, with_year=True)
            rows.update(row for row, (text, stated) in enumerate(self._figures) if value in text or days & stated)
        return rows | self._find_sharing_rows(words, self._thresholds.answer_words) if len(words) >= _LONG else rows

    def _find_sharing_rows(self, words: Collection[str], share: float) -> set[int]:
        """Return the rows that contain this share of the words, or that have this share of their own words among them.
        """
        shared = Counter[int]()
        for word in words:
            shared.update(self._rows.get(word, ()))
        return {row for row, count in shared.items() if count >= share * min(len(words), self._sizes[row])}

    @cached_property
    def _figures(self) -> list[tuple[str, frozenset[tuple[int | None, int | None]]]]:
        """Return each chunk's text with numbers normalised to values, and the dates that it states without a year."""
        texts = (visible_text(chunk.content, chunk.format) for chunk in self.chunks)
        return [(normalize_values(text), _dates(text)) for text in texts]
