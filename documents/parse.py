"""Bytes to text, whatever the file says of its characters, and to a document by the parser of its suffix."""
from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePosixPath

from ragbed.documents.errors import DocumentError
from ragbed.documents.sources import SUFFIXES, unknown_type
from ragbed.documents.types import Document, Page, digest


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed document: its own title or first heading, empty if there is neither, both renderings and its pages."""

    title: str
    html: str
    plain: str
    pages: tuple[Page, ...] = ()
    hidden: int = 0


def parse_document(data: bytes, source: str, id: str | None = None) -> Document:
    """Parse a document; the suffix of its source, a relative path or name, picks the parser. Its id is the benchmark's
    own, else the hash of `source`. Raises DocumentError where it cannot be parsed, is of another type than its suffix
    says, or holds no text."""
    parsed = prepare(source)(data, source)
    if not parsed.plain.strip():
        raise DocumentError(source, "holds no text")
    title = parsed.title or PurePosixPath(source).name
    return Document(id or digest(source), source, title, parsed.html, parsed.plain, parsed.pages, parsed.hidden)


_MODULES = {"markdown": "text", "csv": "spreadsheets", "xlsx": "spreadsheets", "docx": "office",
            "pptx": "office"}


def prepare(source: str) -> Callable[[bytes, str], Parsed]:
    """Import the parser for that name; DocumentError where the suffix is unknown."""
    problem = unknown_type(source)
    if problem is not None:
        raise DocumentError(source, problem)
    kind = SUFFIXES[PurePosixPath(source).suffix.lower()]
    module = import_module(f"ragbed.documents.parsers.{_MODULES.get(kind, kind)}")
    parser: Callable[[bytes, str], Parsed] = getattr(module, f"parse_{kind}")
    return parser


# What browsers read the label as (WHATWG Encoding Standard, section 4.2): the supersets that pages really use.
_MEANT = {"euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030", "iso8859-1": "cp1252", "ascii": "cp1252",
          "shift_jis": "cp932", "iso8859-9": "cp1254"}
_NO_SETS = frozenset({"undefined", "unicode-escape", "raw-unicode-escape", "idna", "punycode", "utf-7"})
_WIDE = frozenset({"cp949", "gb18030", "cp932", "euc_jp", "big5", "big5hkscs", "johab", "iso2022_jp", "iso2022_kr"})
_MAGIC = {b"%PDF-": "a PDF", b"PK\x03\x04": "a ZIP or Office file", b"\x89PNG": "a PNG image",
          b"\xff\xd8\xff": "a JPEG image", b"GIF8": "a GIF image", b"\x1f\x8b": "a gzip archive",
          b"\x7fELF": "a program", b"\xd0\xcf\x11\xe0": "an old Office file"}
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_SAMPLE = 100_000
_KS_X_1001 = 2  # bytes; Python's codec spells the other syllables out in eight


def decode(data: bytes, source: str, declared: str | None = None) -> str:
    """Decode the text of a file. In order: a byte order mark; UTF-8 where it fits, since other text hardly ever does;
    the declared set, if it is a multi-byte one that fits; UTF-8 with a few damaged bytes; Korean or Japanese where the
    bytes are plainly that; the declared set; and what charset-normalizer finds most likely. Raises DocumentError where
    the data is binary."""
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            raise DocumentError(source, f"is {kind}, not text")
    text = _marked(data) or _guessed(data, declared)
    if text is None or len(_CONTROL.findall(text[:_SAMPLE])) > 0.02 * len(text[:_SAMPLE]) + 2:
        raise DocumentError(source, "binary data, not text")
    return text


def _marked(data: bytes) -> str | None:
    """Text with a byte order mark, or in UTF-16 without one, whose Latin letters have a zero in every other byte."""
    from bs4.dammit import EncodingDetector

    rest, mark = EncodingDetector.strip_byte_order_mark(data)
    sample = data[:1_000]
    for name, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
        if mark is None and len(zeros) > 4 and zeros.count(0) > 0.7 * len(zeros):
            mark = name
    return rest.decode(mark, "replace") if mark else None


def _guessed(data: bytes, declared: str | None) -> str | None:
    named = _set_of(declared)
    if named in ("iso2022_jp", "iso2022_kr") and b"\x1b" in data:
        return data.decode(named, "replace")
    strict = _strictly(data, "utf-8")
    if strict is None and named in _WIDE:
        strict = _strictly(data, named)
    if strict is not None:
        return strict
    damaged = data.decode("utf-8", "replace")
    if damaged.count("\ufffd") * 20 < sum(character > "\x7f" for character in damaged):
        return damaged
    return _eastern(data) or _strictly(data, named) or _likely(data)


def _set_of(declared: str | None) -> str | None:
    try:
        name = codecs.lookup(declared or "").name
    except (LookupError, ValueError):
        return None
    return None if name.replace("_", "-") in _NO_SETS else _MEANT.get(name, name)


def _strictly(data: bytes, name: str | None) -> str | None:
    try:
        return data.decode(name) if name else None
    except (UnicodeError, LookupError):
        return None


def _eastern(data: bytes) -> str | None:
    """Korean or Japanese, where the bytes are mostly Hangul of KS X 1001, or kana, in their own set.

    Western text in Latin-1 rarely decodes as CP949 at all, and where it does its syllables are the rare ones
    outside KS X 1001; Japanese becomes jamo, Chinese half Hanja.
    """
    def hangul(character: str) -> bool:
        return "가" <= character <= "힣" and len(character.encode("euc_kr", "ignore")) == _KS_X_1001

    def kana(character: str) -> bool:
        return "\u3041" <= character <= "\u30fe"

    for name, wanted, least in (("cp949", hangul, 0.7), ("cp932", kana, 0.3), ("euc_jp", kana, 0.3)):
        text = data.decode(name, "replace")
        foreign = [character for character in text[:_SAMPLE] if character > "\x7f"]
        if sum(map(wanted, foreign)) > least * len(foreign):
            return text
    return None


def _likely(data: bytes) -> str | None:
    """The best guess; among Western sets a guess is no better than Windows-1252, which most files are."""
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE]).best()
    if best is None:
        return None
    guess = data.decode(best.encoding, "replace")
    latin = sum(character < "\u0250" for character in guess[:_SAMPLE])
    western = _strictly(data, "cp1252") if latin > 0.9 * len(guess[:_SAMPLE]) else None
    return western or guess
