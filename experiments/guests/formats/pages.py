"""Build pages of HTML for the parsers of this guest, and open archives and XML that strangers made."""
from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from typing import Any

from ragbed.documents.errors import DocumentError
from ragbed.documents.parsers.html import parse_page
from ragbed.documents.types import Document, FieldValue

_MAX_UNPACKED = 500_000_000  # bytes
_MAX_PARTS = 20_000
_BLANK = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")


def make_page(body: str, title: str = "", fields: Mapping[str, FieldValue] | None = None) -> Document:
    """Parse a page of HTML. `title` is the document's own; by default it is the first heading."""
    parsed = parse_page(f"<title>{escape(title)}</title>{body}" if title.strip() else body)
    return replace(parsed, fields=fields or {})


def tag(name: str, text: str) -> str:
    """Return an element with escaped text; nothing for empty text."""
    return f"<{name}>{escape(text)}</{name}>" if text.strip() else ""


def paragraphs(text: str, label: str = "") -> str:
    """Return text as paragraphs between blank lines; single line ends are kept."""
    parts = [escape(part).replace("\n", "<br>") for part in _BLANK.split(text.strip()) if part.strip()]
    if label:
        parts = [f"{escape(label)}: {parts[0]}", *parts[1:]] if parts else []
    return "".join(f"<p>{part}</p>" for part in parts)


@contextmanager
def open_zip(data: bytes, source: str, kind: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive in memory; nothing is written to disk. Raises DocumentError if it is damaged, or unpacks to more
    than the limit."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > _MAX_UNPACKED or len(entries) > _MAX_PARTS:
                raise DocumentError(source, f"unpacks to more than the limit of {_MAX_UNPACKED:,} bytes or "
                                            f"{_MAX_PARTS:,} files")
            yield archive
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, LookupError, ValueError, NotImplementedError,
            RuntimeError) as error:  # what the library raises on damaged or encrypted archives
        raise DocumentError(source, f"not {kind}, or a damaged one: {' '.join(str(error).split())[:200]}") from error


def read_part(archive: zipfile.ZipFile, name: str, source: str) -> bytes:
    """Return a file of an archive. Raises DocumentError if it is missing."""
    try:
        return archive.read(name)
    except KeyError:
        raise DocumentError(source, f"a damaged file: {name[:200]!r} is missing in it") from None


def parse_xml_tree(data: bytes, source: str) -> Any:
    """Parse XML into a tree of lxml. Entities are not expanded, and nothing is fetched. Raises DocumentError."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True,
                             remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        why = " ".join(str(getattr(error, "msg", error)).split())[:200]
        raise DocumentError(source, f"not valid XML: {why}") from error
    if root is None:
        raise DocumentError(source, "not valid XML: it has no element")
    return root


def local_name(element: Any) -> str:
    """Return an element's name without its namespace; empty for an entity."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def text_of(element: Any) -> str:
    """Return all text inside an element. References to entities stay as they are written."""
    return " ".join("".join(element.itertext()).split())
