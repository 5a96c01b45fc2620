"""What an index is built of may vanish, change or fill the disk; what it was built into may be altered or replaced."""
import hashlib
import json
import os
import shutil

import numpy as np
import pyarrow
import pyarrow.parquet as parquet_file
import pytest
from embedders import Lengths

from ragbed.documents import IndexFolderError, ModelError, SettingsError, find_sources
from ragbed.documents.workers import Worker
from ragbed.retrieval import Index, IndexSettings, build_index, estimate_index
from ragbed.retrieval.building import source_plan
from ragbed.retrieval.building.previous_index import ParsedDocuments
from ragbed.retrieval.building.source_plan import plan_files
from ragbed.retrieval.storage import files, parquet
from ragbed.retrieval.storage.cache import stored_bytes
from ragbed.retrieval.storage.files import unchanged_sha256
from ragbed.retrieval.storage.manifest import read_manifest, write_manifest

pytestmark = pytest.mark.usefixtures("own_cache")
SETTINGS = IndexSettings(titled=False)


@pytest.fixture
def pages(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.txt").write_text(f"page {number} " + "x" * number)
    return folder


def build(pages, progress=lambda stage, done, total: None):
    return build_index([pages], pages.parent / "index", SETTINGS, progress, Lengths())


def test_a_file_that_changes_while_it_is_read_is_read_again_and_its_hash_is_of_what_was_read(pages):
    seen = plan_files(find_sources([pages]), None)
    (pages / "3.txt").write_text("changed after it was hashed")
    store = ParsedDocuments(pages.parent / "index")
    found = {one.document.source: one for one in source_plan.stream_files(seen, None, store)}
    store.remove()
    assert found["3.txt"].document.plain.strip() == "changed after it was hashed"
    assert found["3.txt"].sha256 == hashlib.sha256(b"changed after it was hashed").hexdigest()
    assert all(one.fresh for one in found.values())


def test_a_file_that_never_rests_or_is_gone_is_skipped_with_the_reason(pages, monkeypatch):
    seen = plan_files(find_sources([pages]), None)
    (pages / "2.txt").unlink()
    turns = iter(range(1_000))
    monkeypatch.setattr(source_plan, "file_hash", lambda source: str(next(turns)))
    store = ParsedDocuments(pages.parent / "index")
    found = [str(one) for one in source_plan.stream_files([seen[1], seen[2]], None, store)]
    store.remove()
    assert found[0] == "1.txt: keeps changing while it is read; index it again later"
    assert found[1].startswith("2.txt: cannot be read: No such file")


def test_parsed_documents_are_kept_in_one_file_and_a_damaged_one_is_named(pages):
    store, plan = ParsedDocuments(pages.parent / "index"), plan_files(find_sources([pages]), None)
    list(source_plan.stream_files(plan, None, store))
    again = ParsedDocuments(pages.parent / "index")
    assert [again.get(one.key).source for one in plan] == [f"{number}.txt" for number in range(6)]
    assert {path.name.removesuffix("-wal").removesuffix("-shm") for path in store.path.iterdir()} == {
        "documents.sqlite"}
    store.remove()
    again.remove()
    store.path.mkdir()
    (store.path / "documents.sqlite").write_bytes(b"no database" * 1_000)
    with pytest.raises(SettingsError, match=r"not a database.*delete it"):
        ParsedDocuments(pages.parent / "index")


@pytest.mark.slow
def test_a_file_that_the_estimate_could_not_read_is_not_tried_again(pages, monkeypatch):
    tried, parse = [], Worker.parse
    monkeypatch.setattr(Worker, "parse", lambda worker, source: tried.append(source.relative) or parse(worker, source))
    (pages / "bad.pdf").write_bytes(b"none")
    report = build_index([pages], pages.parent / "index", SETTINGS, embedder=Lengths(),
                         on_estimate=lambda estimate: None)
    assert (tried.count("bad.pdf"), [str(one) for one in report.skipped]) == (
        1, ["bad.pdf: not a PDF: it has no PDF header"])


def test_bytes_altered_under_an_old_time_are_found_also_in_a_file_that_is_remembered(pages, monkeypatch):
    build(pages)
    folder = pages.parent / "index"
    monkeypatch.setattr(files, "_LARGE", 0)
    monkeypatch.setattr(files, "_SETTLED", -1.0)
    read: list[str] = []
    monkeypatch.setattr(files, "sha256_of", lambda path: read.append(path.name) or hashlib.sha256(
        path.read_bytes()).hexdigest())
    Index.open(folder, Lengths())
    Index.open(folder, Lengths())
    assert sorted(read) == ["chunks.parquet", "documents.parquet", "vectors.faiss"]
    for name in sorted(read):
        path = folder / name
        whole, state = path.read_bytes(), path.stat()
        path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (state.st_size, state.st_mtime_ns)
        with pytest.raises(IndexFolderError, match=f"{name} is damaged"):
            Index.open(folder, Lengths())
        path.write_bytes(whole)
    Index.open(folder, Lengths(), verify=True)


@pytest.mark.slow
def test_an_index_of_many_groups_gives_every_chunk_and_document_in_its_place(pages, monkeypatch):
    monkeypatch.setattr(parquet, "_CHUNKS_PER_GROUP", 2)
    monkeypatch.setattr(parquet, "_DOCUMENTS_PER_GROUP", 5)
    monkeypatch.setattr(parquet, "_CHARACTERS_PER_GROUP", 60)
    for number in range(6, 30):
        (pages / f"{number:02}.txt").write_text(f"page {number} " + "x" * number)
    build(pages)
    opened = Index.open(pages.parent / "index", Lengths())
    chunks, documents = list(opened.chunks), opened.documents()
    assert len(chunks) == len(documents) == 30
    assert [opened.chunks[row] for row in range(30)] == chunks == opened.chunks[:]
    assert [opened.chunk(chunk.id) for chunk in chunks] == chunks
    assert [opened.document(document.id) for document in documents] == documents
    assert (opened.chunks[-1], opened.chunks[28:]) == (chunks[29], chunks[28:])
    with pytest.raises(IndexError):
        opened.chunks[30]
    for unknown in ("", "x" * 100, "é\udcff"):
        with pytest.raises(KeyError):
            opened.chunk(unknown)


@pytest.mark.slow
def test_an_estimate_is_of_what_is_left_to_do(pages):
    out = pages.parent / "index"
    first = estimate_index([pages], out, SETTINGS, Lengths())
    assert (first.documents, first.parsing, first.windows, first.sampled) == (6, 6, 6, 4)
    assert first.embedding <= 6
    assert 0 < first.disk < 100_000
    assert 0 < first.cache == first.embedding * stored_bytes(Lengths.dimension)
    assert {"parsing", "embedding", "indexing"} == first.seconds.keys()
    assert not out.exists()
    assert build(pages).parsed == 6 - first.sampled
    again = estimate_index([pages], out, SETTINGS, Lengths())
    assert (again.documents, again.parsing, again.windows, again.embedding) == (6, 0, 6, 0)
    (pages / "new.txt").write_text("one more page")
    grown = estimate_index([pages / "new.txt"], out, None, Lengths(), add=True)
    assert (grown.documents, grown.parsing, grown.windows) == (7, 1, 7)
    assert json.dumps(dict(grown.seconds))


class Longer(Lengths):
    """The same by name, with more numbers, as of a server whose model was changed."""

    def embed_passages(self, texts):
        return np.pad(super().embed_passages(texts), ((0, 0), (0, 1)))


class Wrong(Lengths):
    """Numbers that are none."""

    def embed_passages(self, texts):
        return super().embed_passages(texts) * np.float32("nan")


@pytest.mark.parametrize(("embedder", "complaint"), [
    (Longer(), "the embedder lengths returns vectors of 3 numbers, but those of the index have 2; "),
    (Wrong(), "numbers that are not finite")])
def test_an_embedder_that_gives_other_vectors_than_the_index_has_is_one_line(pages, embedder, complaint):
    build(pages)
    with pytest.raises(ModelError, match=complaint):
        Index.open(pages.parent / "index", embedder).search(["x"], 2)
    (pages / "7.txt").write_text("one more page")
    with pytest.raises(ModelError, match=complaint):
        build_index([pages], pages.parent / "index", SETTINGS, lambda stage, done, total: None, embedder)


def test_a_file_whose_old_bytes_come_back_after_a_change_is_not_taken_for_the_changed_one(pages):
    old = (pages / "0.txt").read_text()
    build(pages)
    (pages / "0.txt").write_text("something else")
    build(pages)
    (pages / "0.txt").write_text(old)
    assert build(pages).parsed == 1
    assert Index.open(pages.parent / "index", Lengths()).documents()[0].plain.strip() == old.strip()


def test_what_changed_a_moment_ago_is_not_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LARGE", 0)
    (tmp_path / "file").write_bytes(b"one")
    assert unchanged_sha256(tmp_path / "file") == hashlib.sha256(b"one").hexdigest()
    assert not (tmp_path / "cache" / "hashes").exists()


def test_tables_that_do_not_fit_each_other_are_one_line(tmp_path, pages):
    build_index([pages], tmp_path / "whole", embedder=Lengths())
    for place, (name, column, value, says) in enumerate((
            ("chunks.parquet", "document", "0" * 32, "do not belong together"),
            *(("chunks.parquet", "windows", windows, "do not belong together") for windows in (0, -1, 2**31 - 1)),
            ("documents.parquet", "id", "0" * 32, "do not belong together"),
            *(("documents.parquet", "metadata", text, "is not a Parquet file") for text in ("{", "[" * 100_000)))):
        index = shutil.copytree(tmp_path / "whole", tmp_path / str(place))
        table = parquet_file.read_table(index / name)
        rows = [{**row, column: value} for row in table.to_pylist()]
        parquet_file.write_table(pyarrow.Table.from_pylist(rows, schema=table.schema), index / name)
        manifest = read_manifest(index)
        (index / "manifest.json").unlink()
        write_manifest(manifest, index)
        with pytest.raises(IndexFolderError, match=says):
            list(Index.open(index, Lengths()).metadata())
