"""Answer texts normalised for comparison, with values in place of figures."""
from __future__ import annotations

import re
import string
import unicodedata
from functools import lru_cache

from documents.numbers import values

_ARTICLES = re.compile(r"\b(a|an|the)\b")


class _Kept(dict[int, int | None]):
    """For `str.translate`: a character stays, or goes where it is punctuation; each is looked up once."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        gone = character in string.punctuation or unicodedata.category(character)[0] == "P"
        self[code] = None if gone else code
        return self[code]


_WITHOUT_PUNCTUATION = _Kept()


@lru_cache(maxsize=256)
def normalize_answer(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces; NFKC, so width and composition do not matter.

    HotpotQA's normalisation (Yang et al., 2018), with Unicode punctuation treated as ASCII's is: removed, not
    replaced by a space. One thing is ours: a text of nothing but articles keeps them, since it may be the option `A`.
    """
    kept = unicodedata.normalize("NFKC", text).lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", kept).split() or kept.split())


def with_values(text: str, dates: bool = True) -> str:
    """The normalised text with every number, and every date if wanted, as one word that equal values share."""
    text = unicodedata.normalize("NFKC", text)
    pieces, at = [], 0
    for value in values(text):
        if value.date is not None and not dates:
            continue
        pieces += [text[at:value.start], f" {value.token} "]
        at = value.end
    return normalize_answer("".join([*pieces, text[at:]]))
