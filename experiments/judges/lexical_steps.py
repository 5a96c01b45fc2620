"""The lexical judge's rule for reference steps: how many of a step's content words stand in the reasoning.

Weaker still than its rule for answers: a step counts as held where the reasoning speaks of the same things, whatever it
says of them, in whatever order; an inference in other words is missed.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from documents.values import values
from strategies.reading import fold

_HELD = 0.6
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]")
_FUNCTION_WORDS = (
    "a about after all also an and any are as at be because been before being both but by can could did do does for "
    "from had has have he her here him his how i if in into is it its itself may might more most must no nor not of "
    "on one only or other our out over own she should so some such than that the their them then there these they "
    "this those through to too under up was we were what when where which while who whom whose why will with would "
    "you your")
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


def steps_held(steps: Sequence[str], reasoning: str) -> tuple[int, ...]:
    """Places of the steps of whose content words at least 60 % stand in the reasoning.

    Words are folded, short function words left out, numbers and dates compared by value. Text without spaces between
    its words (Chinese, Japanese; Korean too, for its particles) is compared by character bigrams.
    """
    said = set(_units(reasoning))
    return tuple(place for place, step in enumerate(steps) if _share(step, said) >= _HELD)


def _share(step: str, said: set[str]) -> float:
    words = set(_units(step))
    words = words - _STOP_WORDS or words
    return len(words & said) / len(words) if words else 0.0


def _units(text: str) -> Iterator[str]:
    yield from (value.token for value in values(text))
    for word in fold(text).split():
        if _UNSPACED.search(word):
            yield from (word[at:at + 2] for at in range(max(len(word) - 1, 1)))
        elif not word.isdecimal():
            yield word
