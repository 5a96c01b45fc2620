"""Show a document with a highlighted passage, as images of its pages, HTML or text."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Annotated
from urllib.parse import quote, unquote, urlencode

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from ragbed.documents.types import Chunk, Document
from ragbed.experiments.formatting import visible
from ragbed.experiments.guests.serving.page_images import MarkedPage, Undrawable
from ragbed.experiments.guests.serving.state import ServerState, request_owner

# A sandbox without scripts. It keeps its origin, so that its images can be loaded with a cookie. Browsers do not open a
# sandboxed page with the Cross-Origin-Opener-Policy of the other pages.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; "
                               "form-action 'none'; frame-ancestors 'self'; sandbox allow-same-origin",
    "Cross-Origin-Opener-Policy": "unsafe-none"}
_CONTEXT = 200_000  # characters shown before and after a passage
_CONTEXT_PAGES = 1  # pages shown before and after the passage's
_MAX_PAGES = 12  # maximum pages shown at once
_FOUND = 0.8  # a note appears if a smaller share of the letters is found on the images
_TAGS = frozenset(("blockquote", "br", "caption", "code", "dd", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6",
                   "hr", "li", "ol", "p", "pre", "strong", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead",
                   "tr", "ul"))
_TOKEN = re.compile(r"<(?P<close>/?)(?P<name>[a-z][a-z0-9]*)(?P<rest>[^<>]*)>|&(?:#?\w{1,30});|[^<&]+|[<&]")
_NUMBER = re.compile(r' (colspan|rowspan|start|value)="(\d{1,4})"')
_ALT = re.compile(r' alt="([^"]*)"')
_LINE, _CELL = re.compile(r"^(#{1,6} )?(.*)$", re.MULTILINE), re.compile(r"(?<=\|)[^|]*(?=\|)")
_CUT_TAG = re.compile(r"\A[^<>]*>|<[^<>]*\Z")  # a tag cut off by the start or end of a passage
_NOT_FOUND = ("This passage is not in the index", "The index has been rebuilt, the address is wrong, or your key "
              "may not read the document. Ask again to get current citations.")


def document_routes(server: ServerState) -> APIRouter:
    """Return the routes below `/documents`."""
    router, images = APIRouter(), server.images

    @router.get("/documents/{path:path}", include_in_schema=False)
    async def document(request: Request, path: str, chunk: str | None = None,
                       page: Annotated[int | None, Query(ge=1)] = None) -> Response:
        # The raw path, since an id may have encoded slashes.
        root = str(request.scope.get("root_path", ""))
        sent = request.scope["raw_path"].decode("latin-1").removeprefix(f"{root}/documents/")
        parts = list(map(unquote, sent.split("/")))
        found = await run_in_threadpool(server.find, parts[0], chunk, request_owner(request))
        if found is None:
            body = _page(_NOT_FOUND[0], f"<header><h1>{_NOT_FOUND[0]}</h1><p>{_NOT_FOUND[1]}</p></header>")
            return HTMLResponse(body, 404, _HEADERS)
        index, shown, passage = found
        failure = ""
        if len(parts) == 1:
            try:
                marked = await images.mark(request, index, shown, shown_pages(shown, passage, page), passage)
            except Undrawable as why:
                marked, failure = None, f"The pages are shown as text, because they cannot be drawn: {why}."
            body = await run_in_threadpool(document_page, shown, passage, marked, failure)
            return HTMLResponse(body, headers=_HEADERS)
        number = re.fullmatch(r"pages/(\d{1,6})\.png", "/".join(parts[1:]))
        try:
            await server.sessions.traffic.last_deletion()  # which clears what was drawn
            png = await images.png(request, index, shown, int(number[1])) if number else None
        except Undrawable as why:
            return Response(_no_image(f"This page cannot be drawn: {why}."), 422, _HEADERS, "image/svg+xml")
        return Response(png or b"", 200 if png else 404, _HEADERS, "image/png")

    return router


def _no_image(reason: str) -> str:
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 595 842"><g font-size="16" text-anchor="middle" '
            f'font-family="sans-serif"><text x="50%" y="20%">{escape(reason)}</text>'
            '<text x="50%" y="24%">Reload the document to read its text.</text></g></svg>')


def shown_pages(document: Document, chunk: Chunk | None, page: int | None) -> range:
    """Return the numbers of the pages shown around a page, or around the passage's pages."""
    first, last = (page, page) if page else _pages(chunk)
    end = min(last + _CONTEXT_PAGES, len(document.pages))
    begin = min(max(first - _CONTEXT_PAGES, 1), end)
    return range(begin, min(end, begin + _MAX_PAGES - 1) + 1)


