"""Bytes to text, whatever the file says about its character set."""
from __future__ import annotations

import codecs
import re
from collections.abc import Callable

from documents.errors import DocumentError

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
          (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
# What browsers read the label as (WHATWG Encoding Standard, section 4.2): the supersets that pages really use.
_MEANT = {"euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030", "iso8859-1": "cp1252", "ascii": "cp1252",
          "shift_jis": "cp932", "iso8859-9": "cp1254"}
# Python knows more names, and some of them (`undefined`, `unicode_escape`, `zlib`) are no character sets of text.
_SETS = frozenset({"utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp866", "koi8-r", "koi8-u", "mac-roman",
                   "mac-cyrillic", "tis-620", "gb18030", "cp949", "cp932", "euc_jp", "big5", "big5hkscs", "johab",
                   "iso2022_jp", "iso2022_kr", "cp874",
                   *(f"cp{page}" for page in range(1250, 1259)), *(f"iso8859-{part}" for part in range(2, 17))})
_WIDE = frozenset({"cp949", "gb18030", "cp932", "euc_jp", "big5", "big5hkscs", "johab", "iso2022_jp", "iso2022_kr"})
_MAGIC = {b"%PDF-": "a PDF", b"PK\x03\x04": "a ZIP or Office file", b"\x89PNG": "a PNG image",
          b"\xff\xd8\xff": "a JPEG image",
          b"GIF8": "a GIF image", b"\x1f\x8b": "a gzip archive", b"\x7fELF": "a program",
          b"\xd0\xcf\x11\xe0": "an old Office file"}
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_SAMPLE = 100_000
_KS_X_1001 = 2  # bytes; Python's codec spells the other syllables out in eight


def decode(data: bytes, source: str, declared: str | None = None) -> str:
    """The text of a file.

    In order: a byte order mark; UTF-8 where it fits, since other text hardly ever does; the declared set, if it
    is a multi-byte one that fits; UTF-8 with a few damaged bytes; Korean or Japanese where the bytes are
    plainly that; the declared set; and what charset-normalizer finds most likely.

    Raises:
        DocumentError: the data is binary.
    """
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            raise DocumentError(source, f"is {kind}, not text")
    text = _marked(data) or _guess(data, _meant(declared))
    if text is None or _binary(text):
        raise DocumentError(source, "binary data, not text")
    return text


def _marked(data: bytes) -> str | None:
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, "replace")
    sample = data[:1_000]
    for name, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
        if len(zeros) > 4 and zeros.count(0) > 0.7 * len(zeros):
            return data.decode(name, "replace")
    return None


def _guess(data: bytes, declared: str | None) -> str | None:
    if declared in ("iso2022_jp", "iso2022_kr") and b"\x1b" in data:
        return data.decode(declared, "replace")
    strict = _strictly(data, "utf-8")
    if strict is None and declared in _WIDE:
        strict = _strictly(data, declared)
    if strict is not None:
        return strict
    return _damaged(data) or _eastern(data) or _strictly(data, declared) or _likely(data)


def _meant(declared: str | None) -> str | None:
    try:
        name = codecs.lookup(declared or "").name
    except (LookupError, ValueError):
        return None
    meant = _MEANT.get(name, name)
    return meant if meant in _SETS else None


def _strictly(data: bytes, name: str | None) -> str | None:
    if name is None:
        return None
    try:
        return data.decode(name)
    except (UnicodeError, LookupError):
        return None


def _damaged(data: bytes) -> str | None:
    """UTF-8 with fewer than one damaged character in twenty, such as a cut last one."""
    text = data.decode("utf-8", "replace")
    foreign = sum(character > "\x7f" for character in text)
    return text if text.count("\ufffd") * 20 < foreign else None


def _eastern(data: bytes) -> str | None:
    """Korean or Japanese, where the bytes are mostly Hangul of KS X 1001, or kana, in their own set.

    Western text in Latin-1 rarely decodes as CP949 at all, and where it does its syllables are the rare ones
    outside KS X 1001; Japanese becomes jamo, Chinese half Hanja.
    """
    korean = data.decode("cp949", "replace")
    if _share(korean, _hangul) > 0.7:
        return korean
    for name in ("cp932", "euc_jp"):
        text = data.decode(name, "replace")
        if _share(text, _kana) > 0.3:
            return text
    return None


def _share(text: str, wanted: Callable[[str], bool]) -> float:
    """How much of what is not ASCII is wanted."""
    foreign = [character for character in text[:_SAMPLE] if character > "\x7f"]
    return sum(map(wanted, foreign)) / len(foreign) if foreign else 0.0


def _hangul(character: str) -> bool:
    return "가" <= character <= "힣" and len(character.encode("euc_kr", "ignore")) == _KS_X_1001


def _kana(character: str) -> bool:
    return "\u3041" <= character <= "\u30fe"


def _likely(data: bytes) -> str | None:
    """The best guess; among Western sets a guess is no better than Windows-1252, which most files are."""
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE]).best()
    if best is None:
        return None
    guess = data.decode(best.encoding, "replace")
    latin = sum(character < "\u0250" for character in guess[:_SAMPLE])
    western = _strictly(data, "cp1252")
    return western if western is not None and latin > 0.9 * len(guess[:_SAMPLE]) else guess


def _binary(text: str) -> bool:
    sample = text[:_SAMPLE]
    return len(_CONTROL.findall(sample)) > 0.02 * len(sample) + 2
