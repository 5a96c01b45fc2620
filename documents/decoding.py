"""Decode text files of any encoding."""
from __future__ import annotations

import codecs
import re

from ragbed.documents.errors import DocumentError

# Browsers read these labels as the larger encodings that pages really use (WHATWG Encoding Standard, section 4.2).
_SUPERSETS = {"euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030", "iso8859-1": "cp1252", "ascii": "cp1252",
          "shift_jis": "cp932", "iso8859-9": "cp1254"}
_UNUSABLE = frozenset({"undefined", "unicode-escape", "raw-unicode-escape", "idna", "punycode", "utf-7"})
_MULTI_BYTE = frozenset({"cp949", "gb18030", "cp932", "euc_jp", "big5", "big5hkscs", "johab", "iso2022_jp",
                          "iso2022_kr"})
_MAGIC = {b"%PDF-": "a PDF", b"PK\x03\x04": "a ZIP or Office file", b"\x89PNG": "a PNG image",
          b"\xff\xd8\xff": "a JPEG image", b"GIF8": "a GIF image", b"\x1f\x8b": "a gzip archive",
          b"\x7fELF": "a program", b"\xd0\xcf\x11\xe0": "an old Office file"}
SEPARATOR_LINE = re.compile(r"""\ufeff?"?sep=([^\r\n"])"?(?=\r?\n)""", re.IGNORECASE)
"""A first line that tells spreadsheets the delimiter of a CSV file."""

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_SAMPLE = 100_000  # characters or bytes to check
_KS_X_1001 = 2  # bytes of a syllable of this standard in EUC-KR; Python's codec writes others in eight bytes


def decode(data: bytes, source: str, declared: str | None = None) -> str:
    """Decode a text file. Raises DocumentError if the data is binary.

    Tries these in order: a byte order mark, UTF-8, a declared multi-byte encoding, UTF-8 with a few damaged bytes,
    Korean and Japanese encodings, the declared encoding, and the best guess of charset-normalizer.
    """
    for magic, kind in _MAGIC.items():
        if data.startswith(magic):
            raise DocumentError(source, f"is {kind}, not text")
    text = _decode_marked(data) or _guess(data, declared)
    if text is None or len(_CONTROL.findall(text[:_SAMPLE])) > 0.02 * len(text[:_SAMPLE]) + 2:
        raise DocumentError(source, "binary data, not text")
    return text


def _decode_marked(data: bytes) -> str | None:
    """Decode text with a byte order mark, or UTF-16 without one, recognized by its many zero bytes."""
    from bs4.dammit import EncodingDetector

    rest, mark = EncodingDetector.strip_byte_order_mark(data)
    sample = data[:1_000]
    for name, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
        if mark is None and len(zeros) > 4 and zeros.count(0) > 0.7 * len(zeros):
            mark = name
    return rest.decode(mark, "replace") if mark else None


def _guess(data: bytes, declared: str | None) -> str | None:
    named = _codec_name(declared)
    if named in ("iso2022_jp", "iso2022_kr") and b"\x1b" in data:
        return data.decode(named, "replace")
    strict = _decode_strictly(data, "utf-8")
    if strict is None and named in _MULTI_BYTE:
        strict = _decode_strictly(data, named)
    if strict is not None:
        return strict
    damaged = data.decode("utf-8", "replace")
    if damaged.count("\ufffd") * 20 < sum(character > "\x7f" for character in damaged):
        return damaged
    return _decode_eastern(data) or _decode_strictly(data, named) or _guess_statistically(data)


def _codec_name(declared: str | None) -> str | None:
    try:
        name = codecs.lookup(declared or "").name
    except (LookupError, ValueError):
        return None
    return None if name.replace("_", "-") in _UNUSABLE else _SUPERSETS.get(name, name)


def _decode_strictly(data: bytes, name: str | None) -> str | None:
    try:
        return data.decode(name) if name else None
    except (UnicodeError, LookupError):
        return None


def _decode_eastern(data: bytes) -> str | None:
    """Decode as Korean if most characters become Hangul of KS X 1001, or as Japanese if many become kana.

    Other text does not pass as Korean in CP949: Latin-1 text gives rare syllables outside KS X 1001, Japanese gives
    jamo, and half of Chinese gives Hanja.
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


def _guess_statistically(data: bytes) -> str | None:
    """Decode with the most likely encoding. Western text is read as Windows-1252, since most files use it, and guesses
    between Western encodings are unreliable."""
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE]).best()
    if best is None:
        return None
    guess = data.decode(best.encoding, "replace")
    latin = sum(character < "\u0250" for character in guess[:_SAMPLE])
    western = _decode_strictly(data, "cp1252") if latin > 0.9 * len(guess[:_SAMPLE]) else None
    return western or guess
