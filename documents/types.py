"""Documents, which are parsed files, and chunks, which are indexed, shown and cited."""
from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Literal, Protocol

Format = Literal["html", "plain"]
FORMATS: tuple[Format, ...] = ("html", "plain")
FieldValue = str | int | float | bool | None  # value of a metadata field


def digest(*parts: str) -> str:
    """Hash texts: the first 32 hex digits of the SHA-256 over all parts, each preceded by its length."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(b"%d:%b" % (len(data), data))
    return state.hexdigest()[:32]


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, with U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def normalize(form: Literal["NFC", "NFKC", "NFD"], text: str) -> str:
    """Normalize a text to a Unicode form, with at most 30 combining marks in a row (UAX 15, stream-safe text).

    No writing system uses more, and normalizing a longer run takes quadratic time.
    """
    if not text.isascii():
        mark, run = _marks()
        if mark.search(text[::31]):  # a run of 31 marks includes a character of this sample
            text = run.sub(lambda found: found[0][:30], text)
    return unicodedata.normalize(form, text)


@cache
def _marks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    marks = "".join(character for character in map(chr, range(0x300, 0x1e950))
                    if unicodedata.combining(unicodedata.normalize("NFKD", character)[0]))
    return re.compile(f"[{marks}]"), re.compile(f"[{marks}]{{31,}}")


@dataclass(frozen=True, slots=True)
class Page:
    """Where a page begins in each rendering, in code points. It ends where the next one begins."""

    number: int
    html: int
    plain: int


@dataclass(frozen=True, slots=True)
class Document:
    """A source file or page, parsed into two renderings.

    Attributes:
        id: hash of `source`, or the benchmark's own id.
        source: path relative to what was indexed, with forward slashes.
        title: the document's own title or first heading, or its file name.
        html: sanitised HTML: structure, tables and spans, without scripts, styles and comments.
        plain: the same content as readable text.
        pages: in order, numbered from 1; empty for HTML and text.
        hidden: number of characters left out because a reader cannot see them; 0 if read from an index.
        unread_pages: pages that are pictures with (almost) no text; empty if read from an index.
        ocr_pages: pages whose text was recognised in a picture; empty if read from an index.
        fields: metadata that the file itself states, such as the author, to filter by.
    """

    id: str
    source: str
    title: str
    html: str
    plain: str
    pages: tuple[Page, ...] = ()
    hidden: int = 0
    unread_pages: tuple[int, ...] = ()
    ocr_pages: tuple[int, ...] = ()
    fields: Mapping[str, FieldValue] = field(default_factory=dict, hash=False)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Document:
        """Read a document that was written as JSON, where tuples are lists."""
        return cls(**{**stored, "pages": tuple(Page(**page) for page in stored["pages"]),
                      **{name: tuple(stored.get(name, ())) for name in ("unread_pages", "ocr_pages")}})

    def text(self, format: Format) -> str:
        """Return the rendering in a format. Offsets count its code points."""
        return self.html if format == "html" else self.plain

    def pages_of(self, format: Format, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and last page of the span `[start, end)`; None without pages."""
        if not self.pages:
            return None
        def begin(page: Page) -> int:
            return page.html if format == "html" else page.plain

        first = max(bisect_right(self.pages, start, key=begin) - 1, 0)
        last = max(bisect_right(self.pages, max(end - 1, start), key=begin) - 1, first)
        return self.pages[first].number, self.pages[last].number


new_document = partial(Document, "", "")
"""Make the document that a parser returns. `parse_document` fills in its id and source."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document in one format.

    Attributes:
        content: `prefix` (a repeated table header, or empty) + the document's text[start:end].
        pages: first and last page, counted from 1; None if the source has no pages.
    """

    id: str
    document: str
    format: Format
    start: int
    end: int
    content: str
    prefix: str = ""
    pages: tuple[int, int] | None = None

    @classmethod
    def of(cls, document: Document, format: Format, start: int, end: int, prefix: str = "") -> Chunk:
        """Return the chunk over the span `[start, end)` of a document's rendering."""
        content = prefix + document.text(format)[start:end]
        return cls(chunk_id(document.id, format, start, end, content), document.id, format, start, end,
                   content, prefix, document.pages_of(format, start, end))


def chunk_id(document: str, format: Format, start: int, end: int, content: str) -> str:
    """Hash document id, format, offsets and content. Equal texts in two documents get different ids."""
    return digest(document, format, str(start), str(end), content)


class Chunker(Protocol):
    """Cuts a rendering of a document into chunks, in order of their start."""

    def chunk(self, document: Document, format: Format) -> list[Chunk]: ...
