"""Parse HTML with BeautifulSoup and lxml into clean renderings."""
from __future__ import annotations

import gc
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING

from ragbed.documents.decoding import decode
from ragbed.documents.parsers.clean_html import HEADINGS, Tidy, normalize_text, write_html
from ragbed.documents.parsers.formulas import read_mathml
from ragbed.documents.parsers.plain import write_plain
from ragbed.documents.paths import keep_hidden_text
from ragbed.documents.types import Document, new_document

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from bs4.element import PageElement

# Elements to leave out with everything inside: they are not content, or not safe.
_DROPPED = frozenset({
    "script", "style", "template", "iframe", "object", "embed", "applet", "frame", "canvas", "audio", "video",
    "map", "head", "title", "meta", "link", "base", "option", "datalist", "progress",
    "defs", "symbol", "metadata", "desc", "clippath", "mask"})  # the last six are parts of drawings
_KEPT = frozenset({*HEADINGS, "ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tfoot", "tr",
                   "td", "th", "pre", "blockquote"})
_MEANT = {"b": "strong", "i": "em", "tt": "code", "kbd": "code", "samp": "code", "cite": "em", "var": "em",
          "em": "em", "strong": "strong", "code": "code", "sub": "sub", "sup": "sup"}
_SAME = {"xmp": "pre", "listing": "pre", "plaintext": "pre", "menu": "ul", "dir": "ul"}
_FILLED_IN = frozenset({"text", "number", "date", "time", "datetime-local", "month", "week", "email", "tel", "url"})
_INLINE = frozenset({
    "abbr", "acronym", "bdi", "bdo", "big", "data", "del", "dfn", "font", "ins", "label", "mark", "nobr",
    "noscript", "output", "q", "rb", "rp", "rt", "ruby", "s", "small", "span", "strike", "time", "u", "wbr",
    "picture", "source", "slot"})
_HIDING = frozenset({"style", "hidden", "aria-hidden", "color"})  # attributes
_UNSEEN = re.compile(r"display:none|visibility:(?:hidden|collapse)|(?<![-\w])opacity:0(?![.\d])")
_NO_SIZE = re.compile(r"font-size:0*(?:\.0*)?(?:[a-z%]|;|!|$)")
_SIZED = re.compile(r"font(?:-size)?\s*:", re.IGNORECASE)
_WHITE = re.compile(r"(?<!-)color:(?:#fff|#ffffff|white|rgb\(255,255,255\))(?![\w.])")
_BEHIND = re.compile(r"background(?:-color)?:(?!(?:#fff|#ffffff|white|transparent|none|inherit)(?![\w.]))")
_LINKS = frozenset({"a", "button"})
_LARGE = 1_000_000
_NUMBERS = {"td": ("colspan", "rowspan"), "th": ("colspan", "rowspan"), "ol": ("start",), "li": ("value",)}


def parse_html(data: bytes, source: str) -> Document:
    """Parse a page from bytes. Raises DocumentError if the data is binary."""
    from bs4.dammit import EncodingDetector

    declared = EncodingDetector.find_declared_encoding(data, is_html=True, search_entire_document=False)
    return parse_page(decode(data, source, declared))


def parse_page(page: str) -> Document:
    """Parse a page from text."""
    with _no_collector(len(page) > _LARGE):
        return _parse_page(page)  # its tree is garbage before the collector walks over it