def _pages(chunk: Chunk | None) -> tuple[int, int]:
    return (chunk.pages if chunk else None) or (1, 1)


def document_page(document: Document, chunk: Chunk | None, marked: Mapping[int, MarkedPage] | None,
                  failure: str = "") -> str:
    """Return a document as HTML with the passage highlighted, as the target of `#page=N` or `#passage`.

    Args:
        marked: pages to show as images; None to show text.
        failure: why text is shown, if the document has pages.
    """
    passage = _pages(chunk)
    note = _note(chunk, [one for number, one in marked.items() if passage[0] <= number <= passage[1]]) if marked else \
        f"<div class=note>{escape(failure)}</div>" if failure else ""
    body = _page_images(document, chunk, marked) if marked else "".join(_render_part(document, chunk))
    source = visible(document.source)
    pages = chunk.pages if chunk else None
    place = "" if pages is None else f"page {pages[0]}" if pages[0] == pages[1] else f"pages {pages[0]} to {pages[1]}"
    of = f"{place} of {len(document.pages)}" if place else ""
    name = "" if document.title == document.source else escape(source)
    where = " · ".join(filter(None, (name, of)))
    return _page(document.title, f"<header><h1 dir=auto>{escape(visible(document.title))}</h1>"
                                 f"<p>{where}</p>{note}</header>{body}")


def _page(title: str, body: str) -> str:
    return ('<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(visible(title))}</title>"
            '<link rel="icon" href="data:,"><link rel="stylesheet" href="../assets/document.css"></head>'
            f"<body>{body}</body></html>")


def _page_images(document: Document, chunk: Chunk | None, marked: Mapping[int, MarkedPage]) -> str:
    link = quote(document.id, safe="")  # relative to the document's own address
    query = {"chunk": chunk.id} if chunk else {}
    figures = [_figure(f"{link}/pages/{number}.png?{urlencode(query)}", number, one) for number, one in marked.items()]
    before, after = min(marked) - 1, max(marked) + 1
    links = [f'<a href="{link}?{escape(urlencode({**query, "page": to}))}">{words}</a>' for to, words, there in (
        (before, "Earlier pages", before >= 1), (after, "Later pages", after <= len(document.pages))) if there]
    return f"<main class=pages>{''.join(figures)}</main><nav>{''.join(links)}</nav>"


def _note(chunk: Chunk | None, marked: list[MarkedPage]) -> str:
    """Return the passage's text if it could not be highlighted on the images, or an empty text."""
    if chunk is None or sum(one.found for one in marked) >= _FOUND * sum(one.letters for one in marked):
        return ""
    some = any(one.boxes for one in marked)
    words = "Only part of the passage could be highlighted on the image" if some else \
        "The passage could not be highlighted on the image"
    text = "".join(_html(_CUT_TAG.sub("", chunk.content)) if chunk.format == "html" else _text(chunk.content))
    return (f"<div class=note><p>{words} of its page. Its text:</p>"
            f"<div class={chunk.format} dir=auto>{text}</div></div>")


