"""An index whose vectors are in Milvus: its embedded engine in a file, and as a server."""
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from embedders import Words
from pydantic import ValidationError

from ragbed.documents import IndexFolderError, SettingsError
from ragbed.documents.shards import Shard
from ragbed.experiments.guests.cluster.merge_shards import merge_indexes
from ragbed.experiments.guests.milvus import collection as milvus_vectors
from ragbed.experiments.guests.milvus.collection import Milvus, MilvusVectors
from ragbed.retrieval import Flat, Hnsw, Index, IndexSettings, VectorIndex, build_index
from ragbed.retrieval.retrievers.dense import nearest_chunks
from ragbed.retrieval.vectors import VectorTask

pytest.importorskip("milvus_lite")
pytestmark = [pytest.mark.usefixtures("own_cache"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]
COMMAND = [sys.executable, "-m", "ragbed"]
RIVERS = ["the seine flows through paris", "the danube flows through vienna", "the vltava flows through prague",
          "zebras live in herds", "a herd of zebras runs", "paris is a city of light"]


class Server:
    """Milvus Lite as a server, on the same port and data whenever it is started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self._child = subprocess.Popen(
            [Path(sys.executable).parent / "milvus-lite", "server", "--data-dir", self._folder, "--host", "127.0.0.1",
             "--port", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            assert self._child.poll() is None
            time.sleep(0.05)

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("served"))
    yield running
    running.kill()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A file of the embedded engine, which takes a second to start; each test has a collection of its own in it."""
    return str(tmp_path_factory.mktemp("store") / "vectors.db")


@pytest.fixture(params=["file", "server"])
def uri(request):
    return request.getfixturevalue("file") if request.param == "file" else request.getfixturevalue("server").url


@pytest.fixture
def pages(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    for number, text in enumerate(RIVERS):
        (folder / f"{number}.txt").write_text(text)
    return folder


def settings(uri: str, **given) -> IndexSettings:
    return IndexSettings(vectors=Milvus(uri=uri, **given), titled=False)


def stored(uri: str, out: Path, vectors: np.ndarray, search) -> MilvusVectors:
    return Milvus(uri=uri, search=search).build(VectorTask(vectors, "", out, "made", None, lambda more: None))


def found(index: Path, query: str, k: int = 3) -> list[tuple[str, float]]:
    opened = Index.open(index, Words())
    return [(opened.source_of(hit.chunk.document), hit.score) for hit in opened.search([query], k)[0]]


def assert_same(folder: Path, query: str, k: int) -> None:
    """The indexes `idx` and `own` find the same, except for the last digit of scores."""
    ours, theirs = (found(folder / name, query, k) for name in ("idx", "own"))
    assert ours == [(source, pytest.approx(score, abs=2e-6)) for source, score in theirs]


def clustered(count: int) -> np.ndarray:
    """Unit vectors in clusters of ten."""
    made = np.random.default_rng(5)
    centres = made.normal(size=(count // 10, 64))
    rows = np.repeat(centres, 10, axis=0) + 0.4 * made.normal(size=(count, 64))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "least"), [(Flat(), 1.0), (Hnsw(), 0.98)])
def test_milvus_finds_what_faiss_finds(uri, kind, least, tmp_path):
    vectors = clustered(1_000)
    queries, owners = vectors[::20], np.arange(1_000)
    kept = stored(uri, tmp_path / "idx", vectors, kind)
    exact = VectorIndex.build(vectors, Flat())
    near = [[row for row, _ in hits] for hits in nearest_chunks(exact, owners, queries, 10)]
    same = [[row for row, _ in hits] for hits in nearest_chunks(kept, owners, queries, 10)]
    assert np.mean([len({*a} & {*b}) / 10 for a, b in zip(near, same, strict=True)]) >= least
    assert (kept.stored(7, 9) == vectors[7:9]).all()


@pytest.mark.slow
def test_a_mask_becomes_a_filter_of_milvus(file, tmp_path, monkeypatch):
    monkeypatch.setattr(milvus_vectors, "MAX_FILTER_KEYS", 200)  # so that half of the rows need several searches
    vectors = clustered(1_000)
    kept = stored(file, tmp_path / "idx", vectors, Flat())
    for share in (0.001, 0.5, 0.999):
        among = np.random.default_rng(1).random(1_000) < share
        among[17] = True
        scores, rows = kept.search(vectors[:20], 30, among)
        other, same = VectorIndex.build(vectors, Flat()).search(vectors[:20], 30, among)
        assert (rows == same).all()
        assert np.allclose(scores, other, atol=1e-6)
        assert among[rows[rows >= 0]].all()


@pytest.mark.slow
def test_only_changes_are_sent_and_equal_texts_are_told_apart(uri, pages, tmp_path):
    report = build_index([pages], tmp_path / "idx", settings(uri), embedder=Words())
    assert "all 6 vectors are compared by Milvus (exact" in report.how
    build_index([pages], tmp_path / "own", IndexSettings(titled=False), embedder=Words())
    assert_same(tmp_path, "zebras herd", 3)
    before = np.load(tmp_path / "idx" / "vectors.npy")
    (pages / "0.txt").unlink()
    (pages / "1.txt").write_text("the inn flows through innsbruck")
    (pages / "6.txt").write_text(RIVERS[3])
    report = build_index([pages], tmp_path / "idx", settings(uri), embedder=Words())
    after = np.load(tmp_path / "idx" / "vectors.npy")
    assert (report.removed, report.replaced, len({*before} & {*after}), len({*after})) == (1, 1, 4, 6)
    assert [source for source, _ in found(tmp_path / "idx", RIVERS[3], 2)] == ["3.txt", "6.txt"]
    assert found(tmp_path / "idx", "seine innsbruck", 1)[0][0] == "1.txt"
    opened = Index.open(tmp_path / "idx", Words())
    assert opened._vectors._count() == 6
    assert found(tmp_path / "idx", "zebras", 100)[0][0] in ("3.txt", "4.txt", "6.txt")
    build_index([pages], tmp_path / "idx", settings(uri, search=Hnsw()), embedder=Words())
    assert not opened._vectors._call("has_collection")  # that of the other kind was dropped


@pytest.mark.slow
def test_an_unchanged_index_is_not_written_and_opens_in_its_former_form_too(file, pages, tmp_path):
    build_index([pages], tmp_path / "idx", settings(file), embedder=Words())
    written = (tmp_path / "idx" / "manifest.json").stat().st_mtime_ns
    build_index([pages], tmp_path / "idx", settings(file), embedder=Words())
    assert (tmp_path / "idx" / "manifest.json").stat().st_mtime_ns == written
    manifest = Index.open(tmp_path / "idx", Words()).manifest
    former = json.loads(manifest.model_dump_json())
    former |= {"kind": former["kind"]["search"],
               "store": {name: former["kind"][name] for name in ("uri", "collection", "sample")}}
    former["settings"] |= {"vectors": former["settings"]["vectors"]["search"], "store": f"milvus:{file}"}
    assert type(manifest).model_validate(former) == manifest


@pytest.mark.slow
def test_a_store_that_was_emptied_or_changed_is_refused_and_rebuilt(file, pages, tmp_path):
    store = settings(file)
    build_index([pages], tmp_path / "idx", store, embedder=Words())
    vectors = Index.open(tmp_path / "idx", Words())._vectors
    row = vectors._call("get", ids=[int(vectors._keys[0])])[0]
    vectors._call("upsert", data=[{"key": row["key"], "vector": np.roll(row["vector"], 1)}])
    with pytest.raises(IndexFolderError, match=r"vectors\.db, holds other vectors: rebuild the index$"):
        Index.open(tmp_path / "idx", Words())
    vectors._call("delete", ids=[row["key"]])
    with pytest.raises(IndexFolderError, match="holds 5 of 6 rows"):
        Index.open(tmp_path / "idx", Words())
    vectors._call("drop_collection")
    with pytest.raises(IndexFolderError, match="has no collection ragbed_"):
        Index.open(tmp_path / "idx", Words())
    assert build_index([pages], tmp_path / "idx", store, embedder=Words()).embedded_now == 0
    assert found(tmp_path / "idx", "danube vienna", 1)[0][0] == "1.txt"


def test_rows_of_a_killed_build_are_not_found_and_removed_by_the_next_build(file, pages, tmp_path):
    build_index([pages], tmp_path / "idx", settings(file), embedder=Words())
    vectors = Index.open(tmp_path / "idx", Words())._vectors
    near = Words().embed_passages(["zebras zebras zebras"])[0]
    vectors._call("insert", data=[{"key": 7, "vector": near}, {"key": 8, "vector": near}])
    assert [source for source, _ in found(tmp_path / "idx", "zebras zebras zebras", 2)] == ["3.txt", "4.txt"]
    (pages / "7.txt").write_text("a page that is new")
    build_index([pages], tmp_path / "idx", settings(file), embedder=Words())
    assert vectors._count() == 7


def test_shards_keep_their_vectors_and_the_merged_index_has_them_in_the_store(pages, file, tmp_path):
    for number in (1, 2):
        build_index([pages], tmp_path / "idx", settings(file), embedder=Words(), shard=Shard(number, 2))
        assert (Shard(number, 2).folder(tmp_path / "idx") / "vectors.faiss").is_file()
    merge_indexes([Shard(number, 2).folder(tmp_path / "idx") for number in (1, 2)], tmp_path / "idx")
    build_index([pages], tmp_path / "own", IndexSettings(titled=False), embedder=Words())
    assert_same(tmp_path, "zebras herd", 6)


@pytest.mark.parametrize(("given", "says"), [
    ({"uri": "vectors"}, "expected FILE.db or http://host:19530"),
    ({"uri": "https://me:secret@host"}, "put the token into MILVUS_TOKEN"),
    ({"uri": "v.db", "search": {"kind": "flat", "codes": "sq8"}}, "remove `codes`"),
    ({}, "Field required")])
def test_settings_that_milvus_does_not_have_are_refused(given, says):
    with pytest.raises(ValidationError, match=says):
        IndexSettings(vectors={"kind": "milvus", **given})


def test_errors_are_one_line_without_the_token(pages, tmp_path, ragbed, monkeypatch):
    words = ["index", pages, "--out", tmp_path / "idx", "--vectors"]
    ragbed.refuses(*words, "milvus", says=["vectors", "uri"])
    monkeypatch.setattr(milvus_vectors, "TIMEOUT", 1.0)
    monkeypatch.setenv("MILVUS_TOKEN", "secret-of-ours")
    ragbed.refuses(*words, "{kind: milvus, uri: 'http://127.0.0.1:9'}", says=["Milvus, http://127.0.0.1:9: "])
    monkeypatch.setattr("ragbed.documents.errors.find_spec", lambda name: None)
    ragbed.refuses(*words, f"{{kind: milvus, uri: {tmp_path}/v.db}}",
                   says=["pymilvus is not installed; run: pip install 'ragbed[milvus]'"])


@pytest.mark.slow
def test_a_file_that_another_process_has_open_is_named(pages, file, tmp_path, ragbed):
    build_index([pages], tmp_path / "idx", settings(file), embedder=Words())
    assert found(tmp_path / "idx", "zebras", 1)
    other = subprocess.run([*COMMAND, "search", "zebras", "--index", tmp_path / "idx"], capture_output=True, text=True)
    assert (other.returncode, other.stdout, len(other.stderr.splitlines())) == (2, "", 1)
    assert "only one process at a time can open such a file" in other.stderr


def test_a_strangers_server_is_asked_only_after_the_user_named_it(pages, tmp_path, server, monkeypatch):
    build_index([pages], tmp_path / "idx", settings(server.url), embedder=Words())
    monkeypatch.setattr("ragbed.retrieval.embedders.opening.is_loopback", lambda url: False)
    with pytest.raises(SettingsError, match=r"keeps its vectors on a server, .* and MILVUS_TOKEN; if you trust it"):
        Index.open(tmp_path / "idx", Words())
    build_index([pages], tmp_path / "idx", settings(server.url), embedder=Words())  # the user names it
    assert found(tmp_path / "idx", "zebras", 1)


def test_the_token_is_written_nowhere(pages, tmp_path, server, monkeypatch):
    monkeypatch.setenv("MILVUS_TOKEN", "secret-of-ours")
    build_index([pages], tmp_path / "idx", settings(server.url), embedder=Words())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if b"secret-of-ours" in path.read_bytes()]


def test_an_env_file_in_the_working_folder_is_not_read(tmp_path):
    (tmp_path / ".env").write_text("STRANGE=1\nMILVUS_URI=http://stranger\n")
    code = ("import os, ragbed.experiments.guests.milvus.collection as m; m._milvus(); "
            "assert 'STRANGE' not in os.environ, 'read'")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True,
                   env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])})


