"""The tools `search`, `list` and `open`, which read documents, and `calculate`."""
from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from ragbed.agents.search import SearchFunction
from ragbed.agents.tools import ToolOutput
from ragbed.documents.types import Document
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure
from ragbed.experiments.guests.agent_tools.corpora import Corpus
from ragbed.experiments.guests.agent_tools.corpus_text import Entry, read_corpus, show, show_chunk, span
from ragbed.experiments.guests.more_strategies.arithmetic.expressions import evaluate
from ragbed.experiments.guests.more_strategies.arithmetic.functions import Unworkable, is_shown_whole, shown_value
from ragbed.strategies.types import Search

_ENTRIES = 50  # documents on a page of `list`
WINDOW = 6_000  # characters that `open` shows
_LINES = re.compile(r"\s*(\d{1,9})\s*(?:(?:-|–|:|to)\s*(\d{1,9}))?\s*")

Name = Annotated[str, Field(max_length=1_000, description="Name of the document, as `list` and `search` show it.")]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the tools of a question may use: its documents, and its searches by name."""

    corpus: Corpus
    searches: Mapping[str, SearchFunction]


def search_tool(name: str) -> Callable[..., Awaitable[ToolOutput]]:
    """Return the tool that searches with the question's search of this name."""

    async def search(within: ToolContext, query: Annotated[str, Field(min_length=1, max_length=2_000)],
                     k: Annotated[int | None, Field(ge=1, le=20, description="Number of passages.")] = None
                     ) -> ToolOutput:
        """Search the documents. Returns the passages that fit the query best."""
        if name not in within.searches:
            raise ToolFailure(f"this search is not open; choose from: {', '.join(within.searches)}")
        found = await within.searches[name](Search(query, k))
        parts = tuple(part for chunk in found[:k] for part in show_chunk(within.corpus, chunk))
        return ToolOutput(parts or ("Nothing was found. Try other words.",))

    return search


def list_documents(
        within: ToolContext,
        path: Annotated[str, Field(max_length=1_000, description=(
            "Only documents whose name begins with this, or fits it, such as `reports/*2023*`."))] = "",
        page: Annotated[int, Field(ge=1, description="Page of the list.")] = 1) -> ToolOutput:
    """List the documents: name, title, pages and size."""
    text = read_corpus(within.corpus)
    wanted = path.strip().removeprefix("./").casefold()
    pattern = wanted if any(sign in wanted for sign in "*?[") else f"{wanted}*"
    found = [one for one in text.entries if wanted in ("", "/", "*") or fnmatchcase(one.source.casefold(), pattern)]
    pages = -(-len(found) // _ENTRIES)
    if not found:
        raise ToolFailure(f"no document's name begins with or fits {path!r:.80}; "
                          f"there are {len(text.entries):,} documents; leave out `path` to list them")
    if page > pages:
        raise ToolFailure(f"there is no page {page}; the list has {span('page', 1, pages)}")
    shown = found[(page - 1) * _ENTRIES:page * _ENTRIES]
    more = f" Page {page} of {pages}; for more, give `page`." if pages > 1 else ""
    head = f"{len(found):,} document{'s' * (len(found) != 1)}.{more}"
    return ToolOutput(("\n".join((head, *map(_describe, shown))),))


def _describe(entry: Entry) -> str:
    pages = f"{span('page', entry.pages, entry.pages).partition(' ')[2]} pages, " if entry.pages else ""
    title = f" ({show(entry.title)})" if entry.title not in ("", entry.source) else ""
    return f"- {show(entry.source)}{title}: {pages}{entry.size:,} characters"


def open_document(
        within: ToolContext, document: Name,
        page: Annotated[int | None, Field(ge=1, description="Page to show, if the document has pages.")] = None,
        lines: Annotated[str | int, Field(description="Lines to show instead, such as 40-90.")] = "") -> ToolOutput:
    """Show a part of a document: a page, a range of lines, or its beginning. Says what comes before and after."""
    text = read_corpus(within.corpus)
    found = within.corpus.document(text.entries[text.find(document)].id)
    rendering = found.text(within.corpus.format)
    if not found.pages and page == 1:  # models give every argument, and begin at 1
        page = None
    if page is not None and lines not in ("", 0):
        raise ToolFailure("give either `page` or `lines`")
    count = rendering.removesuffix("\n").count("\n") + 1
    start, end = 0, len(rendering)
    if page is not None:
        start, end = _page_span(found, page, within.corpus)
    elif lines not in ("", 0):
        start, end = _line_span(rendering, str(lines), count)
    end = _cut(rendering, start, end)
    chunks = within.corpus.spans(found.id, start, end)
    first = rendering.count("\n", 0, start) + 1
    last = min(first + rendering.count("\n", start, max(end - 1, start)), count)
    pages = found.pages_of(within.corpus.format, start, end)
    of_pages = f", {span('page', *pages)} of {len(found.pages)}" if pages else ""
    before = f"Before it: {span('line', 1, first - 1)}. " if first > 1 else ""
    after = f"After it: {span('line', last + 1, count)}; open them with lines {last + 1}-{count}." if last < count \
        else "This is its end."
    return ToolOutput((f"{show(found.source)}{of_pages}, {span('line', first, last)} of {count}:", *chunks,
                       f"{before}{after}"))


def _page_span(document: Document, page: int, corpus: Corpus) -> tuple[int, int]:
    if not document.pages:
        raise ToolFailure("the document has no pages; give `lines`, such as 1-80")
    begins = [one.html if corpus.format == "html" else one.plain for one in document.pages]
    place = next((place for place, one in enumerate(document.pages) if one.number == page), None)
    if place is None:
        raise ToolFailure(f"there is no page {page}; the document has {span('page', 1, document.pages[-1].number)}")
    return begins[place], [*begins, len(document.text(corpus.format))][place + 1]


def _line_span(text: str, lines: str, count: int) -> tuple[int, int]:
    read = _LINES.fullmatch(lines)
    if read is None:
        raise ToolFailure(f"argument lines: {lines!r:.40} is not a range; write it as 40-90")
    first, last = int(read[1]), min(int(read[2] or read[1]), count)
    if not 1 <= first <= last:
        raise ToolFailure(f"argument lines: there are no lines {lines.strip()}; the document has {count} lines")
    starts = [0, *(found.end() for found in re.finditer("\n", text)), len(text)]
    return starts[first - 1], starts[min(last, len(starts) - 1)]


def _cut(text: str, start: int, end: int) -> int:
    """Return where a window ends: at a line end within WINDOW characters, or after WINDOW if a line is longer."""
    if end - start <= WINDOW:
        return end
    line_end = text.rfind("\n", start, start + WINDOW) + 1
    return line_end if line_end > start else start + WINDOW


def calculate(within: ToolContext, expression: Annotated[str, Field(max_length=1_000)]) -> ToolOutput:
    """Calculate an expression exactly, such as (1,250 - 980) / 980, 12% of 50, round(2/3, 2) or
    days(2023-01-31, 2024-02-29)."""
    try:
        value = evaluate(expression, {})
    except Unworkable as error:
        raise ToolFailure(f"{error}; write one expression of numbers, + - * / ** % and functions") from None
    shown = shown_value(value)
    exact = f" (exactly {value})" if isinstance(value, Fraction) and not is_shown_whole(value) else ""
    return ToolOutput((f"{shown}{exact[:200]}",))
