"""Which tokeniser a collection is searched with."""
from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from retrieval.lexical.korean import Korean
from retrieval.lexical.tokens import HANGUL, UNSPACED
from retrieval.lexical.words import KOREAN, Words, stopwords_of

if TYPE_CHECKING:
    from retrieval.lexical.tokens import Tokenizer

Stemmed = Literal[
    "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "dutch_porter", "english", "esperanto",
    "estonian", "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian",
    "lithuanian", "nepali", "norwegian", "persian", "polish", "porter", "portuguese", "romanian", "russian", "serbian",
    "sesotho", "spanish", "swedish", "tamil", "turkish", "yiddish"]
"""The stemmers of Snowball that PyStemmer has."""

Cut = Literal["words", "bigrams", "kiwi"]


@lru_cache(maxsize=32)
def tokenizer_of(cut: Cut, language: Stemmed, stemming: bool, stopwords: bool | frozenset[str]) -> Tokenizer:
    """The tokeniser; the same one for the same arguments, so that what it remembers serves all who use it.

    Args:
        cut: `words`; `bigrams`, which cuts Hangul too into pairs of characters; or `kiwi`.
        language: of what is not Hangul.
        stopwords: the usual ones of the language, and of Korean, or these.

    Raises:
        MissingExtra: `kiwi`, and kiwipiepy is not installed.
    """
    left_out = stopwords if isinstance(stopwords, frozenset) else stopwords_of(language) if stopwords else frozenset()
    if cut == "kiwi":
        korean = KOREAN if stopwords is True else left_out
        return Korean(Words(language, stemming, left_out, UNSPACED, HANGUL), korean)
    return Words(language, stemming, left_out, UNSPACED + (HANGUL if cut == "bigrams" else ""))
