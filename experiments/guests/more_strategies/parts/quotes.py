"""Read the quotes and fact tables that a model copied from the documents, and find them there again.

A quote is found where a document has the same words and marks in the same order. Case, width, white space, quotation
marks, kinds of dashes, and HTML tags and entities are ignored.
"""
from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, dropwhile

from ragbed.documents.types import normalize
from ragbed.strategies.parts.reading import begins_with_nothing
from ragbed.strategies.reading import fold, is_only_citations, read_answer, read_citations
from ragbed.strategies.types import Evidence, Passage

_MAX_REPLY, _MAX_QUOTE, _MAX_LINES = 50_000, 2_000, 100  # characters; lines
MIN_LETTERS = 2  # letters or digits; a single one occurs in every text
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
_MAX_ROW, _MAX_CELL, _MAX_CELLS = 4_000, 300, 8  # characters; cells
_HEADINGS = frozenset(("subject", "property", "value", "document", "what it is about"))
_RULE = re.compile(r"[\s:=-]*")
_DOCUMENT = re.compile(r"(?:document\s?)?\[?(\d{1,6})\]?", re.IGNORECASE)
_NONE = re.compile(r"(?:nothing|no (?:\w+ ){0,3}(?:quotes?|passages?|documents?|sentences?)|there (?:is|are) no)\b"
                   r"|[没沒]有")


@dataclass(frozen=True, slots=True)
class OfferedQuote:
    """A quote as the model wrote it, with the number of the document it names, if any."""

    text: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """The place of a quote: spans of one passage's content, several if the quote omits something."""

    number: int
    spans: tuple[tuple[int, int], ...]


def read_quotes(text: str, most: int) -> list[OfferedQuote]:
    """Read the quotes in a reply, one per line, each once: `[2] "the copied words"`.

    The number may be at the end or missing. If some lines have a number or quotation marks, other lines are not quotes.
    Lines that say "none" are skipped.
    """
    lines = [line.strip() for line in read_answer(text)[0][:_MAX_REPLY].splitlines()[:_MAX_LINES]]
    read = [(one, marked) for line in lines if line for one, marked in [_offered(line)]]
    formed = [one for one, marked in read if marked] or [
        one for one, _ in read if not one.text.endswith((":", "：")) and not begins_with_nothing(one.text)
        and not _NONE.match(fold(one.text))]
    known: dict[str, OfferedQuote] = {}
    for one in formed:
        known.setdefault(fold(one.text), one)
    return [one for key, one in known.items() if len(key) >= MIN_LETTERS and key != "none"][:most]


def _offered(line: str) -> tuple[OfferedQuote, bool]:
    bare = line[mark.end():] if (mark := _LIST_MARK.match(line)) else line
    number = _NUMBER.match(bare) or _LAST_NUMBER.search(bare)
    said = bare[:number.start()] + bare[number.end():] if number else bare
    reduce_to_quotes = said.strip().strip("*")
    text = reduce_to_quotes.strip(_QUOTATION + " ")[:_MAX_QUOTE]
    marked = number is not None or reduce_to_quotes[:1] in tuple(_QUOTATION)
    return OfferedQuote(text, int(number[1]) if number else None), marked


def find_quotes(offered: Sequence[OfferedQuote], evidence: Evidence, shortest: int = MIN_LETTERS) -> list[Quote | None]:
    """Find each quote in the document it names, or in the first document that has it; None if it is in none.

    A quote needs at least `shortest` letters and digits. Time per quote is linear in the documents and the quote.
    """
    texts = {passage.number: _Text(passage) for passage in evidence}
    return [next((quote for number in sorted(texts, key=lambda number: number != one.number)
                  if (quote := texts[number].find(one.text, shortest))), None) for one in offered]


