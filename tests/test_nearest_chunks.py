"""From nearest vectors to nearest chunks: windows, ties and masks."""
import numpy as np

import retrieval.retrievers.dense
from retrieval import Hnsw, VectorIndex
from retrieval.retrievers.dense import nearest_chunks

EAST = np.array([[1, 0]], np.float32)


def at(*angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def rows(found):
    return [row for row, _ in found]


# Chunk 0 has fifty windows nearer than any other chunk's only one.
INDEX = VectorIndex.build(at(*np.linspace(0, 0.3, 50), 0.5, 0.9, 0.7))
OWNERS = np.array([0] * 50 + [1, 2, 3])


def test_a_chunk_counts_once_with_its_best_window_and_k_chunks_are_found():
    (three,) = nearest_chunks(INDEX, OWNERS, EAST, 3)
    assert rows(three) == [0, 1, 3]
    np.testing.assert_allclose([score for _, score in three], np.cos([0, 0.5, 0.7]), atol=1e-6)
    assert rows(nearest_chunks(INDEX, OWNERS, EAST, 100)[0]) == [0, 1, 3, 2]
    assert nearest_chunks(INDEX, OWNERS, EAST, 0) == [[]]


def test_a_mask_over_chunks_leaves_out_their_windows():
    found = nearest_chunks(INDEX, OWNERS, np.vstack([EAST, EAST]), 2, np.array([False, True, True, True]))
    assert [rows(one) for one in found] == [[1, 3], [1, 3]]
    assert rows(nearest_chunks(INDEX, OWNERS, EAST, 5, np.array([True, False, True, False]))[0]) == [0, 2]
    assert nearest_chunks(INDEX, OWNERS, EAST, 5, np.zeros(4, bool)) == [[]]


def test_of_many_equal_chunks_the_first_rows_are_found():
    vectors = np.repeat(at(0.4, 0.1, 0.8), [30, 400, 30], axis=0)
    assert rows(nearest_chunks(VectorIndex.build(vectors), np.arange(460), EAST, 3)[0]) == [30, 31, 32]


def test_what_differs_in_the_last_digits_is_a_tie():
    vectors = np.array([[0.5, 0], [0.50000004, 0]], np.float32)
    (found,) = nearest_chunks(VectorIndex.build(vectors), np.arange(2), EAST, 2)
    assert rows(found) == [0, 1]


def test_a_graph_finds_as_many_chunks_as_there_are():
    drawn = np.random.default_rng(0).standard_normal((9_000, 16)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    index = VectorIndex.build(drawn, Hnsw(neighbours=4, ef_build=8, ef_search=8))
    found = nearest_chunks(index, np.arange(9_000) // 3_000, drawn[:2], 3)
    assert [sorted(rows(one)) for one in found] == [[0, 1, 2], [0, 1, 2]]


def test_many_queries_are_searched_in_blocks_and_find_what_each_finds_alone(monkeypatch):
    queries = at(*np.linspace(0, 1, 40))
    alone = [nearest_chunks(INDEX, OWNERS, query[None], 3)[0] for query in queries]
    monkeypatch.setattr(retrieval.retrievers.dense, "BLOCK", 60)  # ten queries of six vectors each
    assert nearest_chunks(INDEX, OWNERS, queries, 3) == alone
