"""The lexical judge's rule for reference steps: how many of a step's content words stand in the reasoning.

Weaker still than its rule for answers: a step counts as held where the reasoning speaks of the same things, whatever it
says of them, in whatever order; an inference in other words is missed.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from documents.values import values
from strategies.reading import fold
from strategies.support.words import FUNCTION_WORDS

_HELD = 0.6
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]")


def steps_held(steps: Sequence[str], reasoning: str) -> tuple[int, ...]:
    """Places of the steps of whose content words at least 60 % stand in the reasoning.

    Words are folded, short function words left out, numbers and dates compared by value. Text without spaces between
    its words (Chinese, Japanese; Korean too, for its particles) is compared by character bigrams.
    """
    said = set(_units(reasoning))
    return tuple(place for place, step in enumerate(steps) if _share(step, said) >= _HELD)


def _share(step: str, said: set[str]) -> float:
    words = set(_units(step))
    words = words - FUNCTION_WORDS or words
    return len(words & said) / len(words) if words else 0.0


def _units(text: str) -> Iterator[str]:
    yield from (value.token for value in values(text))
    for word in fold(text).split():
        if _UNSPACED.search(word):
            yield from (word[at:at + 2] for at in range(max(len(word) - 1, 1)))
        elif not word.isdecimal():
            yield word
