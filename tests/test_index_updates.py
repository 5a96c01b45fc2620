"""Sources are added to an index and taken out of it; documents have metadata."""
import json
import os
import shutil
from pathlib import Path

import pytest
from embedders import Words

from ragbed.documents import CrestSizes, Document, DocumentError, IndexFolderError, ModelError, UserError
from ragbed.retrieval import (
    Hnsw,
    Index,
    IndexSettings,
    RaBitQ,
    add_to_index,
    build_index,
    index_documents,
    remove_from_index,
)
from ragbed.retrieval.filters.metadata import read_metadata
from ragbed.retrieval.index import content_of_index
from ragbed.retrieval.storage.manifest import read_manifest

pytestmark = pytest.mark.usefixtures("own_cache")
WHOLE = IndexSettings(chunker=CrestSizes(smallest=10_000, largest=10_000))


class Absent(Words):
    """An embedder that cannot embed, because its model is not here."""

    def windows(self, texts, header=""):
        raise ModelError("the model is not here")

    embed_passages = windows


@pytest.fixture
def index(tmp_path):
    """An index of two documents, one with a title of its own."""
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "cats.txt").write_text("cats sleep all day")
    (pages / "dogs.html").write_text("<title>Big dogs</title><p>They bark all night.</p>")
    build_index([pages], tmp_path / "index", WHOLE, embedder=Words(),
                metadata={"cats.txt": {"year": 2021, "calm": True}, "dogs.html": {"year": 2022.5}})
    return tmp_path / "index"


def sources(index: Path) -> list[str]:
    return [document.source for document in Index.open(index, Words()).documents()]


def test_added_sources_come_to_those_that_are_there_and_replace_those_of_the_same_name(index, tmp_path):
    more = tmp_path / "more"
    (more / "below").mkdir(parents=True)
    (more / "cats.txt").write_text("cats hunt all night")
    (more / "below" / "birds.txt").write_text("birds sing in the morning")
    (more / "empty.txt").write_text("")
    report = add_to_index([more], index, embedder=Words(), metadata={"below/birds.txt": {"year": 1999}})
    assert (report.documents, report.parsed, report.replaced, report.removed) == (3, 2, 1, 0)
    assert sources(index) == ["below/birds.txt", "cats.txt", "dogs.html"]
    opened = Index.open(index, Words())
    assert opened.manifest.settings == WHOLE
    assert [one.source for one in opened.manifest.skipped] == ["empty.txt"]
    (hit,) = opened.search(["cats hunt"], 1)[0]
    assert opened.document(hit.chunk.document).plain.strip() == "cats hunt all night"
    assert [row.get("year") for row in opened.metadata()] == [1999, 2021, 2022.5]


def test_what_was_not_added_needs_neither_its_file_nor_a_model_nor_a_cache(index, tmp_path):
    shutil.rmtree(tmp_path / "pages")
    shutil.rmtree(tmp_path / "cache")
    report = remove_from_index(["cats.txt"], index, embedder=Absent())
    assert (report.documents, report.embedded_now, report.reused, report.removed) == (1, 0, 1, 1)
    opened = Index.open(index, Words())
    (hit,) = opened.search(["bark all night"], 5)[0]
    assert (hit.chunk.content.strip(), opened.source_of(hit.chunk.document)) == ("They bark all night.", "dogs.html")


def test_rounded_vectors_are_used_again_for_their_own_kind_only(index, tmp_path, monkeypatch):
    monkeypatch.setattr("ragbed.retrieval.vector_index.FLAT_LIMIT", 1)
    build_index([tmp_path / "pages"], index, WHOLE, embedder=Words())
    assert read_manifest(index).kind == RaBitQ()
    shutil.rmtree(tmp_path / "cache")
    assert remove_from_index(["cats.txt"], index, embedder=Absent()).reused == 1
    assert read_manifest(index).how == (
        "rabitq: 1 vectors are compared by 1-bit codes, and the nearest 400 again in 16 bits (approximate; as before, "
        "because its vectors are rounded)")
    report = build_index([tmp_path / "pages"], index, WHOLE.model_copy(update={"vectors": Hnsw()}), embedder=Words())
    assert (report.embedded_now, read_manifest(index).kind) == (2, Hnsw())


def test_sources_are_removed_by_folder_and_pattern_and_an_unknown_one_is_named(index, tmp_path):
    more = tmp_path / "more"
    (more / "a").mkdir(parents=True)
    for name in ("a/one.txt", "a/two.txt", "b.txt"):
        (more / name).write_text(f"text of {name}")
    add_to_index([more], index, embedder=Words())
    remove_from_index(["a/", "*.html"], index, embedder=Words())
    assert sources(index) == ["b.txt", "cats.txt"]
    with pytest.raises(IndexFolderError, match=r"no source of the index matches dogs\.html"):
        remove_from_index(["b.txt", "dogs.html"], index, embedder=Words())
    with pytest.raises(IndexFolderError, match="nothing would be left in the index"):
        remove_from_index(["*"], index, embedder=Words())
    assert sources(index) == ["b.txt", "cats.txt"]


