"""Recognise what a gold chunk says about the question in other texts, for questions whose answers are unknown.

A collection with relevance judgements has no answers to search for. But its gold chunks hold them, most often in the
sentence that shares the most words with the question.
"""
from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from ragbed.documents.sentences import sentence_ends
from ragbed.experiments.guests.hard_negatives.names import FUNCTION_WORDS, extract_names, extract_numbers
from ragbed.strategies.normalizing import normalize_answer

_MIN_LETTERS = 3  # shorter words seldom carry the content
_ASKING = frozenset({"long", "many", "much", "does"})  # words of questions, besides the function words
_STEM = 5  # letters; `founded` and `founder` count as one word
_LONG = 6  # words; many texts contain a shorter sentence by chance
_SHARED = 0.8  # share of a gold sentence's words that a passage needs
_ASKED = 0.6  # share of the question's words that a passage needs besides a name or number of the gold sentence
Found = Literal["gold_sentence", "gold_words", "gold_detail"]
_NEAR = 0.9  # sentences with this share of the best sentence's words of the question may bear the answer too


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text, compared by its words.

    Attributes:
        plain: normalised text.
        stems: beginnings of its longer words, and its numbers.
        details: rare names and numbers that the question does not have, normalised.
    """

    plain: str
    stems: frozenset[str]
    numbers: frozenset[str]
    details: frozenset[str] = frozenset()


class GoldText:
    """The sentences of gold chunks, and those among them that bear the answer.

    Args:
        rarity: contains every word that is rare in the collection.
    """

    def __init__(self, question: str, gold: Iterable[str], rarity: Container[str]) -> None:
        self._asked = stems(question)
        known = normalize_answer(question)
        every = [one for text in gold for one in split_sentences(text)]
        self._whole = [one.plain for one in every if len(one.plain.split()) >= _LONG and (
            one.stems & self._asked or any(word in rarity for word in one.plain.split()))]
        best = max((len(one.stems & self._asked) for one in every), default=0)
        bearing = [one for one in every if len(one.stems & self._asked) >= max(_NEAR * best, 1)]
        self._bearing = [Sentence(one.plain, one.stems, one.numbers, frozenset(
            detail for detail in one.details if detail not in known
            and any(word in rarity for word in detail.split()))) for one in bearing]

    def find_in(self, text: str) -> tuple[Found, str] | None:
        """Return why a text may state what the gold states, and the words of the gold; None if it does not."""
        found = split_sentences(text)
        plain = " ".join(one.plain for one in found)
        same = next((one for one in self._whole if one in plain), None)
        if same is not None:
            return "gold_sentence", same
        pairs = [(one.stems | after.stems, one.numbers | after.numbers, f" {one.plain} {after.plain} ")
                 for one, after in zip(found, [*found[1:], Sentence("", frozenset(), frozenset())], strict=True)]
        for sentence in self._bearing:
            for words, numbers, shown in pairs:
                if len(sentence.stems) >= _LONG - 1 and sentence.numbers <= numbers and \
                        len(sentence.stems & words) >= _SHARED * len(sentence.stems):
                    return "gold_words", sentence.plain
                detail = min((one for one in sentence.details if f" {one} " in shown), default=None)
                if detail and len(self._asked & words) >= max(_ASKED * len(self._asked), 1):
                    return "gold_detail", detail
        return None


@lru_cache(maxsize=1_024)
def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Split a text at the ends of sentences and at line breaks."""
    lines = ((line, pairwise([0, *sentence_ends(line), len(line)])) for line in text.split("\n"))
    parts = [part for line, spans in lines for start, end in spans if (part := line[start:end].strip())]
    return tuple(Sentence(normalize_answer(part), stems(part), numbers, frozenset(
        normalize_answer(one) for one in extract_names(part) | numbers)) for part in parts
        for numbers in [extract_numbers(part)])


def stems(text: str) -> frozenset[str]:
    """Return the beginnings of the words of a text that carry content, without a plural's s, and its numbers."""
    words = (word for word in normalize_answer(text).split() if word not in FUNCTION_WORDS and word not in _ASKING)
    return frozenset(word.removesuffix("s")[:_STEM] for word in words
                     if len(word) >= _MIN_LETTERS or not word.isascii() or any(map(str.isdecimal, word)))
