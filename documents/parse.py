"""Parse a file into a document with the parser for its suffix."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import PurePosixPath

from ragbed import guests
from ragbed.documents.errors import DocumentError
from ragbed.documents.parsers.clean_html import normalize_text
from ragbed.documents.sources import parsers_by_suffix, suffix_of, unknown_type
from ragbed.documents.types import Document, FieldValue, digest

Parser = Callable[[bytes, str], Document]


def parse_document(data: bytes, source: str, id: str | None = None, ocr: bool = False) -> Document:
    """Parse a file into a document.

    Args:
        source: relative path or name; its suffix picks the parser.
        id: the benchmark's own id; by default a hash of `source`.
        ocr: whether to recognise the text of pages that are pictures.

    Raises:
        DocumentError: the file cannot be parsed, does not have the type of its suffix, or has no text.
        MissingExtra: its parser needs a package that is not installed.
    """
    document = find_parser(source, ocr)(data, source)
    if not document.plain.strip():
        raise DocumentError(source, "holds no text")
    return replace(document, id=id or digest(source), source=source, title=document.title or PurePosixPath(source).name,
                   fields=dict(_clean_fields(document.fields)))


INDEX_FIELDS = ("document", "source", "title", "format", "page")  # fields that every chunk of an index has
_MAX_FIELD = 1_000  # characters of a field's value
_MAX_FIELDS = 100


def _clean_fields(fields: Mapping[str, FieldValue]) -> Iterator[tuple[str, FieldValue]]:
    """Yield a document's own fields with names and values that filters can use. A field named like one of the index,
    such as `source`, becomes `own_source`."""
    for name, value in islice(fields.items(), _MAX_FIELDS):
        named = re.sub(r'["<>=!~]', "", " ".join(normalize_text(name).split()))[:_MAX_FIELD]
        if isinstance(value, str):
            value = " ".join(normalize_text(value).split())[:_MAX_FIELD] or None
        if named and value is not None and not (isinstance(value, float) and not math.isfinite(value)):
            yield (f"own_{named}" if named in INDEX_FIELDS else named), value


def find_parser(source: str, ocr: bool = False) -> Parser:
    """Import the parser for the suffix of a file name; with `ocr`, one that recognises text in pictures. Raises
    DocumentError if there is none."""
    problem = unknown_type(source)
    if problem is not None:
        raise DocumentError(source, problem)
    suffix = suffix_of(source).lower()
    kind = guests.entries("ocr")[suffix] if ocr else parsers_by_suffix()[suffix]
    if ":" in kind:
        return _guest_parser(kind)
    module = import_module(f"ragbed.documents.parsers.{'text' if kind == 'markdown' else kind}")
    parser: Parser = getattr(module, f"parse_{kind}")
    return parser


def _guest_parser(target: str) -> Parser:
    """Wrap a guest's parser, which returns a page of HTML or a `Document`."""
    from ragbed.documents.parsers.html import parse_page
    from ragbed.documents.user_code import UserCode

    parser = guests.load(target)

    def parse(data: bytes, source: str) -> Document:
        with UserCode(lambda line: DocumentError(source, f"{target}: {line}")):
            made = parser(data, source)
        if not isinstance(made, str | Document):
            raise DocumentError(source, f"{target} returned {type(made).__name__}; return HTML as text, or a Document")
        return parse_page(made) if isinstance(made, str) else made

    return parse
