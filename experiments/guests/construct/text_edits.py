"""Edit texts consistently with one table of replacements."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from ragbed.documents.sentences import sentence_ends
from ragbed.experiments.guests.construct.stages import Library
from ragbed.experiments.guests.hard_negatives.names import extract_names
from ragbed.experiments.metrics.matching import is_korean

Replacements = Mapping[str, str]
_LINE = re.compile(r"[^\n]+")


def apply_edits(text: str, table: Replacements) -> str:
    """Replace each old phrase in one pass, so that no replacement is edited again. Only whole words match, the longest
    first. A name (its first letter is a capital) does not match lower case. Other words match any case, and keep their
    initial capital."""
    if not table:
        return text
    known = {" ".join(old.lower().split()): (old, new) for old, new in table.items()}

    def replace_match(found: re.Match[str]) -> str:
        old, new = known.get(" ".join(found[0].lower().split()), (found[0], found[0]))
        if old[0].isupper() and found[0][0].islower():
            return found[0]
        if len(found[0]) > 1 and found[0].isupper() and not old.isupper():
            return new.upper()
        return new[0].upper() + new[1:] if found[0][0].isupper() else new

    either = "|".join(map(_whole_words, sorted(table, key=lambda old: (-len(old), old))))
    return re.sub(either, replace_match, text, flags=re.IGNORECASE)


def contains(words: str, text: str) -> bool:
    """Return whether the text contains the phrase as whole words. A name must be capitalised."""
    return apply_edits(text, {words: "\0"}) != text


def _whole_words(words: str) -> str:
    """Return a pattern for a phrase as whole words with any whitespace between them. Korean particles may follow."""
    after = "" if is_korean(words) else r"(?!\w)(?![.,]\d)"
    return r"(?<!\w)(?<!\d[.,])" + r"\s+".join(map(re.escape, words.split())) + after


def invert(table: Replacements) -> dict[str, str]:
    """Return the replacements that undo the edits. If words have the same replacement, it becomes the longest of them.
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
    """Add names that are part of a longer one in the table, such as `Meyer` and `Clemens Meyer` of `Clemens Otto
    Meyer`. Each gets the words of the replacement at the same positions."""
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
    """Return whether a name consists of some words of a longer one, in the same order."""
    words = iter(other.split())
    return name != other and all(word in words for word in name.split())


def find_names(text: str, library: Library) -> list[str]:
    """Return the capitalised names in a text, in order. A single word counts only if no text of the library writes it
    in lower case. Scripts without capitals give no names."""
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
    for line in _LINE.finditer(text):
        for start, end in pairwise([line.start(), *sentence_ends(text, *line.span()), line.end()]):
            if text[start:end].strip():
                yield start + len(text[start:end]) - len(text[start:end].lstrip()), end
