"""An index folder is whole or not at all: kills, damage, other versions and other embedders."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from documents.errors import IndexFolderError
from retrieval.build import build_index
from retrieval.folder import replaced, settled
from retrieval.index import Index

if TYPE_CHECKING:
    from retrieval.embedder import Matrix, Span

FILES = ["chunks.parquet", "documents.parquet", "manifest.json", "vectors.faiss"]


class Lengths:
    """A vector out of a text's length."""

    name, identity, dimension, window = "lengths", "lengths-1", 2, 100

    def windows(self, texts: Sequence[str], header: str = "") -> list[list[Span]]:
        return [[(0, len(text))] for text in texts]

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self.embed_passages(texts)

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        angles = np.array([len(text) for text in texts], np.float32)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "one.txt").write_text("text of one")
    build_index([tmp_path / "pages"], tmp_path / "index", embedder=Lengths())
    return tmp_path / "index"


def test_the_folder_holds_what_the_manifest_says(index: Path) -> None:
    assert sorted(path.name for path in index.iterdir()) == FILES
    manifest = Index.open(index, Lengths()).manifest
    assert (manifest.documents, manifest.chunks, manifest.windows, manifest.kind) == (1, 1, 1, "flat")
    assert sorted(manifest.files) == sorted(set(FILES) - {"manifest.json"})
    assert list(index.parent.glob(".index*")) == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_one_changed_bit_is_found_and_the_file_named(index: Path, name: str, place: float) -> None:
    data = bytearray((index / name).read_bytes())
    data[int(len(data) * place)] ^= 1
    (index / name).write_bytes(data)
    with pytest.raises(IndexFolderError, match=rf"{name} is damaged|is an index of version") as caught:
        Index.open(index, Lengths())
    assert "\n" not in str(caught.value)
    build_index([index.parent / "pages"], index, embedder=Lengths())
    Index.open(index, Lengths())


@pytest.mark.parametrize("name", FILES[:2] + FILES[3:])
def test_a_missing_file_is_named(index: Path, name: str) -> None:
    (index / name).unlink()
    with pytest.raises(IndexFolderError, match=rf"{name} is missing"):
        Index.open(index, Lengths())


def test_a_folder_that_is_no_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(IndexFolderError, match="is no index: make one with `ragbed index SOURCES --out"):
        Index.open(tmp_path)
    with pytest.raises(IndexFolderError, match="does not exist"):
        Index.open(tmp_path / "nowhere")


def test_another_version_is_refused(index: Path) -> None:
    body = json.loads((index / "manifest.json").read_bytes())
    (index / "manifest.json").write_text(json.dumps({**body, "version": 2}))
    with pytest.raises(IndexFolderError, match="is an index of version 2, and this ragbed reads version 1"):
        Index.open(index, Lengths())


def test_another_embedder_is_refused_by_name(index: Path) -> None:
    other = Lengths()
    other.name, other.identity = "other", "other-1"
    with pytest.raises(IndexFolderError, match=r"was made with embedder lengths .*, not with other"):
        Index.open(index, other)


def test_a_failure_while_writing_leaves_the_old_content(index: Path) -> None:
    def interrupted() -> None:
        with replaced(index) as fresh:
            (fresh / "half").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert sorted(path.name for path in index.iterdir()) == FILES
    assert list(index.parent.glob(".index*")) == []


def test_a_kill_between_the_two_renames_loses_nothing(index: Path) -> None:
    os.rename(index, index.parent / ".index.old")
    assert Index.open(index, Lengths()).manifest.documents == 1
    assert build_index([index.parent / "pages"], index, embedder=Lengths()).parsed == 0
    assert settled(index) == index
    assert list(index.parent.glob(".index*")) == []


def test_a_kill_at_any_moment_leaves_an_index_that_opens(index: Path) -> None:
    for delay in (0.0, 0.02, 0.05, 0.1, 0.15):
        child = subprocess.Popen([sys.executable, __file__, str(index)], stdout=subprocess.PIPE,
                                 env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)})
        assert child.stdout is not None
        assert child.stdout.readline() == b"building\n"
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        assert child.wait(30) == -signal.SIGKILL
        child.stdout.close()
        assert Index.open(index, Lengths()).manifest.documents in {1, 2}


def test_a_search_goes_on_while_the_index_is_replaced(index: Path) -> None:
    opened = Index.open(index, Lengths())
    (index.parent / "pages" / "two.txt").write_text("text of two, longer")
    build_index([index.parent / "pages"], index, embedder=Lengths())
    threads = [threading.Thread(target=opened.search, args=(["a query"], 2)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (hits,) = opened.search(["a query"], 2)
    assert [opened.source_of(hit.chunk.document) for hit in hits] == ["one.txt"]
    assert opened.document(hits[0].chunk.document).plain.strip() == "text of one"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    print("building", flush=True)
    for turn in range(10_000):
        (target.parent / "pages" / "two.txt").write_text(f"turn {turn}")
        build_index([target.parent / "pages"], target, embedder=Lengths())
