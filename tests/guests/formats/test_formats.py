"""More file types: every visible word is in the text, and what the file states about itself can be filtered on."""
import io
import json
import struct
import zipfile

import pytest

from ragbed.documents import DocumentError, MissingExtra, parse_document
from ragbed.documents.worker import answer
from ragbed.experiments.guests.formats import pages

EML = b"""From: =?utf-8?q?Ann_M=C3=BCller?= <ann@esk.example>
To: ben@esk.example
Date: Fri, 31 May 2024 09:30:00 +0200
Subject: =?utf-8?b?SGFyYm91ciBmZWVz?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: multipart/alternative; boundary="c"

--c
Content-Type: text/plain; charset=utf-8

The fee is 500.
--c
Content-Type: text/html; charset=utf-8

<html><body><p>The <b>fee</b> is 500.</p><script>x()</script></body></html>
--c--
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="../../etc/tariff 2024.pdf"
Content-Transfer-Encoding: base64

JVBERi0xLjQ=
--b
Content-Type: message/rfc822

Subject: Before
From: cleo@esk.example

The old fee was 400.
--b--
"""


def archive(**parts):
    """A ZIP file; `__` in a name stands for a slash, and `_dot_` for a dot."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in parts.items():
            made.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return buffer.getvalue()


def test_an_email_is_read_and_its_attachments_are_named():
    mail = parse_document(EML, "mail.eml")
    assert mail.title == "Harbour fees"
    assert mail.plain == (
        "# Harbour fees\n\nFrom: Ann Müller <ann@esk.example>\nTo: ben@esk.example\n"
        "Date: Fri, 31 May 2024 09:30:00 +0200\n\nThe fee is 500.\n\n"
        "> ## Before\n>\n> From: cleo@esk.example\n>\n> The old fee was 400.\n\n"
        "Attachments:\n\n- tariff 2024.pdf (application/pdf, 8 bytes)\n\n")
    assert mail.fields == {
        "subject": "Harbour fees", "from": "Ann Müller <ann@esk.example>", "to": "ben@esk.example",
        "date": "2024-05-31T09:30:00+02:00", "attachments": "tariff 2024.pdf (application/pdf, 8 bytes)"}


@pytest.mark.parametrize(("data", "reason"), [
    (b"no header", "not an e-mail: it has no header lines"),
    (b"".join(b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(40)) + b"\nend",
     "nested more than 20 deep")])
def test_an_email_that_cannot_be_read_is_named(data, reason):
    with pytest.raises(DocumentError, match=reason):
        parse_document(data, "mail.eml")


CONTAINER = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
PACKAGE = """<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>Reefs of Esk</dc:title>
<dc:creator>Ann Lee</dc:creator><dc:date>2021-03-01</dc:date></metadata><manifest>
<item id="b" href="b%20two.xhtml" media-type="application/xhtml+xml"/>
<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>
<spine><itemref idref="a"/><itemref idref="b"/></spine></package>"""


def book(**more):
    return archive(**{"META-INF__container_dot_xml": CONTAINER, "OPS__book_dot_opf": PACKAGE,
                      "OPS__a_dot_xhtml": "<html><body><h1>One</h1><p>Corals grow.</p></body></html>",
                      "OPS__b two_dot_xhtml": "<html><body><h1>Two</h1><p>Fish come.</p></body></html>", **more})


def test_a_book_is_read_in_the_order_of_its_spine():
    read = parse_document(book(), "reefs.epub")
    assert (read.title, read.plain) == ("Reefs of Esk", "# One\n\nCorals grow.\n\n# Two\n\nFish come.\n\n")
    assert read.fields == {"author": "Ann Lee", "date": "2021-03-01"}


def test_a_protected_or_damaged_book_is_named():
    locked = '<encryption><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></encryption>'
    fonts = locked.replace("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "http://www.idpf.org/2008/embedding")
    with pytest.raises(DocumentError, match="protected by DRM: its text is encrypted"):
        parse_document(book(**{"META-INF__encryption_dot_xml": locked}), "a.epub")
    assert parse_document(book(**{"META-INF__encryption_dot_xml": fonts}), "a.epub").title == "Reefs of Esk"
    with pytest.raises(DocumentError, match=r"'OPS/a.xhtml' is missing in it"):
        parse_document(archive(**{"META-INF__container_dot_xml": CONTAINER, "OPS__book_dot_opf": PACKAGE}), "a.epub")


def odf(body, **more):
    names = " ".join(f'xmlns:{one}="urn:{one}"' for one in ("office", "text", "table", "style", "xlink", "draw", "svg"))
    styles = ('<office:automatic-styles><style:style style:name="H"><style:text-properties text:display="none"/>'
              '</style:style></office:automatic-styles>')
    return archive(content_dot_xml=f"<office:document-content {names}>{styles}<office:body>{body}</office:body>"
                                   "</office:document-content>", **more)


def test_an_open_document_text_is_read():
    meta = '<m xmlns:dc="urn:dc"><dc:title>Tariff</dc:title><dc:creator>Ann Lee</dc:creator></m>'
    read = parse_document(odf(
        '<office:text><text:h text:outline-level="2">Fees</text:h><text:p>The fee<text:s/>is '
        '<text:span>500</text:span><text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>In '
        'Esk.</text:p></text:note-body></text:note> now.</text:p><text:list><text:list-item><text:p>First'
        '</text:p></text:list-item></text:list><text:p text:style-name="H">Secret</text:p>'
        '<table:table><table:table-row><table:table-cell><text:p>Port</text:p></table:table-cell><table:table-cell>'
        '<text:p>Fee</text:p></table:table-cell></table:table-row></table:table></office:text>',
        meta_dot_xml=meta), "tariff.odt")
    assert (read.title, read.fields, read.hidden) == ("Tariff", {"author": "Ann Lee"}, 6)
    assert read.plain == ("## Fees\n\nThe fee is 500^1 [In Esk.] now.\n\n- First\n\n|  |  |\n| --- | --- |\n"
                          "| Port | Fee |\n\n")


def test_an_open_document_sheet_is_read_without_its_million_empty_rows():
    row = ('<table:table-row><table:table-cell><text:p>{}</text:p></table:table-cell><table:table-cell '
           'table:number-columns-repeated="1022"/><table:table-cell><text:p>{}</text:p></table:table-cell>'
           '</table:table-row>')
    empty = ('<table:table-row table:number-rows-repeated="1048574"><table:table-cell '
             'table:number-columns-repeated="1024"/></table:table-row>')
    read = parse_document(odf('<office:spreadsheet><table:table table:name="Ports">' + row.format("Esk", 5) + empty
                              + row.format("Ayr", 7) + "</table:table></office:spreadsheet>"), "ports.ods")
    assert read.plain == "## Ports\n\n|  |  |\n| --- | --- |\n| Esk | 5 |\n| Ayr | 7 |\n\n"


def test_json_is_read_by_path_and_a_list_of_records_by_section():
    data = {"title": "Esk", "port": {"fee": 500, "open": True, "tags": ["a", "b"]}, "ships": [{"name": "Ada"}]}
    read = parse_document(json.dumps(data).encode(), "esk.json")
    assert read.plain == ("title: Esk\n\nport.fee: 500\n\nport.open: true\n\nport.tags: a, b\n\n"
                          "ships[1].name: Ada\n\n")
    assert (read.title, read.fields["port.fee"]) == ("Esk", 500)
    listed = parse_document(b'[{"id": 1, "fee": 5}, {"id": 2, "fee": null}]', "fees.json")
    numbers = parse_document(b'{"fee": 1.10, "mass": 1E-7, "rest": [2.50, 3], "n": 12345678901234567890}', "n.json")
    assert numbers.plain == "fee: 1.10\n\nmass: 1E-7\n\nrest: 2.50, 3\n\nn: 12345678901234567890\n\n"
    assert numbers.fields["fee"] == 1.1
    assert (listed.title, listed.plain) == ("fees.json", "## 1\n\nid: 1\n\nfee: 5\n\n## 2\n\nid: 2\n\n")


def test_xml_is_read_by_element_and_its_entities_stay_closed():
    read = parse_document(b'<?xml version="1.0" encoding="UTF-8"?><doc year="2020"><title>Reefs</title><p>Corals '
                          b'<i>grow</i>.</p><fee unit="EUR">500</fee></doc>', "reefs.xml")
    assert read.title == "Reefs"
    assert read.plain == ("doc@year: 2020\n\n## Reefs\n\nCorals grow.\n\nfee@unit: EUR\n\nfee: 500\n\n")
    bomb = b'<!DOCTYPE d [<!ENTITY a "xxxxxxxxxx">%s]><d>&z9; words</d>' % b"".join(
        b'<!ENTITY z%d "%s">' % (n, b"&z%d;" % (n - 1) * 10 if n else b"&a;") for n in range(10))
    with pytest.raises(DocumentError, match="not valid XML: Maximum entity amplification factor exceeded"):
        parse_document(bomb, "bomb.xml")
    outside = b'<!DOCTYPE d [<!ENTITY f SYSTEM "file:///etc/passwd">]><d>see &f;</d>'
    assert "root" not in parse_document(outside, "out.xml").plain


def test_rich_text_keeps_tables_and_footnotes():
    data = (rb"{\rtf1\ansi\ansicpg1252{\info{\title Fees}{\author Ann}}The fee \'e9 is \u8364? 500{\footnote In Esk.}"
            rb"\par {\v secret}\trowd a\cell b\cell\row c\cell d\cell\row End.}")
    read = parse_document(data, "fees.rtf")
    assert (read.title, read.fields, read.hidden) == ("Fees", {"author": "Ann"}, 6)
    for shown in ("fee é is € 500", "In Esk.", "| a | b |", "| c | d |", "End."):
        assert shown in read.plain
    assert "secret" not in read.plain


def test_restructured_text_has_headings_and_fields():
    read = parse_document(b"=====\nReefs\n=====\n\n:Author: Ann Lee\n\nGrowth\n------\n\nCorals *grow*.\n\n"
                          b".. note:: See below.\n", "reefs.rst")
    assert (read.title, read.fields) == ("Reefs", {"author": "Ann Lee"})
    assert read.plain == "# Reefs\n\n:Author: Ann Lee\n\n## Growth\n\nCorals *grow*.\n\n.. note:: See below.\n\n"


def test_code_and_logs_are_kept_as_they_are():
    code = "def fee():\n\tif a < b:\n\n\t\treturn 500\n"
    read = parse_document(code.encode(), "fee.py")
    assert read.plain == "def fee():\n    if a < b:\n\n        return 500\n"
    assert read.html == "<pre>def fee():\n    if a &lt; b:</pre>\n<pre>        return 500</pre>\n"
    assert parse_document(b"\x1b[1;31mERROR\x1b[0m quay\n", "a.log").plain == "ERROR quay\n"
    assert parse_document(b"2024-05-31 ERROR quay\n", "a.log").plain == "2024-05-31 ERROR quay\n"


def test_a_notebook_is_read_cell_by_cell():
    cells = [{"cell_type": "markdown", "source": ["# Fees\n", "We add them."]},
             {"cell_type": "code", "source": "sum(fees)", "outputs": [
                 {"data": {"text/plain": ["500"]}}, {"data": {"text/html": ["<b>five</b>"]}},
                 {"ename": "KeyError", "evalue": "fee", "traceback": []}]}]
    read = parse_document(json.dumps({"nbformat": 4, "cells": cells}).encode(), "fees.ipynb")
    assert read.plain == ("# Fees\n\nWe add them.\n\n```\nsum(fees)\n```\n\n```\n500\n```\n\n"
                          "```\nKeyError: fee\n```\n\nfive\n\n")


def test_an_archive_that_unpacks_without_bound_is_refused(monkeypatch):
    monkeypatch.setattr(pages, "_MAX_UNPACKED", 5_000_000)
    with (zipfile.ZipFile(bomb := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as made,
          made.open("content.xml", "w") as part):
        for _ in range(6):
            part.write(bytes(1_000_000))
    for name in ("a.odt", "a.epub"):
        with pytest.raises(DocumentError, match="unpacks to more than the limit of 5,000,000 bytes"):
            parse_document(bomb.getvalue(), name)


@pytest.mark.parametrize(("name", "data", "reason"), [
    ("a.epub", b"PK\x03\x04 broken", "not an EPUB file, or a damaged one"),
    ("a.odt", b"hello", "not an OpenDocument file, or a damaged one"),
    ("a.odt", archive(other="x"), "'content.xml' is missing in it"),
    ("a.ods", archive(**{"content_dot_xml": "<a/>", "META-INF__manifest_dot_xml": "<encryption-data/>"}), "encrypted"),
    ("a.xml", b"<a><b></a>", "not valid XML"), ("a.xml", b"<a>" * 300 + b"x" + b"</a>" * 300, "nested too deeply"),
    ("a.json", b"[" * 100_000, "nested too deeply"), ("a.json", b'{"a": ', "not valid JSON"),
    ("a.rtf", b"hello", "not RTF"), ("a.msg", b"hello", "not an Outlook message"),
    ("a.msg", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "a damaged Outlook message"),
    ("a.py", b"\x7fELF\x02", "is a program, not text"), ("a.json", b"", "the file is empty")])
def test_a_hostile_file_ends_in_one_line(name, data, reason, tmp_path):
    (tmp_path / name).write_bytes(data)
    said = answer({"path": str(tmp_path / name), "relative": name, "max_bytes": 10_000_000})["reason"]
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize(("suffix", "package"), [("msg", "olefile"), ("rtf", "striprtf")])
def test_a_format_names_the_extra_that_it_needs(suffix, package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package} is not installed; run: pip install 'ragbed\[formats\]'"):
        parse_document(b"x", f"a.{suffix}")


def outlook(properties, **streams):
    """An Outlook message: an OLE file whose streams all are in its mini stream."""
    sent = struct.pack("<32x") + b"".join(struct.pack("<I4xQ", *one) for one in properties)
    named = {"__properties_version1.0": sent, **{f"__substg1.0_{code}": data for code, data in streams.items()}}
    mini, entries, fat = b"", [], []
    for name, data in named.items():
        first, count = len(mini) // 64, -(-len(data) // 64)
        mini += data.ljust(count * 64, b"\0")
        fat += [*range(first + 1, first + count), 0xFFFFFFFE]
        entries.append((name, 2, first, len(data)))
    entries.insert(0, ("Root Entry", 5, 3, len(mini)))
    rows = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0") + struct.pack(
            "<HBBIII16xI8x8xII4x", 2 * len(name) + 2, kind, 1, 0xFFFFFFFF, at + 1 if 0 < at < len(entries) - 1
            else 0xFFFFFFFF, 1 if at == 0 else 0xFFFFFFFF, 0, first, size)
        for at, (name, kind, first, size) in enumerate(entries))
    sectors = -(-len(rows) // 512)
    minifat = b"".join(struct.pack("<I", one) for one in fat).ljust(512, b"\xff")
    body = -(-len(mini) // 512)
    # sectors: 0 FAT, 1 mini FAT, 2 an empty one, then the mini stream, then the directory
    chain = [0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFF, *range(4, 3 + body), 0xFFFFFFFE,
             *range(4 + body, 3 + body + sectors), 0xFFFFFFFE]
    table = b"".join(struct.pack("<I", one) for one in chain).ljust(512, b"\xff")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + struct.pack(
        "<16xHHHHH6xIIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 3 + body, 0, 4096, 1, 1, 0xFFFFFFFE, 0, 0)
    header += b"\xff" * (512 - len(header))
    return header + table + minifat + bytes(512) + mini.ljust(body * 512, b"\0") + rows.ljust(sectors * 512, b"\0")


def test_an_outlook_message_is_read():
    read = parse_document(outlook(
        [(0x00390040, 133_616_142_000_000_000)],
        **{"0037001F": "Harbour fees".encode("utf-16-le"), "0C1A001F": "Ann".encode("utf-16-le"),
           "5D01001F": "ann@esk.example".encode("utf-16-le"), "1000001F": "The fee\r\nis 500.".encode("utf-16-le")}),
        "mail.msg")
    assert read.plain == ("# Harbour fees\n\nFrom: Ann <ann@esk.example>\nDate: 2024-05-31T07:30:00+00:00\n\n"
                          "The fee\nis 500.\n\n")
    assert read.fields["date"] == "2024-05-31T07:30:00+00:00"