@pytest.mark.slow
def test_a_server_that_goes_away_stops_a_run_which_continues_when_it_is_back(
        pages, tmp_path, serve, ragbed, monkeypatch):
    monkeypatch.setattr(milvus_vectors, "TIMEOUT", 1.5)
    server = Server(tmp_path / "served")
    chosen = f"{{kind: milvus, uri: '{server.url}'}}"
    assert ragbed("index", pages, "--out", tmp_path / "idx", "--vectors", chosen)[0] == 0
    rows = [{"id": str(number), "question": f"Where is number {number}? {text}", "answer": text}
            for number, text in enumerate(RIVERS)]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked, gone = [], [3]

    def reply(body):
        asked.append(body)
        if len(asked) in gone:
            server.kill()
        return "<Answer>paris [1]</Answer>"

    path = tmp_path / "cut.yaml"
    path.write_text(json.dumps({
        "name": "cut", "out": str(tmp_path / "runs"), "models": f"{serve(reply).url}#m", "reasoning": "direct",
        "concurrency": 1, "benchmark": {"kind": "jsonl", "path": str(tmp_path / "own.jsonl")},
        "retriever": {"kind": "dense", "index": str(tmp_path / "idx"), "k": 2}}))
    ragbed.refuses("run", path, says=[f"Milvus, {server.url}: "])
    assert len(asked) == 3
    server.start()
    subprocess.run([*COMMAND, "run", path], check=True, capture_output=True)  # this process waits before it retries
    assert len(asked) == 6  # no question was asked twice
    cut = (tmp_path / "runs" / "cut" / "summary.json").read_bytes()
    assert ragbed("run", path, "--fresh")[0] == 0
    assert (tmp_path / "runs" / "cut" / "summary.json").read_bytes() == cut
    server.kill()
