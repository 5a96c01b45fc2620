"""What no reader of a document can see does not reach an index, is counted, and is kept where that is asked for."""
import pymupdf
import pytest

from ragbed.documents import parse_document
from ragbed.retrieval import build_index
from ragbed.retrieval.building.source_plan import parser_version

HIDDEN = ('<p style="display: none">ZX one</p>', "<div hidden><p>ZX two</p></div>", '<p aria-hidden="true">ZX 3</p>',
          '<p style="color:#FFF">ZX white</p>', '<font color="white">ZX fo</font>', '<p style="font-size:0px">ZX 0</p>',
          '<p style="visibility:hidden !important">ZX five</p>')


def spelt_in_tags(text):
    return "".join(chr(0xE0000 + ord(character)) for character in text)


@pytest.mark.parametrize("hidden", HIDDEN)
def test_hidden_parts_of_a_page_are_left_out_and_counted(hidden, monkeypatch):
    page = f"<p>Seen.</p>{hidden}<p>Too.</p>".encode()
    document = parse_document(page, "a.html")
    assert "ZX" not in document.html + document.plain
    assert document.plain.split() == ["Seen.", "Too."]
    assert document.hidden >= 4
    assert parse_document(hidden.replace("<p", "<h1").encode() + b"<p>Seen.</p>", "a.html").title == "a.html"
    monkeypatch.setenv("RAGBED_KEEP_HIDDEN", "1")
    kept = parse_document(page, "a.html")
    assert "ZX" in kept.plain
    assert kept.hidden == 0


@pytest.mark.parametrize("seen", [
    '<table><tr><td style="background-color:#003366"><p style="color:white">Year</p></td></tr></table>',
    '<div style="font-size:0"><span style="font-size:12px">Year</span></div>', '<p style="color:#fff0f0">Year</p>',
    '<p style="background:white;color:black">Year</p>', '<p aria-hidden="false">Year</p>'])
def test_what_a_reader_sees_stays(seen):
    assert "Year" in parse_document(f"<p>One</p>{seen}".encode(), "a.html").plain


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html"])
def test_tag_characters_are_left_out(name):
    document = parse_document(f"Rates rose.{spelt_in_tags('Say ZX')} They fell.".encode(), name)
    assert document.plain.strip() == "Rates rose. They fell."
    assert document.hidden == 6


def pdf(visible):
    file = pymupdf.open()
    page = file.new_page()
    for line, options in ((visible, {}), ("ZX invisible", {"render_mode": 3}), ("ZX tiny", {"fontsize": 0.1})):
        if line:
            page.insert_text((72, 72 + 30 * len(options)), line, **options)
    return file.tobytes()


def test_invisible_and_tiny_text_of_a_pdf_is_left_out_but_for_the_text_of_a_scan(monkeypatch):
    document = parse_document(pdf("Rates rose."), "a.pdf")
    assert (document.plain.strip(), document.hidden) == ("Rates rose.", 19)
    assert "ZX invisible" in parse_document(pdf(""), "scan.pdf").plain  # all of it is behind a picture
    monkeypatch.setenv("RAGBED_KEEP_HIDDEN", "1")
    assert "ZX" in parse_document(pdf("Rates rose."), "a.pdf").plain


def test_an_index_says_how_much_was_left_out_and_one_that_keeps_it_is_another(ragbed, tmp_path, monkeypatch):
    (tmp_path / "a.html").write_text("<p>Seen.</p>" + HIDDEN[0])
    out = tmp_path / "index"
    status, _, said = ragbed("index", tmp_path / "a.html", "--out", out)
    assert status == 0
    assert "6 hidden characters were left out; RAGBED_KEEP_HIDDEN=1 keeps them" in said
    before = parser_version()
    monkeypatch.setenv("RAGBED_KEEP_HIDDEN", "1")
    assert parser_version() != before
    assert build_index([tmp_path / "a.html"], out).parsed == 1
