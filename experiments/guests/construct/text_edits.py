"""Edits of texts by one consistent table of old and new words, which a program applies."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ragbed.experiments.guests.construct.stages import Library
from ragbed.experiments.guests.hard_negatives.names import extract_names
from ragbed.experiments.metrics.matching import is_korean

Replacements = Mapping[str, str]
_SENTENCE = re.compile(r"[^\n]+?(?:(?<!\b[A-Z])(?<!\b(?:St|Mr|Ms|Dr|Jr|No))(?<!\bMrs)[.!?]['\"”’)]*"
                       r"(?=\s+[^a-zà-öø-ÿ\s])|[。！？]|(?=\n)|\Z)")


def apply_edits(text: str, table: Replacements) -> str:
    """Return the text with each old by its new: whole words, the longest old first, in one pass, so that no new is
    edited again. A name, which begins with a capital, is left where the text writes it small; other words are replaced
    in any case, and a capital at their beginning is kept."""
    if not table:
        return text
    known = {" ".join(old.lower().split()): (old, new) for old, new in table.items()}

    def put(found: re.Match[str]) -> str:
        old, new = known.get(" ".join(found[0].lower().split()), (found[0], found[0]))
        if old[0].isupper() and found[0][0].islower():
            return found[0]
        if len(found[0]) > 1 and found[0].isupper() and not old.isupper():
            return new.upper()
        return new[0].upper() + new[1:] if found[0][0].isupper() else new

    either = "|".join(map(_whole_words, sorted(table, key=lambda old: (-len(old), old))))
    return re.sub(either, put, text, flags=re.IGNORECASE)


def contains(words: str, text: str) -> bool:
    """Tell whether the words stand in the text as whole ones; a name, as a name."""
    return apply_edits(text, {words: "\0"}) != text


def _whole_words(words: str) -> str:
    """A pattern of the words as whole ones, with any space between them; Korean particles may follow."""
    after = "" if is_korean(words) else r"(?!\w)(?![.,]\d)"
    return r"(?<!\w)(?<!\d[.,])" + r"\s+".join(map(re.escape, words.split())) + after


def invert(table: Replacements) -> dict[str, str]:
    """Return the table that takes the edits back; of several olds of one new, the longest."""
    return {new: old for old, new in sorted(table.items(), key=lambda pair: len(pair[0]))}


def find_problem(table: Replacements, text: str) -> str | None:
    """Return why a table makes no consistent edit of the text; None where it does."""
    news, folded = [new.casefold() for new in table.values()], text.casefold()
    if not table:
        return "no replacement stands in its text"
    if len(set(news)) < len(news):
        return "two originals have one replacement"
    there = any(new in folded and contains(new, folded) for new in news)
    return "a replacement stands in the original text" if there else None


def add_partial_names(table: Replacements, names: Iterable[str]) -> dict[str, str]:
    """Return the table with the names that are a part of a longer one in it, as `Meyer` and `Clemens Meyer` are of
    `Clemens Otto Meyer`: they become the words of its replacement that stand in the same places."""
    made = dict(table)
    for name in names:
        for old, new in table.items():
            if is_partial_name(name, old):
                words, others = old.split(), new.split()
                places = [words.index(word) for word in name.split()]
                made.setdefault(name, " ".join(dict.fromkeys(
                    others[max(place - len(words), -len(others)) if place else 0] for place in places)))
    return made


def is_partial_name(name: str, other: str) -> bool:
    """Tell whether a name is some of the words of a longer one, in their order."""
    words = iter(other.split())
    return name != other and all(word in words for word in name.split())


def find_names(text: str, library: Library) -> list[str]:
    """Return the names in a text as it writes them, in order: capitalised words; one by itself only where no text of
    the library writes it small. Scripts without capitals have none that a program finds."""
    places: dict[str, int] = {}
    for name in sorted(extract_names(text)):
        spelt = r"(?:['’]s)?\s+".join(map(re.escape, name.split()))
        written = re.finditer(rf"(?<!\w){spelt}(?!\w)", text, re.IGNORECASE)
        found = next((one for one in written if one[0][0].isupper()), None)
        if found and not is_korean(name) and name not in library.lowercase_words:
            places.setdefault(" ".join(found[0].split()), found.start())
    return sorted(places, key=lambda name: (places[name], name))


def find_survivor(originals: Iterable[str], texts: Sequence[str]) -> str | None:
    """Return the first of the original names that stands in a text; None where none does."""
    return next((name for name in originals if any(contains(name, text) for text in texts)), None)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence begins and ends; a line's end ends one too."""
    for found in _SENTENCE.finditer(text):
        start = found.start() + len(found[0]) - len(found[0].lstrip())
        if start < found.end():
            yield start, found.end()
