"""Quotes that a model copied out of the documents: read from its reply, and found again in what was shown.

A quote is found where the document has the same words and marks in the same order. Case, width, white space, quotation
marks and kinds of dashes make no difference, and in HTML neither do tags and entities.
"""
from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from strategies.parts.reading import begins_with_nothing
from strategies.reading import fold, read_answer
from strategies.types import Evidence, Passage

_LONGEST_REPLY, _LONGEST_QUOTE, _MOST_LINES = 50_000, 2_000, 100  # characters; lines
SHORTEST = 2  # letters or digits: one alone stands in every text
_QUOTATION = "\"'`´“”„‟‘’‚‛«»‹›「」『』′″＂＇"
_LONE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"  # written without spaces, or with endings attached
_PLAIN = rf"[0-9]++(?:[.,][0-9]++)*+|[{_LONE}]|[^\W_{_LONE}]++|[\s_{_QUOTATION}]++|."
_TOKEN = re.compile(_PLAIN, re.DOTALL)
_TOKEN_OF_HTML = re.compile(rf"<[^<>]{{1,2000}}>|&(?:[a-zA-Z]{{1,10}}|#\w{{1,7}});|{_PLAIN}", re.DOTALL)
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")
_EDGES = ".,;:!?…()[]{}*-"  # marks that a copy gains or loses at its ends
_OMISSION = re.compile(r"\[?(?:\.{3}|…)\]?")
_LIST_MARK = re.compile(r"(?:[-*•>]|\(?\d{1,2}[.)])\s+")
_NUMBER = re.compile(r"\W{0,4}(?:documents?\s?)?\[(\d{1,6})\][\s:.*–-]{0,6}", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"[\s(]{0,4}\[(\d{1,6})\][\s).]{0,4}\Z")
_NONE = re.compile(r"(?:nothing|no (?:\w+ ){0,3}(?:quotes?|passages?|documents?|sentences?)|there (?:is|are) no)\b"
                   r"|[没沒]有")


@dataclass(frozen=True, slots=True)
class Offered:
    """A quote as the model wrote it, with the number of the document that it names, if any."""

    text: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """Where a quote stands: spans of one passage's content, several where it leaves something out."""

    number: int
    spans: tuple[tuple[int, int], ...]


def read_quotes(text: str, most: int) -> list[Offered]:
    """The quotes that a reply offers, one on a line, each once: `[2] "the copied words"`.

    The number may stand behind, or be missing. Where some lines have a number or quotation marks, the others are not
    quotes but what is said around them. A line that says that there is none is none.
    """
    lines = [line.strip() for line in read_answer(text)[0][:_LONGEST_REPLY].splitlines()[:_MOST_LINES]]
    read = [(one, marked) for line in lines if line for one, marked in [_offered(line)]]
    formed = [one for one, marked in read if marked] or [
        one for one, _ in read if not _is_none(one.text) and not one.text.endswith((":", "："))]
    known: dict[str, Offered] = {}
    for one in formed:
        known.setdefault(fold(one.text), one)
    return [one for key, one in known.items() if len(key) >= SHORTEST and key != "none"][:most]


def _is_none(text: str) -> bool:
    return begins_with_nothing(text) or _NONE.match(fold(text)) is not None


def _offered(line: str) -> tuple[Offered, bool]:
    """What a line offers, and whether it has a form that marks it as a quote."""
    bare = line[mark.end():] if (mark := _LIST_MARK.match(line)) else line
    number = _NUMBER.match(bare) or _LAST_NUMBER.search(bare)
    said = bare[:number.start()] + bare[number.end():] if number else bare
    quoted = said.strip().strip("*")
    text = quoted.strip(_QUOTATION + " ")[:_LONGEST_QUOTE]
    marked = number is not None or quoted[:1] in tuple(_QUOTATION)
    return Offered(text, int(number[1]) if number else None), marked


def found_quotes(offered: Sequence[Offered], evidence: Evidence, shortest: int = SHORTEST) -> list[Quote | None]:
    """Where each quote stands: in the document that it names, else in the first that has it; None where in none.

    Takes time linear in the documents and the quotes, once for each quote.

    Args:
        shortest: how many letters and digits a quote has at least.
    """
    texts = {passage.number: _Text(passage) for passage in evidence}
    return [next((quote for text in _named_first(texts, one.number) if (quote := text.find(one.text, shortest))), None)
            for one in offered]


def quoted(evidence: Evidence, quotes: Iterable[Quote]) -> Evidence:
    """The passages that are quoted, reduced to their quotes: a line each, in the passage's order."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for quote in quotes:
        spans.setdefault(quote.number, []).extend(quote.spans)
    return tuple(_reduced(passage, spans[passage.number]) for passage in evidence if passage.number in spans)


def _reduced(passage: Passage, spans: Sequence[tuple[int, int]]) -> Passage:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    content = "\n".join(passage.chunk.content[start:end] for start, end in joined)
    return replace(passage, chunk=replace(passage.chunk, content=content))


def _named_first(texts: dict[int, _Text], number: int | None) -> Iterator[_Text]:
    if number in texts:
        yield texts[number]
    yield from (text for other, text in texts.items() if other != number)


class _Text:
    """A passage as folded tokens between spaces, with where each came from."""

    def __init__(self, passage: Passage) -> None:
        self._number, self._html = passage.number, passage.chunk.format == "html"
        tokens = list(_tokens(passage.chunk.content, self._html))
        self._folded = " ".join(["", *(folded for folded, _, _ in tokens), ""])
        self._spans = [(start, end) for _, start, end in tokens]
        self._places = [0, *accumulate(len(folded) + 1 for folded, _, _ in tokens)]

    def find(self, said: str, shortest: int) -> Quote | None:
        """The first place of a quote; where it leaves something out, of its pieces in order."""
        spans = self._pieces([said], shortest) or self._pieces(_OMISSION.split(said), shortest)
        return Quote(self._number, spans) if spans else None

    def _pieces(self, pieces: Sequence[str], shortest: int) -> tuple[tuple[int, int], ...]:
        """The spans of the pieces, one after the other; none where one is missing, or all say too little."""
        wanted = [piece for piece in (_bare(_tokens(text, self._html)) for text in pieces) if piece]
        spans, place = [], 0
        for tokens in wanted:
            needle = f" {' '.join(tokens)} "
            place = self._folded.find(needle, place)
            if place < 0:
                return ()
            first = bisect_left(self._places, place)
            spans.append((self._spans[first][0], self._spans[first + len(tokens) - 1][1]))
            place += len(needle) - 1
        letters = sum(map(str.isalnum, "".join(token for tokens in wanted for token in tokens)))
        return tuple(spans) if letters >= shortest else ()


def _tokens(text: str, markup: bool) -> Iterator[tuple[str, int, int]]:
    """The words and marks of a text, folded, with where they stand."""
    for token in (_TOKEN_OF_HTML if markup else _TOKEN).finditer(text):
        said = token.group()
        if markup and said.startswith("<") and len(said) > 1:
            continue
        plain = html.unescape(said) if markup else said
        folded = unicodedata.normalize("NFKC", plain).casefold().translate(_DASHES)
        folded = "".join(folded.split()).strip(_QUOTATION + "_")
        if folded:
            yield folded, token.start(), token.end()


def _bare(tokens: Iterator[tuple[str, int, int]]) -> list[str]:
    """The folded tokens of a quote without the marks at its ends."""
    folded = [token for token, _, _ in tokens]
    start, end = 0, len(folded)
    while start < end and folded[start] in _EDGES:
        start += 1
    while end > start and folded[end - 1] in _EDGES:
        end -= 1
    return folded[start:end]
