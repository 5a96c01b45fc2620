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

from ragbed.documents import IndexFolderError, SettingsError
from ragbed.documents.shards import Shard
from ragbed.experiments.guests.cluster.merge_indexes import merge_indexes
from ragbed.retrieval import Flat, Hnsw, Index, IndexSettings, VectorIndex, build_index
from ragbed.retrieval.milvus import MilvusVectors
from ragbed.retrieval.retrievers.dense import nearest_chunks

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


@pytest.fixture
def server(tmp_path):
    running = Server(tmp_path / "served")
    yield running
    running.kill()


@pytest.fixture(params=["file", "server"])
def uri(request, tmp_path):
    """An address of Milvus: a file, and a server."""
    return str(tmp_path / "vectors.db") if request.param == "file" else request.getfixturevalue("server").url


@pytest.fixture
def pages(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    for number, text in enumerate(RIVERS):
        (folder / f"{number}.txt").write_text(text)
    return folder


def settings(uri: str) -> IndexSettings:
    return IndexSettings(store=f"milvus:{uri}", titled=False)


def found(index: Path, query: str, k: int = 3) -> list[tuple[str, float]]:
    opened = Index.open(index, Words())
    return [(opened.source_of(hit.chunk.document), hit.score) for hit in opened.search([query], k)[0]]


def same(folder: Path, query: str, k: int) -> bool:
    """Whether the indexes `idx` and `own` find the same, but for the last digit of scores."""
    ours, theirs = (found(folder / name, query, k) for name in ("idx", "own"))
    return ours == [(source, pytest.approx(score, abs=2e-6)) for source, score in theirs]


def noisy(count: int) -> np.ndarray:
    """Unit vectors in clusters of ten."""
    made = np.random.default_rng(5)
    centres = made.normal(size=(count // 10, 64))
    rows = np.repeat(centres, 10, axis=0) + 0.4 * made.normal(size=(count, 64))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize(("kind", "least"), [(Flat(), 1.0), (Hnsw(), 0.98)])
def test_it_finds_what_faiss_finds(uri, kind, least, tmp_path):
    vectors = noisy(3_000)
    queries, owners = vectors[::60], np.arange(3_000)
    stored = MilvusVectors.build(uri, tmp_path / "idx", "made", vectors, kind, None, lambda more: None)
    exact = VectorIndex.build(vectors, Flat())
    near = [[row for row, _ in hits] for hits in nearest_chunks(exact, owners, queries, 10)]
    same = [[row for row, _ in hits] for hits in nearest_chunks(stored, owners, queries, 10)]
    assert np.mean([len({*a} & {*b}) / 10 for a, b in zip(near, same, strict=True)]) >= least
    assert (stored.stored(7, 9) == vectors[7:9]).all()


@pytest.mark.parametrize("share", [0.001, 0.5, 0.999])
def test_a_mask_is_kept_to_by_the_store(share, tmp_path, monkeypatch):
    monkeypatch.setattr("ragbed.retrieval.milvus.LISTED", 400)  # so that half of them need several searches
    vectors = noisy(2_000)
    among = np.random.default_rng(1).random(2_000) < share
    among[17] = True
    stored = MilvusVectors.build(str(tmp_path / "v.db"), tmp_path / "idx", "made", vectors, Flat(), None, print)
    for (scores, rows), (other, same) in [(stored.search(vectors[:20], 30, among),
                                           VectorIndex.build(vectors, Flat()).search(vectors[:20], 30, among))]:
        assert (rows == same).all()
        assert np.allclose(scores, other, atol=1e-6)
        assert among[rows[rows >= 0]].all()


def test_what_changed_is_sent_and_removed_and_equal_texts_are_told_apart(uri, pages, tmp_path):
    report = build_index([pages], tmp_path / "idx", settings(uri), embedder=Words())
    assert "all 6 vectors are compared by Milvus (exact" in report.how
    build_index([pages], tmp_path / "own", IndexSettings(titled=False), embedder=Words())
    assert same(tmp_path, "zebras herd", 3)
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
    build_index([pages], tmp_path / "idx", settings(uri).model_copy(update={"vectors": Hnsw()}), embedder=Words())
    assert not opened._vectors._call("has_collection")  # that of the other kind is gone


def test_a_store_that_was_emptied_or_changed_is_refused_and_built_anew(pages, tmp_path):
    store = settings(str(tmp_path / "v.db"))
    build_index([pages], tmp_path / "idx", store, embedder=Words())
    vectors = Index.open(tmp_path / "idx", Words())._vectors
    row = vectors._call("get", ids=[int(vectors._keys[0])])[0]
    vectors._call("upsert", data=[{"key": row["key"], "vector": np.roll(row["vector"], 1)}])
    with pytest.raises(IndexFolderError, match=r"v\.db, holds other vectors: build the index anew$"):
        Index.open(tmp_path / "idx", Words())
    vectors._call("delete", ids=[row["key"]])
    with pytest.raises(IndexFolderError, match="holds 5 of 6 rows"):
        Index.open(tmp_path / "idx", Words())
    vectors._call("drop_collection")
    with pytest.raises(IndexFolderError, match="has no collection ragbed_"):
        Index.open(tmp_path / "idx", Words())
    assert build_index([pages], tmp_path / "idx", store, embedder=Words()).embedded_now == 0
    assert found(tmp_path / "idx", "danube vienna", 1)[0][0] == "1.txt"


def test_rows_that_a_killed_build_left_are_not_found_and_go_with_the_next_build(pages, tmp_path):
    store = settings(str(tmp_path / "v.db"))
    build_index([pages], tmp_path / "idx", store, embedder=Words())
    vectors = Index.open(tmp_path / "idx", Words())._vectors
    near = Words().embed_passages(["zebras zebras zebras"])[0]
    vectors._call("insert", data=[{"key": 7, "vector": near}, {"key": 8, "vector": near}])
    assert [source for source, _ in found(tmp_path / "idx", "zebras zebras zebras", 2)] == ["3.txt", "4.txt"]
    (pages / "7.txt").write_text("a page that is new")
    build_index([pages], tmp_path / "idx", store, embedder=Words())
    assert vectors._count() == 7


def test_shards_keep_their_vectors_and_the_merged_index_has_them_in_the_store(pages, tmp_path):
    store = settings(str(tmp_path / "v.db"))
    for number in (1, 2):
        build_index([pages], tmp_path / "idx", store, embedder=Words(), shard=Shard(number, 2))
    assert not (tmp_path / "v.db").exists()
    merge_indexes([Shard(number, 2).folder(tmp_path / "idx") for number in (1, 2)], tmp_path / "idx")
    build_index([pages], tmp_path / "own", IndexSettings(titled=False), embedder=Words())
    assert same(tmp_path, "zebras herd", 6)


@pytest.mark.parametrize(("store", "says"), [
    ("vectors.db", "a store is written milvus:FILE.db, or milvus:http://host:19530"),
    ("milvus:vectors", "a store is written milvus:FILE.db"),
    ("milvus:https://me:secret@host", "the token goes into MILVUS_TOKEN")])
def test_an_address_of_another_form_is_refused(store, says):
    with pytest.raises(SettingsError, match=says) as refused:
        IndexSettings(store=store)
    assert "secret" not in str(refused.value)


def test_what_milvus_cannot_do_is_one_line(pages, tmp_path, ragbed, monkeypatch):
    told = ragbed.refuses
    command = ["index", pages, "--out", tmp_path / "idx", "--embedder", "static:none"]
    told(*command, "--store", f"milvus:{tmp_path}/v.db", "--vectors", "ivf_pq", says=["static"])
    monkeypatch.setattr("ragbed.retrieval.milvus.SECONDS", 1.0)
    monkeypatch.setenv("MILVUS_TOKEN", "secret-of-ours")
    told("index", pages, "--out", tmp_path / "idx", "--store", "milvus:http://127.0.0.1:9",
         says=["Milvus, http://127.0.0.1:9: "])
    monkeypatch.setattr("ragbed.documents.errors.find_spec", lambda name: None)
    told("index", pages, "--out", tmp_path / "idx", "--store", f"milvus:{tmp_path}/v.db",
         says=["pymilvus is not installed; run: pip install 'ragbed[milvus]'"])


def test_a_file_that_another_process_has_open_is_named(pages, tmp_path, ragbed):
    build_index([pages], tmp_path / "idx", settings(str(tmp_path / "v.db")), embedder=Words())
    assert found(tmp_path / "idx", "zebras", 1)
    other = subprocess.run([*COMMAND, "search", "zebras", "--index", tmp_path / "idx"], capture_output=True, text=True)
    assert (other.returncode, other.stdout, len(other.stderr.splitlines())) == (2, "", 1)
    assert "one process at a time has such a file open" in other.stderr


def test_a_strangers_server_is_asked_only_after_the_user_named_it(pages, tmp_path, server, monkeypatch):
    build_index([pages], tmp_path / "idx", settings(server.url), embedder=Words())
    monkeypatch.setattr("ragbed.retrieval.embedders.opening.is_loopback", lambda url: False)
    with pytest.raises(SettingsError, match=r"keeps its vectors on a server, .* and MILVUS_TOKEN; if you trust it"):
        Index.open(tmp_path / "idx", Words())
    build_index([pages], tmp_path / "idx", settings(server.url), embedder=Words())  # the user names it
    assert found(tmp_path / "idx", "zebras", 1)


def test_the_token_is_sent_and_kept_nowhere(pages, tmp_path, server, monkeypatch):
    monkeypatch.setenv("MILVUS_TOKEN", "secret-of-ours")
    build_index([pages], tmp_path / "idx", settings(server.url), embedder=Words())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 5
    assert not [path for path in files if b"secret-of-ours" in path.read_bytes()]


def test_an_env_file_around_is_not_read(tmp_path):
    (tmp_path / ".env").write_text("STRANGE=1\nMILVUS_URI=http://stranger\n")
    code = "import os, ragbed.retrieval.milvus as m; m._milvus(); assert 'STRANGE' not in os.environ, 'read'"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True,
                   env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])})


def test_a_server_that_goes_away_stops_a_run_which_goes_on_when_it_is_back(
        pages, tmp_path, server, serve, ragbed, monkeypatch):
    monkeypatch.setattr("ragbed.retrieval.milvus.SECONDS", 3.0)
    assert ragbed("index", pages, "--out", tmp_path / "idx", "--store", f"milvus:{server.url}")[0] == 0
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
    subprocess.run([*COMMAND, "run", path], check=True, capture_output=True)  # this process waits before it tries again
    assert len(asked) == 6  # none was asked twice
    cut = (tmp_path / "runs" / "cut" / "summary.json").read_bytes()
    subprocess.run([*COMMAND, "run", path, "--fresh"], check=True, capture_output=True)
    assert (tmp_path / "runs" / "cut" / "summary.json").read_bytes() == cut
