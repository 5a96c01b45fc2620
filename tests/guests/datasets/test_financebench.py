"""FinanceBench: pages from 0 in the file are pages from 1 here, shown as given and found in an index of the PDFs."""
from pathlib import Path

import pymupdf
import pytest

from ragbed.documents import Fixed, parse_document
from ragbed.experiments import Gold
from ragbed.experiments.guests.datasets.financebench import FinanceBench
from ragbed.experiments.running.gold import match
from ragbed.strategies import Passage

FILE = Path(__file__).parents[2] / "data" / "financebench" / "financebench_open_source.jsonl"


@pytest.fixture
def folder(tmp_path):
    """The questions, with the PDF of the first."""
    (tmp_path / "pdfs").mkdir()
    (tmp_path / FILE.name).write_bytes(FILE.read_bytes())
    (tmp_path / "financebench_document_information.jsonl").write_text('{"doc_name": "ESKRAIL_2022_10K"}\n')
    with pymupdf.open() as pdf:
        for text in ("Esk Rail, annual report", "Purchases of equipment 12.5", "Signatures"):
            pdf.new_page().insert_text((72, 72), text)
        pdf.save(tmp_path / "pdfs" / "ESKRAIL_2022_10K.pdf")
    return tmp_path


def test_evidence_is_a_page_counted_from_one():
    first, second = FinanceBench(path=str(FILE)).load().questions
    assert first.gold == (Gold("ESKRAIL_2022_10K.pdf", page=2),)
    assert second.gold == (Gold("LUNDFOODS_2023_10K.pdf", page=1), Gold("LUNDFOODS_2023_10K.pdf", page=7))
    assert [chunk.content for chunk in first.provided] == ["Cash flows of 2022. Purchases of equipment 12.5"]


def test_the_given_pages_are_the_gold_ones():
    benchmark = FinanceBench(path=str(FILE)).load()
    for question in benchmark.questions:
        evidence = [Passage(number, chunk) for number, chunk in enumerate(question.provided, 1)]
        view = match(question.gold, evidence, lambda id: benchmark.documents[id].source)
        assert set(view.levels.values()) == {"page"}
        assert view.in_view == frozenset(range(view.total))


def test_the_pdfs_beside_the_questions_are_what_is_searched(folder):
    benchmark = FinanceBench(path=str(folder)).load()
    assert benchmark.corpus == str(folder / "pdfs")
    assert [question.tags["pdf"] for question in benchmark.questions] == [("here",), ("absent",)]
    assert FinanceBench(path=str(FILE)).load().corpus is None
    assert FinanceBench(path=str(FILE), corpus=str(folder / "pdfs"), filter={"pdf": "here"}).load().corpus == str(
        folder / "pdfs")


def test_a_path_on_the_hub_is_resolved_once_not_for_every_question(folder, monkeypatch):
    asked = []
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **options: asked.append(name) or folder)
    (folder / FILE.name).write_text(FILE.read_text() + FILE.read_text().replace("_id_", "_again_"))
    assert len(FinanceBench(path="hub:a/b").load().questions) == 4
    assert len(asked) == 2  # of the questions and of the PDFs


def test_the_gold_page_is_found_in_the_parsed_pdf(folder):
    pdf = folder / "pdfs" / "ESKRAIL_2022_10K.pdf"
    document = parse_document(pdf.read_bytes(), pdf.name)
    chunks = Fixed(size=20).chunk(document, "plain")
    question = FinanceBench(path=str(folder)).load().questions[0]
    view = match(question.gold, [Passage(number, chunk) for number, chunk in enumerate(chunks)], lambda id: pdf.name)
    found = [chunk for number, chunk in enumerate(chunks) if view.levels[number] == "page"]
    assert "Purchases" in found[0].content
    assert all(chunk.pages[0] <= 2 <= chunk.pages[1] for chunk in found)
    assert len(found) < len(chunks)
