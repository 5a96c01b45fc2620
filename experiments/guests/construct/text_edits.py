"""Edit texts by one consistent table of replacements."""
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
    """Return the text with each old phrase replaced, in one pass, so that no replacement is edited again. Only whole
    words are replaced, the longest first. A name, which begins with a capital, is kept where the text writes it in
    lower case. Other words are replaced in any case, and keep their initial capital."""
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
    """Return whether the text contains the phrase as whole words; a name only with its capital."""
    return apply_edits(text, {words: "\0"}) != text


def _whole_words(words: str) -> str:
    """Return a pattern of the words as whole words, with any space between them; Korean particles may follow."""
    after = "" if is_korean(words) else r"(?!\w)(?![.,]\d)"
    return r"(?<!\w)(?<!\d[.,])" + r"\s+".join(map(re.escape, words.split())) + after


def invert(table: Replacements) -> dict[str, str]:
    """Return the replacements that undo the edits. If several words have the same replacement, the longest comes back.
    """
    return {new: old for old, new in sorted(table.items(), key=lambda pair: len(pair[0]))}


def find_problem(table: Replacements, text: str) -> str | None:
    """Return why a table cannot be applied consistently to the text, or None."""
    news, folded = [new.casefold() for new in table.values()], text.casefold()
    if not table:
        return "no word to replace is in its text"
    if len(set(news)) < len(news):
        return "two words have the same replacement"
    there = any(new in folded and contains(new, folded) for new in news)
    return "a replacement is already in the text" if there else None


def add_partial_names(table: Replacements, names: Iterable[str]) -> dict[str, str]:
    """Return the table with names that are part of a longer one in it, such as `Meyer` and `Clemens Meyer` of `Clemens
    Otto Meyer`. Each gets the words of the replacement at the same positions."""
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
    """Return whether a name is some of the words of a longer one, in their order."""
    words = iter(other.split())
    return name != other and all(word in words for word in name.split())


def find_names(text: str, library: Library) -> list[str]:
    """Return the names in a text in order: capitalised words. A single word counts only if no text of the library
    writes it in lower case. A script without capitals has no names."""
    places: dict[str, int] = {}
    for name in sorted(extract_names(text)):
        spelt = r"(?:['’]s)?\s+".join(map(re.escape, name.split()))
        written = re.finditer(rf"(?<!\w){spelt}(?!\w)", text, re.IGNORECASE)
        found = next((one for one in written if one[0][0].isupper()), None)
        if found and not is_korean(name) and name not in library.lowercase_words:
            places.setdefault(" ".join(found[0].split()), found.start())
    return sorted(places, key=lambda name: (places[name], name))


def find_survivor(originals: Iterable[str], texts: Sequence[str]) -> str | None:
    """Return the first of the original names that a text contains, or None."""
    return next((name for name in originals if any(contains(name, text) for text in texts)), None)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence; the end of a line also ends a sentence."""
    for found in _SENTENCE.finditer(text):
        start = found.start() + len(found[0]) - len(found[0].lstrip())
        if start < found.end():
            yield start, found.end()