def _figure(source: str, number: int, marked: MarkedPage) -> str:
    anchor = f"page={number}"
    boxes = "".join(f'<rect x="{x0 - 1:.1f}" y="{y0 - 1:.1f}" width="{x1 - x0 + 2:.1f}" height="{y1 - y0 + 2:.1f}"/>'
                    for x0, y0, x1, y1 in marked.boxes)
    marks = (f'<svg viewBox="0 0 {marked.width:.1f} {marked.height:.1f}" aria-hidden="true">'
             f'<g id="{anchor}">{boxes}</g></svg>' if boxes else "")
    own = "" if boxes else f' id="{anchor}"'
    return (f'<figure{own}><img src="{escape(source)}" alt="Page {number}" width="{marked.width:.0f}" '
            f'height="{marked.height:.0f}">{marks}<figcaption>{number}</figcaption></figure>')


def _render_part(document: Document, chunk: Chunk | None) -> Iterator[str]:
    """Yield the part of the document around the passage, in the passage's format."""
    format = chunk.format if chunk else "html"
    text = document.text(format)
    begin, end = max((chunk.start if chunk else 0) - _CONTEXT, 0), (chunk.end if chunk else 0) + _CONTEXT
    begin = text.rfind("\n", 0, begin) + 1 if begin else 0
    yield f'<main class="{format}" dir=auto>'
    if begin:
        yield "<p class=gap>Earlier text is left out here.</p>"
    span = (chunk.start - begin, chunk.end - begin) if chunk else (0, 0)
    pieces = _html if format == "html" else _text
    yield from pieces(text[begin:end], span, f"page={chunk.pages[0]}" if chunk and chunk.pages else "passage")
    if end < len(text):
        yield "<p class=gap>Later text is left out here.</p>"
    yield "</main>"


def _text(text: str, span: tuple[int, int] = (0, 0), anchor: str = "") -> Iterator[str]:
    """Yield readable text with the span highlighted: a block per line, and pipe tables as tables."""
    mark, table = _mark(anchor), False

    def part(begin: int, end: int) -> str:
        start, stop = (min(max(place, begin), end) for place in span)
        before, inside, after = (escape(visible(text[one:other]))
                                 for one, other in ((begin, start), (start, stop), (stop, end)))
        return f"{before}{next(mark)}{inside}</mark>{after}" if inside.strip() else before + inside + after

    for line in _LINE.finditer(text):
        row = line[2].startswith("|")
        if row != table:
            yield "<table>" if row else "</table>"
        table = row
        if not row:
            yield f'<div class={"head" if line[1] else "line"}>{part(*line.span(2))}</div>'
        elif line[2].strip("|-: "):
            cells = (part(line.start(2) + one.start(), line.start(2) + one.end()) for one in _CELL.finditer(line[2]))
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    if table:
        yield "</table>"


def _html(text: str, span: tuple[int, int] = (0, 0), anchor: str = "") -> Iterator[str]:
    """Yield HTML with the span highlighted. Only known tags and attributes are kept: the index is untrusted."""
    mark = _mark(anchor)
    for token in _TOKEN.finditer(text):
        name = token["name"]
        if name == "img" and (alt := _ALT.search(token["rest"])):
            yield f"<span class=picture>{alt[1]}</span>"
        elif name in _TAGS:
            numbers = "".join(f' {attribute}="{number}"' for attribute, number in _NUMBER.findall(token["rest"]))
            yield f"<{token['close']}{name}{numbers}>"
        elif name is None:
            start, end = (min(max(place, token.start()), token.end()) for place in span)
            if start < end and token[0][0] in "<&":  # highlight a whole `<` or character reference
                start, end = token.span()
            before, inside, after = (
                escape(part) if part in ("<", "&") else visible(part)
                for part in (text[token.start():start], text[start:end], text[end:token.end()]))
            yield f"{before}{next(mark)}{inside}</mark>{after}" if inside.strip() else before + inside + after


def _mark(anchor: str) -> Iterator[str]:
    """Yield opening tags of highlights; the first one has the anchor."""
    yield f'<mark id="{anchor}">' if anchor else "<mark>"
    while True:
        yield "<mark>"