@contextmanager
def _no_collector(large: bool) -> Iterator[None]:
    """Pause the garbage collector. Its walks over the growing tree take a quarter of the time at 15 MB."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
        if large:
            gc.collect()


def _parse_page(page: str) -> Document:
    from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        soup = BeautifulSoup(page, "lxml", multi_valued_attributes=None)  # no attribute is split into words
    tidy = Tidy()
    _walk(soup, tidy)
    # Avoid CSS selectors: the selector library fails on CPython 3.11.2, the version of Debian 12.
    titles = (tag for tag in islice(_find_each(soup, "title"), 100) if tag.find_parent("svg") is None)
    texts = (" ".join(normalize_text(tag.get_text(" ")).split())
             for tag in chain(islice(titles, 1), map(soup.find, ("h1", "h2", "h3")))
             if tag is not None and not any(map(_is_hidden, (tag, *tag.parents))))
    return new_document(next(filter(None, texts), ""), write_html(tidy.events), write_plain(tidy.events),
                        hidden=tidy.hidden)


def _find_each(soup: BeautifulSoup, name: str) -> Iterator[Tag]:
    """Yield the elements of a name, and look for the next one only when it is asked for."""
    found = soup.find(name)
    while found is not None:
        yield found
        found = found.find_next(name)


def _walk(soup: BeautifulSoup, tidy: Tidy) -> None:
    """Send every element to `tidy`, with an explicit stack, since pages may nest deeper than Python can recurse."""
    from bs4 import Tag
    from bs4.element import NavigableString, PreformattedString

    stack: list[tuple[Tag, bool, Iterator[PageElement]]] = [(soup, False, iter(soup.contents))]
    while stack:
        tag, opened, children = stack[-1]
        child = next(children, None)
        if child is None:
            stack.pop()
            _leave(tag, opened, tidy)
        elif isinstance(child, Tag):
            if _is_hidden(child):
                tidy.hidden += len(child.get_text())
            elif child.name.rpartition(":")[2] == "math":
                _formula(child, tidy)
            elif child.name == "select":
                tidy.text(" ".join(["", *(one.get_text() for one in child.find_all("option", selected=True)), ""]))
            elif child.name not in _DROPPED:
                stack.append((child, _enter(child, tidy), iter(child.contents)))
        elif isinstance(child, NavigableString) and not isinstance(child, PreformattedString):
            tidy.text(child)


def _formula(tag: Tag, tidy: Tidy) -> None:
    """Send a formula as text on one line. Formulas in display style are paragraphs."""
    displayed = tag.get("display") == "block"
    if displayed:
        tidy.boundary()
    tidy.text(read_mathml(tag))
    if displayed:
        tidy.boundary()


def _is_hidden(tag: Tag) -> bool:
    if (tag.name != "dialog" and _HIDING.isdisjoint(tag.attrs)) or keep_hidden_text():
        return False
    style = _style(tag)
    closed = tag.name == "dialog" and not tag.has_attr("open")
    if closed or tag.has_attr("hidden") or tag.get("aria-hidden") == "true" or _UNSEEN.search(style):
        return True
    if _NO_SIZE.search(style):
        return tag.find(style=_SIZED) is None
    white = _WHITE.search(f"{style};color:{tag.get('color', '')}".lower()) is not None
    return white and not any(_BEHIND.search(f"{_style(each)};background:{each.get('bgcolor') or 'none'}".lower())
                             for each in (tag, *tag.parents))


def _style(tag: Tag) -> str:
    return "".join(str(tag.get("style", "")).lower().split())


def _enter(tag: Tag, tidy: Tidy) -> bool:
    name = _SAME.get(tag.name, tag.name)
    if name in _MEANT:
        return tidy.open_inline(_MEANT[name])
    if name in _KEPT:
        return tidy.open(name, _attributes(tag))
    if name == "br":
        tidy.line_break()
    elif name == "hr":
        tidy.rule()
    elif name == "img":
        tidy.image(str(tag.get("alt", "")))
    elif name == "input":
        if tag.get("type") in ("checkbox", "radio"):
            tidy.text(" ☒ " if tag.has_attr("checked") else " ☐ ")
        elif tag.get("type", "text") in _FILLED_IN:
            tidy.text(f" {tag.get('value', '')} ")
    elif name in _LINKS:
        tidy.link(str(tag.get("href", "")) if name == "a" else "")
    elif name not in _INLINE:
        tidy.boundary()
    return False


def _leave(tag: Tag, opened: bool, tidy: Tidy) -> None:
    name = _SAME.get(tag.name, tag.name)
    if opened and name in _MEANT:
        tidy.close_inline(_MEANT[name])
    elif name in _LINKS:
        tidy.link()
    elif opened:
        tidy.close(name)
    elif name not in _INLINE and name not in _MEANT and name not in ("br", "img", "input", "[document]"):
        tidy.boundary()


def _attributes(tag: Tag) -> tuple[tuple[str, str], ...]:
    """Return the attributes that carry meaning and differ from their defaults."""
    names = _NUMBERS.get(tag.name, ())
    found = ((name, str(tag.get(name, "")).strip()[:4]) for name in names)
    return tuple((name, str(int(value))) for name, value in found if value.isdecimal() and value.isascii()
                 and (name == "value" or int(value) != 1) and (name != "colspan" or int(value)))
