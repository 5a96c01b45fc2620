"""Document and Chunk: what is parsed, and what is indexed, shown and cited."""
from __future__ import annotations

import hashlib
import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

Format = Literal["html", "plain"]
FORMATS: tuple[Format, ...] = ("html", "plain")


def digest(*parts: str) -> str:
    """Return the first 32 hex digits of the SHA-256 of the parts, each preceded by its length."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(b"%d:%b" % (len(data), data))
    return state.hexdigest()[:32]


def replace_surrogates(text: str) -> str:
    """Return the text with U+FFFD for each half of a surrogate pair that stands alone, which has no form in UTF-8."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def normalize(form: Literal["NFC", "NFKC", "NFD"], text: str) -> str:
    """Return the text in that form of Unicode, with at most 30 marks in a row, as the stream-safe format has them (UAX
    15): no writing has more, and to order a longer run takes the square of its length."""
    if not text.isascii():
        mark, run = _marks()
        if mark.search(text[::31]):  # where every run of 31 has one
            text = run.sub(lambda found: found[0][:30], text)
    return unicodedata.normalize(form, text)


@cache
def _marks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a mark, and of a run of more than 30."""
    marks = "".join(character for character in map(chr, range(0x300, 0x1e950))
                    if unicodedata.combining(unicodedata.normalize("NFKD", character)[0]))
    return re.compile(f"[{marks}]"), re.compile(f"[{marks}]{{31,}}")


@dataclass(frozen=True, slots=True)
class Page:
    """Where one page begins in each rendering, in code points; it ends where the next begins."""

    number: int
    html: int
    plain: int


@dataclass(frozen=True, slots=True)
class Document:
    """One source file or page, parsed into two renderings.

    Attributes:
        id: hash of `source`, or the benchmark's own id.
        source: path relative to what was indexed, with forward slashes.
        title: the document's own title, else its file name.
        html: sanitised HTML: structure, tables and spans; no scripts, styles, comments.
        plain: readable text of the same content.
        pages: in order, numbered from 1; empty for HTML and text.
        hidden: how many characters were left out that no reader can see; 0 where it was read from an index.
    """

    id: str
    source: str
    title: str
    html: str
    plain: str
    pages: tuple[Page, ...] = ()
    hidden: int = 0

    def text(self, format: Format) -> str:
        """Return the rendering in which offsets of that format count, in code points."""
        return self.html if format == "html" else self.plain

    def pages_of(self, format: Format, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and last page that `[start, end)` touches; None without pages."""
        if not self.pages:
            return None
        def begin(page: Page) -> int:
            return page.html if format == "html" else page.plain

        first = max(bisect_right(self.pages, start, key=begin) - 1, 0)
        last = max(bisect_right(self.pages, max(end - 1, start), key=begin) - 1, first)
        return self.pages[first].number, self.pages[last].number


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of a document in one format.

    Attributes:
        content: `prefix` (a repeated table header, or nothing) + the document's text[start:end].
        pages: first and last page, counted from 1; None where the source has none.
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
        """Return the chunk over `[start, end)` of the document's rendering in that format."""
        content = prefix + document.text(format)[start:end]
        return cls(chunk_id(document.id, format, start, end, content), document.id, format, start, end,
                   content, prefix, document.pages_of(format, start, end))


def chunk_id(document: str, format: Format, start: int, end: int, content: str) -> str:
    """Hash of document id, format, offsets and content: equal text in two documents is two chunks."""
    return digest(document, format, str(start), str(end), content)


class Chunker(Protocol):
    """Cuts one rendering of a document into chunks, in order of their start."""

    def chunk(self, document: Document, format: Format) -> list[Chunk]: ...
