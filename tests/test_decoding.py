"""Bytes to readable text, whatever the file claims."""
import pytest
from each_case import each

from ragbed.documents import DocumentError, parse_document
from ragbed.documents.decoding import decode

KOREAN = "서울은 대한민국의 수도이다. 인구는 약 950만 명이며 한강이 흐른다."
JAPANESE = "東京は日本の首都です。人口は約千四百万人です。"
FRENCH = "Café déjà vu, naïve façade — “quoted” œuvre"


@each(("text", "encoding", "declared"), [
    (KOREAN, "utf-8", None), (KOREAN, "utf-8", "euc-kr"), (KOREAN, "utf-8", "iso-8859-1"),
    (KOREAN, "cp949", None), (KOREAN, "cp949", "euc-kr"), (KOREAN, "euc_kr", "utf-8"),
    (KOREAN, "cp949", "iso-8859-1"), (KOREAN, "utf-16", None), (KOREAN, "utf-8-sig", "euc-kr"),
    ("plain text in UTF-16 without a mark", "utf-16-le", None),
    (JAPANESE, "shift_jis", "iso-8859-1"), (JAPANESE, "euc_jp", None), (JAPANESE, "iso2022_jp", "iso-2022-jp"),
    (FRENCH, "cp1252", None), (FRENCH, "cp1252", "utf-8"), (FRENCH, "cp1252", "iso-8859-1"),
    (FRENCH, "utf-8", "windows-1252"), ("plain", "ascii", "no-such-charset"), ("", "ascii", None)])
def test_text_is_readable_whatever_is_declared(text: str, encoding: str, declared: str | None) -> None:
    assert decode(text.encode(encoding), "x.html", declared) == text


@each("declared", ["undefined", "utf\0-8", "unicode_escape", "raw_unicode_escape",
                   "idna", "punycode", "rot13", "base64", "zlib", "hex", "\ud800", " ", "utf-7"])
def test_a_declared_set_that_is_none_is_ignored(declared: str) -> None:
    assert decode(FRENCH.encode("cp1252"), "x.html", declared) == FRENCH


def test_a_page_that_declares_no_character_set_of_text_is_read() -> None:
    page = f'<meta charset="undefined"><p>{FRENCH}'.encode("cp1252")
    assert parse_document(page, "a.html").plain == FRENCH + "\n\n"


def test_a_few_damaged_bytes_do_not_change_the_reading() -> None:
    data = (KOREAN * 3).encode()
    assert decode(data[:-2], "x.txt", "iso-8859-1").startswith(KOREAN)


@pytest.mark.parametrize(("data", "reason"), [
    (bytes(range(256)) * 20, "binary data, not text"), (b"%PDF-1.7 ...", "is a PDF, not text"),
    (b"PK\x03\x04abc", "is a ZIP or Office file, not text"), (b"\x80\xff\x81\xfe" * 500, "binary data, not text")])
def test_binary_data_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        decode(data, "x.html")
    assert str(caught.value) == f"x.html: {reason}"
