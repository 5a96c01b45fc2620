"""`ragbed index` says what it does: estimates, embedders, metadata and checks."""
import os

import pymupdf
import pytest

from ragbed.retrieval import build_index, estimate_index
from ragbed.retrieval.index_settings import IndexSettings

WORDS = IndexSettings(embedder="none")


@pytest.fixture
def pages(tmp_path):
    """A folder of three texts."""
    (folder := tmp_path / "pages").mkdir()
    for name in ("one", "two", "three"):
        (folder / f"{name}.txt").write_text(f"The text of {name}.")
    return folder


def large_pdf(path):
    file = pymupdf.open()
    file.new_page().insert_text((72, 72), "The northern reef grew by two centimetres a year.")
    file.save(path)
    path.write_bytes(path.read_bytes() + b"\n%" + os.urandom(4_500_000).replace(b"\n", b"x") + b"\n%%EOF\n")


@pytest.mark.slow
def test_a_tiny_broken_file_does_not_inflate_the_estimate(pages):
    large_pdf(pages / "large.pdf")
    (pages / "broken.pdf").write_bytes(b"%PDF-1.4 broken!")
    (pages / "long.txt").write_text("A line of a long text.\n" * 20_000)
    found = estimate_index([pages], pages.parent / "idx", WORDS)
    assert found.sampled == 5  # the broken file is not measured
    assert sum(found.seconds.values()) < 600
    assert found.windows > 100


def test_without_an_embedder_nothing_is_said_to_be_embedded(pages, ragbed):
    out = pages.parent / "idx"
    _, _, estimate = ragbed("index", pages, "--out", out, "--embedder", "none", "--dry-run")
    assert estimate.startswith("about 3 windows of 3 documents (3 to parse, ")
    _, shown, progress = ragbed("index", pages, "--out", out, "--embedder", "none")
    assert shown.startswith("3 documents, 3 chunks, 0 skipped; ")
    assert "no vectors (embedder none): only bm25 can search it" in shown
    assert ragbed("index", pages, "--out", out, "--embedder", "none")[1].startswith(
        "nothing has changed: 3 documents, 3 chunks\n")
    assert "embed" not in f"{estimate} {progress} {shown}".replace(str(out), "").replace("(embedder none)", "")
    made = ragbed.json("index", pages, "--out", pages.parent / "another", "--embedder", "none")
    assert (made["embedded"], made["reused"], "embedding" in made["estimate"]["seconds"]) == (0, 0, False)


def test_metadata_of_a_deleted_file_is_a_note(pages, ragbed):
    (rows := pages.parent / "about.csv").write_text("source,year\none.txt,2020\ngone.txt,2021\n")
    status, _, err = ragbed("index", pages, "--out", pages.parent / "idx", "--embedder", "none", "--metadata", rows)
    assert status == 0
    assert "metadata: 1 of its sources is not in the index (gone.txt)" in err
    found = ragbed.json("search", "text", "--index", pages.parent / "idx", "--retriever", "bm25", "--where",
                        "year = 2020")
    assert [hit["document"] for hit in found["hits"]] == ["one.txt"]
    rows.write_text("source,year\ngone.txt,2021\nlost.txt,2021\n")
    ragbed.refuses("index", pages, "--out", pages.parent / "idx", "--embedder", "none", "--metadata", rows,
                   says=["metadata: source gone.txt and 1 more is not indexed"])


def test_check_with_sources_also_says_which_of_them_changed(pages, ragbed):
    out = pages.parent / "idx"
    build_index([pages], out, WORDS)
    status, shown, err = ragbed("index", pages, "--out", out, "--check")
    assert (status, err) == (0, "")
    assert shown.endswith("3 documents, 3 chunks; every file is unchanged\n")
    (pages / "one.txt").write_text("Another text.")
    (pages / "two.txt").rename(pages / "four.txt")
    _, shown, err = ragbed("index", pages, "--out", out, "--check")
    assert err.splitlines() == [f"{name}.txt: {change} since the index was built" for name, change in (
        ("four", "added"), ("one", "changed"), ("two", "deleted"))]
    assert "every file of the index is unchanged" in shown


@pytest.mark.parametrize("kind", ["trec", "beir", "squad2", "hotpotqa"])
def test_a_benchmark_names_the_folder_that_does_not_exist(kind, ragbed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ragbed.refuses("evaluate-retrieval", kind, "nosuchfolder", says=["nosuchfolder: no such file or folder"])


def test_a_file_of_qrels_alone_names_its_folder(ragbed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qrels.txt").write_text("301 0 ESK-0042 1\n")
    ragbed.refuses("evaluate-retrieval", "trec", "qrels.txt", says=[f"{tmp_path}: no queries.jsonl"])
