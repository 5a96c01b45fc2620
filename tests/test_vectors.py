"""Flat and graph search: what is found, and that the choice between them is stated."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from documents.errors import IndexFolderError
from retrieval import vectors
from retrieval.dense import nearest_chunks
from retrieval.vectors import VectorIndex

if TYPE_CHECKING:
    from retrieval.embedder import Matrix


def unit(rows: int, seed: int = 0, dimension: int = 32) -> Matrix:
    drawn = np.random.default_rng(seed).standard_normal((rows, dimension)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_flat_scores_are_inner_products_best_first() -> None:
    index = VectorIndex.build(np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32))
    scores, rows = index.search(np.array([[1, 0]], np.float32), 3)
    np.testing.assert_allclose(scores, [[1, 0.6, 0]], atol=1e-6)
    assert rows.tolist() == [[0, 2, 1]]


def test_the_graph_finds_nearly_what_comparing_all_finds(tmp_path: Path) -> None:
    stored, queries = unit(5_000), unit(100, seed=1)
    graph = VectorIndex.build(stored, "hnsw")
    graph.write(tmp_path / "graph")
    graph = VectorIndex.read(tmp_path / "graph", "hnsw")
    exact = VectorIndex.build(stored, "flat").search(queries, 10)[1]
    near = graph.search(queries, 10)[1]
    shared = [len(set(one) & set(other)) / 10 for one, other in zip(exact.tolist(), near.tolist(), strict=True)]
    assert np.mean(shared) > 0.95
    assert graph.search(queries[:1], 3_000)[1].min() >= 0


def test_building_the_graph_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        VectorIndex.build(unit(2_000), "hnsw").write(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_number_of_vectors_decides_and_the_choice_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "FLAT_LIMIT", 100)
    small, large = VectorIndex.build(unit(100)), VectorIndex.build(unit(101))
    assert (small.kind, large.kind) == ("flat", "hnsw")
    assert small.describe().startswith("flat: all 100 vectors are compared")
    assert large.describe().startswith("hnsw: 101 vectors in a graph")
    assert small.describe().endswith("(exact; chosen up to 100 vectors)")
    assert large.describe().endswith("(approximate; chosen above 100 vectors)")
    assert VectorIndex.build(unit(101), "flat").describe() == "flat: all 101 vectors are compared (exact; as set)"
    assert VectorIndex.build(unit(9), "hnsw").describe().endswith("(approximate; as set)")


def test_a_file_that_is_no_index_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"no index")
    with pytest.raises(IndexFolderError, match="bad"):
        VectorIndex.read(tmp_path / "bad", "flat")


def test_a_chunk_counts_once_with_its_best_window_and_k_chunks_are_found() -> None:
    # Chunk 0 has fifty windows nearer than any other chunk's only one.
    angles = np.concatenate([np.linspace(0, 0.3, 50), [0.5, 0.9, 0.7]])
    index = VectorIndex.build(np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))
    owners = np.array([0] * 50 + [1, 2, 3])
    query = np.array([[1, 0]], np.float32)
    (three,) = nearest_chunks(index, owners, query, 3)
    assert [row for row, _ in three] == [0, 1, 3]
    np.testing.assert_allclose([score for _, score in three], np.cos([0, 0.5, 0.7]), atol=1e-6)
    (all_there_are,) = nearest_chunks(index, owners, query, 100)
    assert [row for row, _ in all_there_are] == [0, 1, 3, 2]
    assert nearest_chunks(index, owners, query, 0) == [[]]


def test_equal_scores_are_ordered_by_row() -> None:
    index = VectorIndex.build(np.array([[0, 1], [1, 0], [1, 0], [1, 0]], np.float32))
    (found,) = nearest_chunks(index, np.arange(4), np.array([[1, 0]], np.float32), 4)
    assert [row for row, _ in found] == [1, 2, 3, 0]
