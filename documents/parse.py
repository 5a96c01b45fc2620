"""Bytes to a document, in this process: picks the parser by the suffix of the name."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePosixPath

from documents.errors import DocumentError
from documents.sources import SUFFIXES, unknown_type
from documents.types import Document, Page, digest


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser returns.

    Attributes:
        title: the document's own title or first heading; empty if there is neither.
    """

    title: str
    html: str
    plain: str
    pages: tuple[Page, ...] = ()


def parse_document(data: bytes, source: str, id: str | None = None) -> Document:
    """The document that `data` holds.

    Args:
        source: its relative path or name; the suffix picks the parser.
        id: the benchmark's own id; the hash of `source`, if None.

    Raises:
        DocumentError: it cannot be parsed, is of another type than its suffix says, or holds no text.
    """
    parsed = prepare(source)(data, source)
    if not parsed.plain.strip():
        raise DocumentError(source, "holds no text")
    title = parsed.title or PurePosixPath(source).name
    return Document(id or digest(source), source, title, parsed.html, parsed.plain, parsed.pages)


def prepare(source: str) -> Callable[[bytes, str], Parsed]:
    """The parser for that name, imported.

    Raises:
        DocumentError: the suffix is unknown.
    """
    problem = unknown_type(source)
    if problem is not None:
        raise DocumentError(source, problem)
    module = import_module(f"documents.parsers.{SUFFIXES[PurePosixPath(source).suffix.lower()]}")
    parser: Callable[[bytes, str], Parsed] = module.parse
    return parser
