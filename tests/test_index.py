"""From files to hits: what is found, what is done again when sources change, what is refused."""
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedders import Words

from ragbed.documents import CrestSizes, DocumentError, IndexFolderError, SettingsError
from ragbed.experiments.guests.more_retrievers import Expanded, Mmr
from ragbed.retrieval import (
    Bm25,
    BuildReport,
    Dense,
    Flat,
    Fused,
    Hnsw,
    Index,
    IndexSettings,
    RerankerDeps,
    add_to_index,
    build_index,
)
from ragbed.retrieval.filters.parser import normalise_filter
from ragbed.retrieval.pool import RetrieverChoice
from ragbed.retrieval.types import RetrieverKind

pytestmark = pytest.mark.usefixtures("own_cache")
WHOLE = IndexSettings(chunker=CrestSizes(smallest=10_000, largest=10_000), titled=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "pages"
    place.mkdir()
    return place


def build(folder: Path, settings: IndexSettings = WHOLE) -> BuildReport:
    return build_index([folder], folder.parent / "index", settings, embedder=Words())


def found(folder: Path, query: str, k: int = 10) -> list[str]:
    index = Index.open(folder.parent / "index", Words())
    return [index.source_of(hit.chunk.document) for hit in index.search([query], k)[0]]


def test_hits_are_ranked_and_lead_back_to_their_document(folder: Path) -> None:
    (folder / "cats.txt").write_text("cats sleep all day")
    (folder / "dogs.txt").write_text("dogs bark all night")
    build(folder)
    index = Index.open(folder.parent / "index", Words())
    (hits, none) = index.search(["when do dogs bark", "cats"], 5)
    assert [(hit.rank, hit.found_by) for hit in hits] == [(1, "dense"), (2, "dense")]
    assert hits[0].score > hits[1].score
    document = index.document(hits[0].chunk.document)
    assert (document.source, document.plain.strip()) == ("dogs.txt", "dogs bark all night")
    assert document.text("plain")[hits[0].chunk.start:hits[0].chunk.end] == hits[0].chunk.content
    assert index.chunk(hits[0].chunk.id) == hits[0].chunk == index.chunks[1]
    assert len(none) == 2
    assert index.search([], 5) == []
    assert index.search(["cats"], 0) == [[]]
    with pytest.raises(KeyError):
        index.document("unknown")


@pytest.mark.parametrize("retriever", [
    Bm25(), Dense(), Fused(depth=1), Mmr(of=Bm25()), Expanded(of=Dense()), Fused(of=(Bm25(), Mmr(of=Dense())))])
def test_a_filter_decides_before_the_best_are_cut(folder: Path, retriever: RetrieverKind) -> None:
    for number in range(30):
        (folder / f"{number}.txt").write_text("dogs bark " * (30 - number) + f"page{number}")
    build(folder)
    index = Index.open(folder.parent / "index", Words())
    choice = RetrieverChoice(retriever, normalise_filter("source in (29.txt, 30.txt) or page = 7"))
    ((hit,),) = choice.open(index).search(["dogs"], 1)
    assert index.source_of(hit.chunk.document) == "29.txt"


def test_search_takes_a_filter_and_refuses_a_text_in_place_of_a_list(folder: Path) -> None:
    for name in ("cats", "dogs", "cows"):
        (folder / f"{name}.txt").write_text(f"{name} sleep all day")
    build(folder)
    index = Index.open(folder.parent / "index", Words())
    (hits,) = index.search(["cats"], 1, where={"source": {"in": ["dogs.txt", "birds.txt"]}})
    assert [index.source_of(hit.chunk.document) for hit in hits] == ["dogs.txt"]
    assert len(index.search(["cats"], 5, where="source = cats.txt or source = cows.txt")[0]) == 2
    with pytest.raises(SettingsError, match="unknown field 'sorce'; did you mean 'source'"):
        index.search(["cats"], 5, where="sorce = cats.txt")
    for search in (index.search, Bm25().open(index, RerankerDeps()).search, Fused().open(index, RerankerDeps()).search):
        with pytest.raises(SettingsError, match="queries: expected a list of texts, but got the text 'a string'; put"):
            search("a string", 3)


def test_a_chunk_longer_than_the_window_is_found_by_any_part_of_it(folder: Path) -> None:
    filler = " ".join(f"filler{number}" for number in range(40))
    (folder / "long.txt").write_text(f"beginning here {filler} zebra crossing {filler} ending there")
    (folder / "short.txt").write_text("something about nothing")
    report = build(folder)
    assert (report.chunks, report.windows) == (2, 12)
    for query in ("beginning", "zebra", "ending", "filler20"):
        assert found(folder, query) == ["long.txt", "short.txt"]


def test_both_formats_can_be_indexed(folder: Path) -> None:
    (folder / "page.html").write_text("<html><body><h1>Trains</h1><p>They run late.</p></body></html>")
    build(folder, WHOLE.model_copy(update={"formats": ("html", "plain")}))
    index = Index.open(folder.parent / "index", Words())
    assert [chunk.format for chunk in index.chunks] == ["html", "plain"]
    assert {hit.chunk.format for hit in index.search(["trains"], 2)[0]} == {"html", "plain"}


def test_the_title_is_embedded_but_not_shown(folder: Path) -> None:
    (folder / "a.html").write_text("<title>Adobe</title><p>Margins rose.</p>")
    (folder / "b.html").write_text("<title>Netflix</title><p>Margins rose.</p>")
    build(folder, WHOLE.model_copy(update={"titled": True}))
    assert found(folder, "Netflix margins", 1) == ["b.html"]
    chunks = Index.open(folder.parent / "index", Words()).chunks
    assert [chunk.content.strip() for chunk in chunks] == ["Margins rose."] * 2


def test_rebuilding_does_only_what_changed_and_drops_what_is_gone(folder: Path) -> None:
    for name in ("one", "two", "three"):
        (folder / f"{name}.txt").write_text(f"text of {name}")
    first = build(folder)
    assert (first.documents, first.parsed, first.embedded_now, first.reused) == (3, 3, 3, 0)
    (folder / "two.txt").write_text("now of another content")
    (folder / "three.txt").unlink()
    second = build(folder)
    assert (second.documents, second.parsed, second.embedded_now, second.reused) == (2, 1, 1, 1)
    assert found(folder, "content") == ["two.txt", "one.txt"]
    third = build(folder)
    assert (third.parsed, third.embedded_now) == (0, 0)


def test_a_renamed_file_is_not_parsed_again(folder: Path) -> None:
    (folder / "one.html").write_text("<p>No title here.</p>")
    (folder / "two.html").write_text("<title>Two</title><p>A title.</p>")
    (folder / "three.txt").write_text("three of three")
    assert build(folder).parsed == 3
    (folder / "below").mkdir()
    for name, other in (("one.html", "uno.html"), ("two.html", "below/dos.htm"), ("three.txt", "tres.md")):
        (folder / name).rename(folder / other)
    report = build(folder)
    assert (report.documents, report.parsed, report.embedded_now) == (3, 1, 1)  # tres.md is of another type
    kept = Index.open(folder.parent / "index", Words()).documents()
    build_index([folder], folder.parent / "fresh", WHOLE, embedder=Words())
    fresh = Index.open(folder.parent / "fresh", Words()).documents()
    assert [(one.source, one.title) for one in fresh] == [("below/dos.htm", "Two"), ("tres.md", "tres.md"),
                                                          ("uno.html", "uno.html")]
    assert kept == fresh


@pytest.mark.parametrize("kind", [Flat(), Flat(codes="sq8")])
def test_chunks_have_the_vectors_that_they_were_indexed_with_and_others_are_embedded_alike(folder: Path, kind: Flat,
                                                                                           ) -> None:
    for name, count in (("long", 15), ("short", 3)):
        words = " ".join(f"w{place}" for place in range(count))
        (folder / f"{name}.html").write_text(f"<title>{name}</title><p>{words}</p>")
    build(folder, WHOLE.model_copy(update={"titled": True, "vectors": kind}))
    index, embedder = Index.open(folder.parent / "index", Words()), Words()
    chunks = [index.chunks[1], replace(index.chunks[1], id="wider", content="wider"), index.chunks[0]]
    headers = [text[:-len(chunk.content)] for chunk, text in zip(index.chunks, index.texts(), strict=True)]
    assert [len(header.split()) for header in headers] == [1, 1]
    texts = [headers[row] + chunk.content[start:end] for row, chunk in zip((1, 1, 0), chunks, strict=True)
             for start, end in embedder.windows([chunk.content], headers[row])[0]]
    vectors, firsts = index.vectors(chunks)
    assert (firsts.tolist(), len(texts)) == ([0, 1, 2], 5)
    np.testing.assert_allclose(vectors, embedder.embed_passages(texts), atol=1e-6)


def test_where_nothing_changed_nothing_is_written(folder: Path) -> None:
    def place() -> int:
        return (folder.parent / "index").stat().st_ino

    def built(settings: IndexSettings = WHOLE, **fields: Any) -> BuildReport:
        return build_index([folder], folder.parent / "index", settings, embedder=Words(), **fields)

    for name in ("one", "other"):
        (folder / f"{name}.txt").write_text("the same text")
    first, at = built(), place()
    assert (first.chunks, first.windows, first.embedded_now) == (2, 2, 1)  # equal text is embedded once
    assert sorted(found(folder, "same")) == ["one.txt", "other.txt"]
    again = built()
    assert place() == at
    assert (first.previous, again.previous.documents) == (None, 2)
    assert replace(again, parsed=2, embedded_now=1, reused=1, seconds=first.seconds, previous=None) == first
    add_to_index([folder / "one.txt"], folder.parent / "index", embedder=Words())
    assert place() == at
    said: dict[str, Any] = {"metadata": {"one.txt": {"year": 1}}}
    for fields in (said, {"metadata": {"one.txt": {"year": True}}}, {"settings": WHOLE, **said},
                   {"settings": WHOLE.model_copy(update={"vectors": Hnsw()}), **said}):
        before = place()
        built(**fields)
        assert place() != before
        before = place()
        built(**fields)
        assert place() == before
    (folder / "other.txt").rename(folder / "third.txt")
    built(**fields)
    assert place() != before


def test_what_cannot_be_read_is_named_and_the_rest_is_indexed(folder: Path) -> None:
    (folder / "empty.pdf").write_bytes(b"")
    (folder / "blank.txt").write_text(" \n ")
    (folder / "good.txt").write_text("good text")
    report = build(folder)
    assert report.documents == 1
    assert [error.source for error in report.skipped] == ["blank.txt", "empty.pdf"]
    manifest = Index.open(folder.parent / "index", Words()).manifest
    assert [skipped.source for skipped in manifest.skipped] == ["blank.txt", "empty.pdf"]
    assert all(skipped.reason for skipped in manifest.skipped)


def test_nothing_to_index_is_one_line_and_leaves_no_folder(folder: Path) -> None:
    with pytest.raises(IndexFolderError, match="no file of a supported type was found"):
        build(folder)
    (folder / "blank.txt").write_text("")
    with pytest.raises(IndexFolderError, match=r"nothing to index: blank\.txt: "):
        build(folder)
    with pytest.raises(DocumentError, match="missing"):
        build(folder / "missing")
    assert not (folder.parent / "index").exists()


def test_progress_names_the_stages_and_ends_at_the_total(folder: Path) -> None:
    (folder / "one.txt").write_text("text of one")
    seen: dict[str, tuple[int, int | None]] = {}

    def progress(stage: str, done: int, total: int | None) -> None:
        seen[stage] = (done, total)

    build_index([folder], folder.parent / "index", WHOLE, progress, Words())
    assert seen == {"parse": (1, 1), "embed": (1, 1), "index": (1, 1), "write": (1, 1)}


def test_the_real_embedder_finds_the_page_by_its_meaning(folder: Path) -> None:
    (folder / "seoul.md").write_text("# Seoul\n\nThe capital of South Korea lies on the Han river.")
    (folder / "긴제목.html").write_text(f"<title>{'서울특별시 종로구 청소년수련관 ' * 9}</title><p>안내</p>")
    (folder / "bread.md").write_text("# Bread\n\nFlour, water, salt and yeast are kneaded and baked.")
    build_index([folder], folder.parent / "index")
    index = Index.open(folder.parent / "index")
    hits = index.search(["Which city is the Korean seat of government?", "How is a loaf made?"], 1)
    assert [index.source_of(hit[0].chunk.document) for hit in hits] == ["seoul.md", "bread.md"]
