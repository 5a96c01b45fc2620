"""Every text is embedded once ever, also across processes and after a kill."""
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from embedders import Lengths
from patience import SECONDS, until

from ragbed.documents import SettingsError, digest
from ragbed.retrieval.storage.cache import CachedEmbedder


class Hashing(Lengths):
    """Vectors out of hashes."""

    name, identity, dimension, at_once = "hashing", "hashing-1", 8, 64

    def embed_queries(self, texts):
        return -self.embed_passages(texts)

    def embed_passages(self, texts):
        super().embed_passages(texts)
        rows = [np.frombuffer(hashlib.sha256(text.encode()).digest()[:8], np.uint8) for text in texts]
        vectors = np.stack(rows).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_equal_text_is_embedded_once_ever_by_each_embedder_as_a_query_and_as_a_passage(tmp_path: Path) -> None:
    first, second = Hashing(), Hashing()
    cached = CachedEmbedder(first, tmp_path)
    vectors = cached.embed_passages(["a", "b", "a"])
    again = CachedEmbedder(second, tmp_path)
    np.testing.assert_array_equal(again.embed_passages(["b", "a", "c"]),
                                  [vectors[1], vectors[0], Hashing().embed_passages(["c"])[0]])
    assert sorted(first.seen) == ["a", "b"]
    assert second.seen == ["c"]
    assert (cached.embedded, cached.reused, again.embedded, again.reused) == (2, 0, 1, 2)
    np.testing.assert_array_equal(again.embed_queries(["a"]), -vectors[:1])
    other = Hashing()
    other.identity = "hashing-2"
    CachedEmbedder(other, tmp_path).embed_passages(["a"])
    assert (second.seen, other.seen) == (["c", "a"], ["a"])


def test_what_makes_only_queries_others_costs_no_passage(tmp_path: Path) -> None:
    one, other = Hashing(), Hashing()
    other.identity, other.passage_identity = "hashing-1-asking", "hashing-1"
    expected = CachedEmbedder(one, tmp_path).embed_passages(["a"])
    CachedEmbedder(one, tmp_path).embed_queries(["a"])
    again = CachedEmbedder(other, tmp_path)
    np.testing.assert_array_equal(again.embed_passages(["a"]), expected)
    assert other.seen == []
    again.embed_queries(["a"])
    assert other.seen == ["a"]


def test_a_damaged_store_is_named(tmp_path: Path) -> None:
    CachedEmbedder(Hashing(), tmp_path).embed_passages(["a"])
    (store,) = tmp_path.glob("*.sqlite")
    store.write_bytes(b"this is no database" * 1_000)
    with pytest.raises(SettingsError, match=store.name):
        CachedEmbedder(Hashing(), tmp_path)


@pytest.mark.parametrize("damage", [
    np.full(8, np.nan, "<f4").tobytes(), np.zeros(8, "<f4").tobytes(), np.full(8, 1e30, "<f4").tobytes(), b"abc", b"",
    np.eye(8, dtype="<f4")[0][:4].tobytes(), np.eye(8, dtype="<f4")[3].tobytes(), "text", 3, "wrong\0text"])
def test_a_damaged_vector_is_embedded_again_and_replaced(tmp_path, damage):
    expected = CachedEmbedder(Hashing(), tmp_path).embed_passages(["a", "b"])
    (store,) = tmp_path.glob("*.sqlite")
    with closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE rows SET vector = ? WHERE key = ?", [damage, digest("passage", "a")])
    for again in (["a"], []):
        mended = Hashing()
        np.testing.assert_array_equal(CachedEmbedder(mended, tmp_path).embed_passages(["a", "b"]), expected)
        assert mended.seen == again


def test_only_a_damaged_store_is_to_be_deleted(tmp_path):
    cached = CachedEmbedder(Hashing(), tmp_path)
    cached.embed_passages(["a"])
    store = cached._store._database
    store.execute(f"PRAGMA max_page_count={store.execute('PRAGMA page_count').fetchone()[0]}")
    with pytest.raises(SettingsError, match=r"full.*: free space on its disk, or set RAGBED_CACHE"):
        cached.embed_passages([str(number) for number in range(300)])
    store.execute("PRAGMA query_only=1")
    with pytest.raises(SettingsError, match=r"readonly.*: make it and its folder writable"):
        cached.embed_passages(["c"])
    store.execute("PRAGMA query_only=0")
    store.execute("DROP TABLE rows")
    with pytest.raises(SettingsError, match=r"no such table.*: delete it"):
        cached.embed_passages(["c"])


@pytest.mark.slow
def test_processes_share_the_store(tmp_path: Path) -> None:
    children = [_child(tmp_path, number * 300, 0.05) for number in range(3)]
    assert [child.wait(SECONDS) for child in children] == [0, 0, 0]
    last = Hashing()
    CachedEmbedder(last, tmp_path).embed_passages([str(number) for number in range(1_200)])
    assert last.seen == []


def test_a_killed_build_keeps_what_was_committed(tmp_path: Path) -> None:
    child = _child(tmp_path, 0, 0.5)
    until(lambda: _committed(tmp_path))
    child.send_signal(signal.SIGKILL)
    assert child.wait(SECONDS) == -signal.SIGKILL
    resumed = Hashing()
    CachedEmbedder(resumed, tmp_path).embed_passages([str(number) for number in range(600)])
    assert len(resumed.seen) in {600 - 64, 600 - 2 * 64}


def _committed(folder: Path) -> int:
    stores = list(folder.glob("*.sqlite"))
    if not stores:
        return 0
    with closing(sqlite3.connect(stores[0])) as database:
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return database.execute("SELECT count(*) FROM rows").fetchone()[0] if tables else 0


def _child(folder: Path, first: int, seconds: float) -> subprocess.Popen[bytes]:
    """A process that embeds the 600 numbers from `first`, a group in that many seconds."""
    root = Path(__file__).parent.parent
    return subprocess.Popen([sys.executable, __file__, str(folder), str(first), str(seconds)],
                            env={**os.environ, "PYTHONPATH": str(root)})


if __name__ == "__main__":
    start = int(sys.argv[2])
    CachedEmbedder(Hashing(float(sys.argv[3])), Path(sys.argv[1])).embed_passages(
        [str(number) for number in range(start, start + 600)])
