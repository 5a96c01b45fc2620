"""Scanned pages are read by OCR if asked for, and marked."""
import sys

import pymupdf
import pytest

from ragbed.retrieval import Index


def scanned(path):
    """A PDF with a page of text between two, the second of which is a picture of text."""
    drawn = pymupdf.open()
    drawn.new_page(width=300, height=200).insert_text((40, 80), "The reef grew by 42 metres.", fontsize=14)
    file = pymupdf.open()
    file.new_page(width=300, height=200).insert_text((40, 80), "Ferries leave at noon.")
    page = file.new_page(width=300, height=200)
    page.insert_image(page.rect, stream=drawn[0].get_pixmap(dpi=150).tobytes("png"))
    file.save(path)


def test_without_the_option_a_scanned_page_is_named_and_with_it_the_extra(tmp_path, ragbed, monkeypatch):
    scanned(tmp_path / "a.pdf")
    _, _, err = ragbed("index", tmp_path / "a.pdf", "--out", tmp_path / "idx", "--embedder", "none")
    assert "a.pdf: page 2 is a picture without text, so it is not in the index; --ocr reads it" in err
    monkeypatch.setitem(sys.modules, "rapidocr_onnxruntime", None)
    ragbed.refuses("index", tmp_path / "a.pdf", "--out", tmp_path / "idx", "--ocr", says=[
        "rapidocr_onnxruntime is not installed; run: pip install 'ragbed[ocr]'"])
    ragbed.refuses("index", tmp_path / "a.pdf", "--out", tmp_path / "idx", "--add", "--ocr", says=[
        "--ocr cannot be combined with --add"])


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the library needs an older Python")
def test_a_scanned_page_is_read_and_marked(tmp_path, ragbed):
    pytest.importorskip("rapidocr_onnxruntime", reason="the extra ocr is not installed", exc_type=ImportError)
    scanned(tmp_path / "a.pdf")
    out, asked = tmp_path / "idx", ("index", tmp_path / "a.pdf", "--out", tmp_path / "idx", "--embedder", "none")
    ragbed.json(*asked)
    made = ragbed.json(*asked, "--ocr")
    assert (made["documents"], made["ocr_pages"], made["unread_pages"]) == (1, {"a.pdf": [2]}, {})
    (document,) = Index.open(out).documents()
    assert document.fields["ocr_pages"] == "2"
    first, second = (document.html[page.html:] for page in document.pages)
    assert first.startswith('<p class="paragraph" data-page="1"')
    assert 'data-page="2" data-ocr="true"' in second
    plain = document.plain[document.pages[1].plain:]
    assert plain.strip("# \n").replace(" ", "") == "Thereefgrewby42metres."
    assert ragbed.json(*asked, "--ocr")["estimate"] is None  # nothing changed