def test_another_embedder_cannot_add(index, tmp_path):
    (tmp_path / "new.txt").write_text("new")
    other = Words()
    other.identity = "words-2"
    with pytest.raises(IndexFolderError, match="was made with embedder words"):
        add_to_index([tmp_path / "new.txt"], index, embedder=other)
    with pytest.raises(IndexFolderError, match="does not exist"):
        add_to_index([tmp_path / "new.txt"], tmp_path / "none", embedder=Words())


@pytest.mark.parametrize("kind", [
    "flat", "hnsw", "rabitq", pytest.param({"kind": "flat", "codes": "sq8"}, marks=pytest.mark.slow)])
def test_an_index_that_was_added_to_is_the_one_that_would_have_been_built(tmp_path, kind):
    pages = tmp_path / "pages"
    pages.mkdir()
    settings = IndexSettings(chunker=CrestSizes(smallest=10_000, largest=10_000), vectors=kind, titled=False)
    for name in ("a", "b", "c"):
        (pages / f"{name}.txt").write_text(f"the text of {name} has some twenty words so that it needs windows " * 3)
    build_index([pages / "a.txt", pages / "c.txt"], tmp_path / "grown", settings, embedder=Words())
    add_to_index([pages / "b.txt"], tmp_path / "grown", embedder=Words())
    build_index([pages], tmp_path / "built", settings, embedder=Words())
    contents = [{path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("grown", "built")]
    assert contents[0] == contents[1]


def test_texts_are_the_chunks_below_their_header_and_metadata_has_the_documents_fields(index):
    opened = Index.open(index, Words())
    assert [text.split("\n")[0] for text in opened.texts()] == ["cats.txt", "Big dogs"]
    assert all(text.endswith(chunk.content) for text, chunk in zip(opened.texts(), opened.chunks, strict=True))
    cats, dogs = opened.metadata()
    assert cats == {"document": opened.chunks[0].document, "source": "cats.txt", "title": "cats.txt", "format": "plain",
                    "page": None, "year": 2021, "calm": True}
    assert (dogs["title"], dogs["year"], "calm" in dogs) == ("Big dogs", 2022.5, False)
    assert opened.manifest.fields == {"calm": "boolean", "year": "number"}


def test_other_metadata_or_headers_are_another_content_and_nothing_is_embedded_for_metadata(index, tmp_path):
    before = content_of_index(read_manifest(index))
    report = build_index([tmp_path / "pages"], index, WHOLE, embedder=Words())
    assert (report.parsed, report.embedded_now, read_manifest(index).fields) == (0, 0, {})
    plain = content_of_index(read_manifest(index))
    build_index([tmp_path / "pages"], index, WHOLE.model_copy(update={"titled": False}), embedder=Words())
    bare = content_of_index(read_manifest(index))
    build_index([tmp_path / "pages"], index, WHOLE.model_copy(update={"vectors": Hnsw()}), embedder=Words())
    assert len({before, plain, bare, content_of_index(read_manifest(index))}) == 4


def test_documents_that_are_given_keep_their_ids_and_only_a_changed_one_is_embedded_again(tmp_path):
    def given(*texts):
        return [Document(f"d{place}", f"corpus/{place}", f"Title {place}", text, text)
                for place, text in enumerate(texts)]

    def build(documents):
        return index_documents(documents, tmp_path / "index", WHOLE, embedder=Words(),
                               metadata={"corpus/1": {"split": "test"}})

    first = build(given("the first text", "the second text"))
    assert (first.documents, first.parsed, first.embedded_now) == (2, 2, 2)
    second = build(iter(given("the first text", "now it is another")))
    assert (second.parsed, second.embedded_now, second.reused, second.replaced) == (1, 1, 1, 1)
    opened = Index.open(tmp_path / "index", Words())
    assert [chunk.document for chunk in opened.chunks] == ["d0", "d1"]
    assert [row.get("split") for row in opened.metadata()] == [None, "test"]
    with pytest.raises(DocumentError, match="corpus/0: another document has this source or id"):
        build([*given("a"), *given("b")])
    with pytest.raises(DocumentError, match="source corpus/1 is not indexed"):
        build(iter(given("alone")))
    assert len(Index.open(tmp_path / "index", Words()).chunks) == 2


@pytest.mark.parametrize(("name", "content", "says"), [
    ("m.jsonl", '{"source": "a.txt", "x": [1]}', "line 1, field x: expected text, a number, true or false"),
    ("m.jsonl", '{"source": "a.txt", "x": NaN}', "line 1, field x: expected text, a number, true or false"),
    ("m.jsonl", '{"source": "a.txt"}\n{"source": "b.txt", "x": "\\ud800"}', "line 2: expected one JSON object"),
    ("m.jsonl", '{"source": "a.txt", "\\ud800": 1}', "line 1: expected one JSON object"),
    ("m.jsonl", '{"source": "a.txt"}\n{"source": "a.txt"}', "line 2, field source: expected a path that no other"),
    ("m.jsonl", '{"x": 1}', "line 1, field source: expected text"),
    ("m.jsonl", '[1]', "line 1: expected one JSON object"),
    ("m.jsonl", '{"source": "a.txt", "page": 1}', "a field cannot be called 'page'"),
    ("m.jsonl", '{"source": "a.txt", "x": 1}\n{"source": "b.txt", "x": "one"}',
     "x has type text in b.txt and number elsewhere"),
    ("m.csv", "source,x\na.txt", "line 2: expected 2 fields, found 1"),
    ("m.csv", 'source,x\n\na.txt,"1\n2"\nb.txt', "line 5: expected 2 fields, found 1"),
    ("m.csv", "source,x\n\na.txt,1\n\na.txt,2", "line 5, field source: expected a path that no other line has"),
    ("m.csv", "source,x,x\na.txt,1,2", "line 1: expected unique column names"),
    ("m.csv", 'source,x\n"a.txt,1', "cannot be read as CSV"),
    ("none.csv", None, "cannot be read"),
])
def test_metadata_that_does_not_fit_is_one_line(tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError) as caught:
        read_metadata(tmp_path / name)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_values_of_a_csv_column_are_of_one_type(tmp_path):
    (tmp_path / "m.csv").write_text('source,year,code,open,note\na.txt,2021,007,true,"one, two"\nb.txt,-1.5,12,,\n')
    assert read_metadata(tmp_path / "m.csv") == {
        "a.txt": {"year": 2021, "code": "007", "open": True, "note": "one, two"}, "b.txt": {"year": -1.5, "code": "12"}}


def test_the_command_adds_removes_checks_and_estimates(ragbed, tmp_path):
    pages, out = tmp_path / "pages", tmp_path / "i"
    pages.mkdir()
    for name in ("one", "two"):
        (pages / f"{name}.txt").write_text(f"The text of {name}.")
    (tmp_path / "m.jsonl").write_text('{"source": "one.txt", "year": 2020}\n')
    status, _, err = ragbed("index", pages, "--out", out, "--dry-run")
    assert (status, out.exists()) == (0, False)
    assert err.startswith("about 2 windows of 2 documents (2 to parse, ")
    made = json.loads(ragbed("index", pages / "one.txt", "--out", out, "--metadata", tmp_path / "m.jsonl", "--json")[1])
    assert (made["documents"], made["embedded"], made["estimate"]["windows"]) == (1, 0, 1)
    added = json.loads(ragbed("index", pages / "two.txt", "--out", out, "--add", "--json")[1])
    assert (added["documents"], added["replaced"]) == (2, 0)
    assert "2 documents, 2 chunks; every file is unchanged" in ragbed("index", "--out", out, "--check")[1]
    assert "1 documents, 1 removed" in ragbed("index", "two.txt", "--out", out, "--remove")[1]
    assert "had metadata; it is not remembered" in ragbed("index", pages, "--out", out)[2]
    (tmp_path / "m.jsonl").write_text('{"source": "three.txt", "year": 2020}\n')
    for asked, says in (
            (["--out", out], "name the files"), ([pages, "--out", out, "--add", "--remove"], "cannot be combined"),
            ([pages, "--out", out, "--add", "--size", "200"], "--size cannot be combined with --add"),
            ([pages, "--out", out, "--check", "--dry-run"], "--check cannot be combined with --dry-run"),
            (["x", "--out", out, "--remove", "--dry-run"], "--remove cannot be combined with --dry-run"),
            (["x.txt", "--out", out, "--remove"], "no source of the index matches x.txt"),
            ([pages, "--out", out, "--metadata", tmp_path / "m.jsonl"], "source three.txt is not indexed")):
        ragbed.refuses("index", *asked, says=[says])
    data = bytearray((out / "chunks.parquet").read_bytes())
    data[100] ^= 1
    (out / "chunks.parquet").write_bytes(data)
    os.utime(out / "chunks.parquet", (0, 0))
    ragbed.refuses("index", "--out", out, "--check", says=["chunks.parquet is damaged"])
