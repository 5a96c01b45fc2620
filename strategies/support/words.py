"""The words of a text that say what it is about: without function words, endings and figures."""
from __future__ import annotations

import re
from functools import cache, lru_cache

from retrieval.lexical.normal import normal
from retrieval.lexical.scripts import HANGUL, UNSPACED
from retrieval.lexical.words import Words

_FUNCTION_WORDS = (
    "a about after all also an and any are as at be because been before being both but by can could did do does for "
    "from had has have he her here him his how i if in into is it its itself may might more most must no nor not of "
    "on one only or other our out over own she should so some such than that the their them then there these they "
    "this those through to too under up was we were what when where which while who whom whose why will with would "
    "you your")
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
_WORDS_OF_ANSWERS = (
    "according answer answered answers cited document documents hence however many mention mentioned mentions much "
    "passage passages question said say says source sources state stated states therefore thus "
    "yes")
_OF_ANSWERS = frozenset(_WORDS_OF_ANSWERS.split())
"""What answers say of themselves and of documents, and what asks for numbers; `no` is a function word."""

_SYLLABLE = "\uac00-\ud7a3"
_ENDINGS = re.compile(
    rf"(?<=[{_SYLLABLE}])(?:이었습니다|였습니다|했습니다|습니다|입니다|합니다|됩니다|이었다|였다|이다|에서는|에서|에게|으로|부터|까지"
    rf"|은|는|이|가|을|를|의|에|와|과|도|로)(?![{_SYLLABLE}])")
_POLAR = re.compile(rf"(?<![{_SYLLABLE}])(?:예|네|아니요|아니오)(?![{_SYLLABLE}])")


@lru_cache(maxsize=512)
def content_words(text: str) -> frozenset[str]:
    """The stems of its content words; pairs of neighbouring characters of scripts whose words are not set apart.

    Korean counts among these, since particles join its words; the most common particles and endings are left out.
    Numbers in digits are no words: they are compared as values.
    """
    plain = normal(_ENDINGS.sub(" ", _POLAR.sub(" ", text)))
    return frozenset(word for word in _cutter().of(plain) if not word[0].isdecimal())


@lru_cache(maxsize=512)
def all_words(text: str) -> frozenset[str]:
    """As `content_words` has them, with every pair of characters: of what others are looked for in."""
    return frozenset(_cutter().of(normal(text)))


@cache
def _cutter() -> Words:
    return Words("english", True, FUNCTION_WORDS | _OF_ANSWERS, pairs=UNSPACED + HANGUL)
