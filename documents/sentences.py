"""Find where sentences end, in many languages and scripts.

Unlike pysbd, these rules need neither the language of a text nor a copy of it. Thai has no marks, so a Thai
paragraph is one sentence.
"""
from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from itertools import repeat

_WORDS = {name: frozenset(words.split()) for name, words in tomllib.loads(resources.files("ragbed.documents").joinpath(
    "sentences.toml").read_text(encoding="utf-8")).items()}
_QUOTES = r"['\"”’»)\]}」』）】*_]{0,4}"
_CITED = (r"(?:[ \t]{0,4}(?:\\?[\[［【〔][^\[\]【】\n]{0,20}\d[^\[\]【】\n]{0,60}[\]］】〕]|[⁰¹²³⁴-⁹]{1,3})){0,20}")
_END = re.compile(rf"(?:(?P<full>[。！？｡।॥؟۔։።፧။។])+|(?P<mark>[.!?…]+)){_QUOTES}{_CITED}")
_WORD = re.compile(r"(?:\w|(?<=\w)[.’'-](?=\w))+\Z")
_NEXT = re.compile(r"\s+([\"'“„«(\[*_¿¡]*)(\w*)")
_LETTER = re.compile(r"\s?\b\w\.\s?")
_SPACE = re.compile(r"\s*")
_LOOK_BACK = 24


def sentence_ends(text: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Yield where each sentence of a text ends, after its closing quotation marks and citations.

    Full stops of abbreviations (`Nov. 5`, `z. B.`, `M. Dupont`), initials, ordinals, list numbers and decimals end
    none. The end of the text and line breaks are left to the caller.
    """
    for found in _END.finditer(text, start, len(text) if end is None else end):
        at = found.end()
        if found["full"]:
            if not (text[at - 1] in "」』）" and text[at:at + 1] in ("と", "っ", "の", "、", "を", "は", "が")):
                yield at
            continue
        following = _NEXT.match(text, at)
        if following is None:  # a mark inside a word or number, or at the end
            if at == len(text) or text[at] == "<":
                yield at
        elif not following[2][:1].islower():
            stops = found["mark"] != "." or following[1][:1] not in ("", "(", "[")
            if stops or not _is_abbreviation(text, found.start(), following[2]):
                yield at


def sentence_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where each sentence after the first begins, up to a place."""
    for found in map(_SPACE.match, repeat(text), sentence_ends(text, start, end)):
        if found is not None and found.end() <= end:
            yield found.end()


def _is_abbreviation(text: str, at: int, following: str) -> bool:
    """Return whether the full stop at a place belongs to an abbreviation, an initial or an ordinal."""
    word = _WORD.search(text, max(0, at - _LOOK_BACK), at)
    if word is None:
        return False
    said, number = re.split("['’]", word[0].casefold())[-1], following[:1].isdecimal()
    if said.isdecimal():  # `5. Mai`, and `1. First` at the start of a line
        begins = not text[max(0, word.start() - 8):word.start()].rpartition("\n")[2].strip(" \t*>-#(")
        listed = begins and (word.start() < 8 or "\n" in text[word.start() - 8:word.start()])
        return len(said) <= 2 and (listed or following.casefold() in _WORDS["after_ordinals"])
    if said in _WORDS["never"] or (number and said in _WORDS["before_numbers"]):
        return True
    single = len(said) == 1 and said.isalpha() and said < "\u0900" and (  # `M. Dupont`, `z. B.`, `u. a. Firmen`
        word[0].isupper() or number or _LETTER.match(text, at + 1) or _LETTER.match(text, max(0, word.start() - 3)))
    dotted = "." in said and all(part.isalpha() and len(part) <= 2 for part in said.split("."))
    open_ended = single or dotted or said in _WORDS["company"]
    return bool(open_ended and following) and following.casefold() not in _WORDS["openers"]