def reduce_to_quotes(evidence: Evidence, quotes: Iterable[Quote]) -> Evidence:
    """Reduce the quoted passages to their quotes: one line each, in the passage's order. Drop the others."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for quote in quotes:
        spans.setdefault(quote.number, []).extend(quote.spans)
    reduced = []
    for passage in (one for one in evidence if one.number in spans):
        joined: list[tuple[int, int]] = []
        for start, end in sorted(spans[passage.number]):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        content = "\n".join(passage.chunk.content[start:end] for start, end in joined)
        reduced.append(replace(passage, chunk=replace(passage.chunk, content=content)))
    return tuple(reduced)


class _Text:
    """A passage as folded tokens separated by spaces, with the position of each."""

    def __init__(self, passage: Passage) -> None:
        self._number, self._html = passage.number, passage.chunk.format == "html"
        tokens = list(_tokens(passage.chunk.content, self._html))
        self._folded = " ".join(["", *(folded for folded, _, _ in tokens), ""])
        self._spans = [(start, end) for _, start, end in tokens]
        self._places = [0, *accumulate(len(folded) + 1 for folded, _, _ in tokens)]

    def find(self, said: str, shortest: int) -> Quote | None:
        """Find the first place of a quote, or of its pieces in order if it omits something."""
        spans = self._pieces([said], shortest) or self._pieces(_OMISSION.split(said), shortest)
        return Quote(self._number, spans) if spans else None

    def _pieces(self, pieces: Sequence[str], shortest: int) -> tuple[tuple[int, int], ...]:
        """Find the pieces one after the other; return nothing if one is missing or all are too short."""
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
    """Yield the words and marks of a text, folded, with start and end."""
    for token in (_TOKEN_OF_HTML if markup else _TOKEN).finditer(text):
        said = token.group()
        if markup and said.startswith("<") and len(said) > 1:
            continue
        plain = html.unescape(said) if markup else said
        folded = normalize("NFKC", plain).casefold().translate(_DASHES)
        folded = "".join(folded.split()).strip(_QUOTATION + "_")
        if folded:
            yield folded, token.start(), token.end()


def _bare(tokens: Iterator[tuple[str, int, int]]) -> list[str]:
    """Return the folded tokens of a quote without the marks at its ends."""
    begun = list(dropwhile(_EDGES.__contains__, (token for token, _, _ in tokens)))
    return list(dropwhile(_EDGES.__contains__, reversed(begun)))[::-1]


@dataclass(frozen=True, slots=True)
class FactRow:
    """A row of a fact table. Its last cell is the value."""

    cells: tuple[str, ...]
    number: int | None = None  # number of its document; None if the row names none
    found: bool = False  # whether a document contains its value word for word


def read_rows(text: str, most: int, numbered: bool) -> list[FactRow]:
    """Read the table rows in a reply: lines with cells between `|`. Leave out headings and repeats. With `numbered`,
    the last cell of a row is the number of its document."""
    rows: dict[FactRow, None] = {}
    for line in read_answer(text)[0][:_MAX_REPLY].splitlines():
        if "|" not in line:
            continue
        split = line[:_MAX_ROW].strip().strip("|").split("|")[:_MAX_CELLS]
        cells = [" ".join(cell.split())[:_MAX_CELL] for cell in split]
        bare = _DOCUMENT.fullmatch(cells[-1].strip(" *."))
        if numbered and bare and (len(cells) > 3 or is_only_citations(cells[-1])):  # its own cell: `[2]` or `2`
            row = FactRow(tuple(cells[:-1]), int(bare[1]))
        else:
            row = FactRow(tuple(cells), next(iter(read_citations(cells[-1])), None) if numbered else None)
        if len(row.cells) > 1 and not _HEADINGS.issuperset(map(fold, row.cells)):
            rows[row] = None
    return [row for row in rows if not all(map(_RULE.fullmatch, row.cells))][:most]


def check_rows(rows: Sequence[FactRow], evidence: Evidence) -> list[FactRow]:
    """Look up each row's value in the documents. Drop rows that name an unknown document and whose value none has."""
    shown = {passage.number for passage in evidence}
    quotes = find_quotes([OfferedQuote(row.cells[-1], row.number) for row in rows], evidence, shortest=1)
    placed = [replace(row, number=quote.number if quote else row.number, found=quote is not None)
              for row, quote in zip(rows, quotes, strict=True)]
    return [row for row in placed if row.number is None or row.number in shown]


def format_rows(rows: Sequence[FactRow], numbered: bool) -> str:
    """Format the table for a prompt. With `numbered`, the last column holds the document numbers."""
    return "\n".join("| " + " | ".join([*row.cells, *(["-" if row.number is None else f"[{row.number}]"] * numbered)])
                     + " |" for row in rows)
