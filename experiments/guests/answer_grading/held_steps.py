"""Find the reference steps that a reasoning contains, by their words and amounts, without a model."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ragbed.documents.numbers import find_values
from ragbed.experiments.guests.answer_support.word_overlap import FUNCTION_WORDS
from ragbed.strategies.reading import fold

_HELD = 0.6
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]")


def find_held_steps(steps: Sequence[str], reasoning: str) -> tuple[int, ...]:
    """Return the indices of the steps that share at least 60 % of their content words with the reasoning.

    Words are case-folded, function words are ignored, and numbers and dates are compared by value. Chinese, Japanese
    and Korean text is compared by character bigrams.
    """
    reasoned, held = set(_units(reasoning)), []
    for place, step in enumerate(steps):
        words = set(_units(step))
        words = words - FUNCTION_WORDS or words
        if words and len(words & reasoned) / len(words) >= _HELD:
            held.append(place)
    return tuple(held)


def _units(text: str) -> Iterator[str]:
    yield from (value.token for value in find_values(text))
    for word in fold(text).split():
        if _UNSPACED.search(word):
            yield from (word[at:at + 2] for at in range(max(len(word) - 1, 1)))
        elif not word.isdecimal():
            yield word
