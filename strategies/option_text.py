"""Finding the option whose own text an answer gives."""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from strategies.reading import fold

_LONGEST_RATIO, _LONGEST_WORDS, _LONGEST_CHARACTERS = 3, 10, 100
_CLAUSE_ENDS = re.compile(r"[,.;:!。、](?:\s|$)|\n")
_DENIES = re.compile(r"(?<![a-z])(?:not|never|neither|nor|cannot|except)(?![a-z])|n't(?![a-z])|아니|않|不|没|非")
_WRONG = r"(?:(?<![a-z])(?:wrong|incorrect|false|eliminated|ruled out)(?![a-z])|错|錯|틀[렸리린림립]|오답)"
EDGE = "0-9A-Za-z\u00c0-\u024f\u0370-\u052f"
_MASK = "\x00"
_CALLS_WRONG = re.compile(rf"{_WRONG}[^.,;:!。、\n{_MASK}]*{_MASK}|{_MASK}[^.,;:!。、\n{_MASK}]*{_WRONG}")


def plain(text: str) -> str:
    """Full-width and other compatible forms folded, curly quotes straight."""
    return unicodedata.normalize("NFKC", text).translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'})


def by_text(said: str, options: Sequence[tuple[str, str]]) -> str | None:
    """The label of the one option that the text equals, begins with as a clause, or, being short, holds.

    Short is at most three times the option's length, or ten words. A text that denies something, or calls the option
    wrong, names no option by holding it.
    """
    spaced = _light(said)
    lights = [(label, _light(text)) for label, text in options]
    for ours, theirs in ((spaced, lights), (fold(said), [(label, fold(text)) for label, text in options])):
        equal = [label for label, text in theirs if text and text == ours]
        if equal:
            return _one(equal)
    clause = _light(_CLAUSE_ENDS.split(said, maxsplit=1)[0])
    begun = [label for label, text in lights if text and text == clause]
    return _one(begun or _held(spaced, lights))


def _light(text: str) -> str:
    """Case and space folded; unlike `fold` it keeps the marks that tell 3.5 from 35 and -3 from 3."""
    return " ".join(plain(text).casefold().split()).strip(" .!。'\"")


def _one(labels: Sequence[str]) -> str | None:
    return labels[0] if len(labels) == 1 else None


def _held(said: str, options: Sequence[tuple[str, str]]) -> list[str]:
    """Labels of the options that stand in the text; one inside a longer one is not seen."""
    found: list[str] = []
    if len(said) > max(_LONGEST_CHARACTERS, _LONGEST_RATIO * max(len(text) for _, text in options)):
        return found
    for text in sorted({text for _, text in options}, key=lambda text: (-len(text), text)):
        short = len(said) <= _LONGEST_RATIO * len(text) or len(said.split()) <= _LONGEST_WORDS
        pattern = _standing(text)
        if short and pattern is not None and pattern.search(said):
            said = pattern.sub(_MASK, said)
            found += [label for label, other in options if other == text]
    return [] if _DENIES.search(said) or _CALLS_WRONG.search(said) else found


def _standing(text: str) -> re.Pattern[str] | None:
    """Finds the text as whole words; None for an option of one letter, which may be an article."""
    if not text or (len(text) == 1 and text.isascii() and text.isalpha()):
        return None
    before = rf"(?<![{EDGE}])(?<!\d[.,])(?<!-)" if re.match(rf"[{EDGE}]", text) else ""
    after = rf"(?![{EDGE}%]|[.,]\d)" if re.search(rf"[{EDGE}]\Z", text) else ""
    return re.compile(before + re.escape(text) + after)
