"""Build the page's view of an item. All text is inert, and evidence is marked in its document."""
from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from ragbed.documents.types import Chunk, Document, Format
from ragbed.experiments.formatting import visible
from ragbed.experiments.guests.review.items import Evidence, Item, overlaps

_AROUND = 20_000  # characters shown before and after a mark
_MAX_CHUNK = 30_000  # maximum characters shown of a chunk
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>")
_CUT_TAG = re.compile(r"\A[^<>]*>|<[^<>]*\Z")  # a span may begin or end inside a tag
_LINES, _CELLS = frozenset(("br", "tr", "li", "dt", "dd")), frozenset(("td", "th"))
_BLOCKS = frozenset(("address", "article", "blockquote", "caption", "div", "dl", "figcaption", "h1", "h2", "h3", "h4",
                     "h5", "h6", "hr", "ol", "p", "pre", "section", "table", "ul"))
_EMPTY = re.compile(r"[ \t]*\n\s*\n[ \t]*")

Piece = dict[str, Any]  # `text`, with `mark` if it is evidence; or `gap`: number of characters left out


def item_view(item: Item, documents: Mapping[str, Document]) -> dict[str, Any]:
    """Return the page's view of an item, as JSON without hidden or direction-changing characters."""
    documents = {**documents, **{one.id: one for one in item.documents}}
    by_place: dict[tuple[str, str], list[Evidence]] = {}
    for one in item.evidence:
        by_place.setdefault((one.document, one.format), []).append(one)
    made = {
        "id": item.id, "question": item.question, "answers": item.answers, "answerable": item.answerable,
        "options": [{"text": text, "key": text in item.answers[:1]} for text in item.options],
        "tags": [[name, str(value)] for name, value in item.tags.items()],
        "measured": [[name, f"{value:.2f}"] for name, value in item.measured.items()],
        "steps": _steps(item),
        "documents": [_mark_document(evidence, documents) for evidence in by_place.values()],
        "candidates": [_candidate(one, documents) for one in item.made.get("candidates", ())],
        "chunks": [_chunk(chunk, item, documents) for chunk in item.chunks]}
    shown: dict[str, Any] = _make_inert(made)
    return shown


def _make_inert(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {name: _make_inert(one) for name, one in value.items()}
    return [_make_inert(one) for one in value] if isinstance(value, list | tuple) else value


def _steps(item: Item) -> list[str]:
    """Return the steps to the answer, if the item has any: its sub-questions, or its reasoning."""
    made = {**item.made, **item.made.get("line", {})}
    asked, answered = made.get("sub_questions") or (), made.get("sub_answers") or ()
    return [f"{question} {answer}" for question, answer in zip_longest(asked, answered, fillvalue="")] or [
        str(step) for step in made.get("steps") or ()]


def _mark_document(evidence: Sequence[Evidence], documents: Mapping[str, Document]) -> dict[str, Any]:
    """Return a document with its evidence marked, or the quotes alone if the document is not available."""
    first = evidence[0]
    document = documents.get(first.document)
    if document is None:
        return {"title": first.document, "source": "", "page": "", "note": "This document is not available.",
                "pieces": [{"text": f"{one.text}\n", "mark": True} for one in evidence if one.text]}
    whole = document.text(first.format)
    spans = sorted({(one.start, one.end) for one in evidence if one.end > one.start})
    misplaced = " / ".join(one.text for one in evidence if one.text != whole[one.start:one.end])
    return {"title": document.title, "source": document.source,
            "page": _page_label(document.pages_of(first.format, *spans[0]) if spans else None),
            "note": f"This quote is not at its offsets in the document: {misplaced}" if misplaced else "",
            "pieces": _strip_leading_blank(_pieces(whole, spans, first.format == "html"))}


def _strip_leading_blank(pieces: Iterator[Piece]) -> list[Piece]:
    first, *others = pieces
    return [{**first, "text": first["text"].lstrip("\n")}, *others]


def _pieces(text: str, spans: Sequence[tuple[int, int]], markup: bool) -> Iterator[Piece]:
    at = 0
    for start, end in spans:
        if start > at:
            yield from _cut_middle(text[at:start], 0 if at == 0 else _AROUND, _AROUND, markup)
        if end > max(start, at):
            yield {"text": _plain_text(text[max(start, at):end], markup), "mark": True}
        at = max(at, end)
    yield from _cut_middle(text[at:], _AROUND, 0, markup)


def _cut_middle(text: str, first: int, last: int, markup: bool) -> Iterator[Piece]:
    left = len(text) - first - last
    if left > 0:
        yield {"text": _plain_text(text[:first], markup)}
        yield {"gap": left}
        text = text[len(text) - last:]
    yield {"text": _plain_text(text, markup)}


def _plain_text(text: str, markup: bool) -> str:
    """Return text without tags, one line per block and with bars between cells. It is never parsed as HTML again."""
    if not markup:
        return text
    return _EMPTY.sub("\n\n", html.unescape(_TAG.sub(_replace_tag, _CUT_TAG.sub("", text))))


def _replace_tag(tag: re.Match[str]) -> str:
    name, closes = tag[2].lower(), bool(tag[1])
    if name in _BLOCKS:
        return "\n\n"
    if name in _CELLS:
        return " " if closes else "| "
    return "\n" if name in _LINES and not closes else ""


def _chunk(chunk: Chunk, item: Item, documents: Mapping[str, Document]) -> dict[str, Any]:
    document = documents.get(chunk.document)
    return {"source": document.source if document else chunk.document, "page": _page_label(chunk.pages),
            "holds": any(overlaps(chunk, one) for one in item.evidence),
            "pieces": _strip_leading_blank(_cut_middle(chunk.content, _MAX_CHUNK, 0, chunk.format == "html"))}


def _candidate(one: Mapping[str, Any], documents: Mapping[str, Document]) -> dict[str, Any]:
    """Return a passage that may be evidence, with its text if the document is available."""
    document = documents.get(one["document"])
    start, end = one.get("start") or 0, one.get("end") or 0
    format: Format = one.get("format") or "plain"
    text = document.text(format)[start:end] if document else ""
    return {"source": document.source if document else one["document"],
            "page": _page_label(document.pages_of(format, start, end) if document else None),
            "text": _plain_text(text[:_MAX_CHUNK], format == "html")}


def _page_label(pages: tuple[int, int] | None) -> str:
    return "" if pages is None else f"page {pages[0]}" if pages[0] == pages[1] else f"pages {pages[0]}-{pages[1]}"
