"""Every kind of vector index: what it finds, under a mask too, out of its file, and twice the same."""
import numpy as np
import pytest

from ragbed.documents import IndexFolderError, ModelError
from ragbed.retrieval import Flat, Hnsw, RaBitQ, VectorIndex
from ragbed.retrieval.retrievers import dense
from ragbed.retrieval.retrievers.dense import nearest_chunks
from ragbed.retrieval.vector_index import FILE

DIMENSION = 32

# The least share of the ten nearest that each finds among 4,000 vectors in 60 clusters.
KINDS = [(Flat(), 1.0), (Flat(codes="float16"), 0.99), (Flat(codes="sq8"), 0.95),
         (RaBitQ(candidates=60), 0.97), (RaBitQ(codes="sq8", candidates=60), 0.94),
         (Hnsw(ef_build=40, ef_search=40), 0.97), (Hnsw(codes="sq8", ef_build=40, ef_search=40), 0.94)]
NAMES = [f"{one.kind}-{one.codes}" for one, _ in KINDS]


def clustered(rows, seed):
    centres = np.random.default_rng(0).standard_normal((60, DIMENSION))
    rng = np.random.default_rng(seed)
    drawn = centres[rng.integers(0, 60, rows)] + 0.7 * rng.standard_normal((rows, DIMENSION))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


STORED, QUERIES = clustered(4_000, 1), clustered(50, 2)


@pytest.fixture(scope="module", params=KINDS, ids=NAMES)
def built(request, tmp_path_factory):
    """An index of each kind, its file, and the share that it finds."""
    settings, least = request.param
    index = VectorIndex.build(STORED, settings)
    index.write(folder := tmp_path_factory.mktemp("vectors"))
    return index, folder / FILE, least


def truth(among=None, k=10):
    products = QUERIES @ STORED.T
    if among is not None:
        products[:, ~among] = -2
    return np.argsort(-products, axis=1, kind="stable")[:, :k]


def shared(found, expected):
    return np.mean([len(set(one) & set(other)) / len(other)
                    for one, other in zip(found.tolist(), expected.tolist(), strict=True)])


def test_a_kind_finds_nearly_what_comparing_all_finds(built):
    index, _, least = built
    scores, rows = index.search(QUERIES, 10)
    assert (len(index), index.dimension) == (4_000, DIMENSION)
    assert shared(rows, truth()) >= least
    assert (np.diff(scores, axis=1) <= 0).all()
    np.testing.assert_allclose(scores, np.einsum("qd,qkd->qk", QUERIES, STORED[rows]), atol=0.02)


def test_a_mask_decides_before_the_search_also_one_of_a_cluster_far_away(built):
    index, _, least = built
    drawn, cluster = np.random.default_rng(3).random(4_000), STORED @ STORED[0] > 0.6
    assert 20 < cluster.sum() < 300
    for among, share in ((drawn < 0.7, least), (drawn < 0.01, least), (cluster, min(least, 0.9))):
        rows = index.search(QUERIES, 10, among)[1]
        assert among[rows].all()
        assert shared(rows, truth(among)) >= share


def test_a_mask_that_leaves_out_the_nearest_does_not_cost_recall():
    among = QUERIES[0] @ STORED.T < 0
    rows = VectorIndex.build(STORED, RaBitQ(candidates=60)).search(QUERIES, 10, among)[1]
    assert among[rows].all()
    assert shared(rows, truth(among)) >= 0.97


def test_a_few_much_larger_numbers_do_not_cost_recall():
    drawn = np.random.default_rng(5).standard_normal((3_050, 96)).astype(np.float32)
    drawn[:, :4] *= 8
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    stored, queries = drawn[:3_000], drawn[3_000:]
    rows = VectorIndex.build(stored, RaBitQ(candidates=100)).search(queries, 10)[1]
    assert shared(rows, np.argsort(-queries @ stored.T, axis=1)[:, :10]) >= 0.95  # 0.63 without the rotation


def test_threads_and_rounded_vectors_change_no_byte_of_codes(monkeypatch, tmp_path):
    written = []
    rounded = VectorIndex.build(STORED, RaBitQ()).stored(0, 4_000)
    for cores, stored in ((1, STORED), (2, STORED), (2, rounded)):
        monkeypatch.setattr("ragbed.retrieval.vector_index.count_cores", lambda cores=cores: cores)
        VectorIndex.build(stored, RaBitQ()).write(tmp_path)
        written.append((tmp_path / FILE).read_bytes())
    assert written[0] == written[1] == written[2]


def test_a_mapped_file_gives_the_same_results(built):
    index, path, _ = built
    mapped = VectorIndex.read(path, index.settings)
    among = np.arange(4_000) % 3 > 0
    for mask in (None, among):
        for one, other in zip(index.search(QUERIES, 10, mask), mapped.search(QUERIES, 10, mask), strict=True):
            np.testing.assert_array_equal(one, other)
    assert path.stat().st_size == pytest.approx(index.settings.size(4_000, DIMENSION), rel=0.03)


@pytest.mark.slow
def test_building_twice_gives_the_same_bytes(built, tmp_path):
    index, path, _ = built
    np.save(tmp_path / "stored.npy", STORED)
    mapped = np.load(tmp_path / "stored.npy", mmap_mode="r")
    VectorIndex.build(mapped, index.settings).write(tmp_path)
    assert (tmp_path / FILE).read_bytes() == path.read_bytes()


def test_every_vector_is_found_where_all_are_asked_for(built):
    rows = built[0].search(QUERIES[:1], 4_010)[1][0]
    assert sorted(rows[:4_000]) == list(range(4_000))
    assert (rows[4_000:] == -1).all()


@pytest.mark.parametrize("settings", [one for one, _ in KINDS], ids=NAMES)
@pytest.mark.parametrize("count", [0, 20])
def test_few_vectors_are_indexed_too(settings, count, tmp_path, capfd):
    index = VectorIndex.build(STORED[:count], settings)
    index.write(tmp_path)
    rows = VectorIndex.read(tmp_path / FILE, index.settings).search(QUERIES[:2], 25)[1]
    assert [sorted(row[row >= 0]) for row in rows] == [list(range(count))] * 2
    assert capfd.readouterr() == ("", "")


def test_a_query_that_is_no_number_finds_nothing(built):
    index, *_ = built
    queries = QUERIES[:2].copy()
    queries[0, 0] = np.nan
    rows = index.search(queries, 3)[1]
    assert (rows[0] == -1).all()
    assert (rows[1] >= 0).all()
    assert nearest_chunks(index, np.arange(4_000), queries, 3)[0] == []


def test_no_query_no_k_and_an_empty_mask_find_nothing():
    index = VectorIndex.build(STORED, Flat())
    assert index.search(QUERIES[:0], 3)[1].shape == (0, 3)
    assert index.search(QUERIES, 0)[1].shape == (50, 0)
    assert (index.search(QUERIES, 3, np.zeros(4_000, bool))[1] == -1).all()


def test_a_vector_that_is_no_number_is_refused():
    with pytest.raises(ModelError, match="not finite"):
        VectorIndex.build(np.array([[1, np.nan]], np.float32), Flat())


def test_building_tells_how_many_vectors_were_added(monkeypatch):
    monkeypatch.setattr("ragbed.retrieval.vector_index.BLOCK", 2_500)
    told = []
    index = VectorIndex.build(STORED, Flat(), told.append)
    assert (told, len(index)) == ([2_500, 1_500], 4_000)


def test_a_file_that_is_no_index_or_of_another_kind_is_named(tmp_path):
    VectorIndex.build(STORED, Flat()).write(tmp_path)
    (tmp_path / "bad").write_bytes(b"no index")
    (tmp_path / "cut").write_bytes((tmp_path / FILE).read_bytes()[:5_000])
    for name in ("bad", "cut"):
        with pytest.raises(IndexFolderError, match=rf"{name} cannot be read by faiss .*: rebuild the index$"):
            VectorIndex.read(tmp_path / name, Flat())
    with pytest.raises(IndexFolderError, match="not an index of kind hnsw: rebuild it"):
        VectorIndex.read(tmp_path / FILE, Hnsw())


def test_a_file_whose_parts_do_not_belong_together_is_refused(tmp_path):
    import faiss

    index = VectorIndex.build(STORED, RaBitQ())
    index.write(tmp_path)
    whole = faiss.read_index(str(tmp_path / FILE))
    base, vectors = faiss.downcast_index(whole.base_index), faiss.downcast_index(whole.refine_index)
    short, flat = faiss.clone_index(vectors), faiss.IndexFlatIP(DIMENSION)
    short.remove_ids(np.arange(100))
    flat.add(STORED)
    for codes, stored in ((base, short), (flat, vectors), (base.index, vectors), (base, flat)):
        mixed = faiss.IndexRefine(base, vectors)
        mixed.base_index, mixed.refine_index = codes, stored
        faiss.write_index(mixed, str(tmp_path / FILE))
        with pytest.raises(IndexFolderError, match="not an index of kind rabitq: rebuild it"):
            VectorIndex.read(tmp_path / FILE, RaBitQ())


# From nearest vectors to nearest chunks: windows, ties and masks.

EAST = np.array([[1, 0]], np.float32)


def at(*angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def rows_of(found):
    return [row for row, _ in found]


# Chunk 0 has fifty windows nearer than any other chunk's only one.
INDEX = VectorIndex.build(at(*np.linspace(0, 0.3, 50), 0.5, 0.9, 0.7))
OWNERS = np.array([0] * 50 + [1, 2, 3])


def test_a_chunk_counts_once_with_its_best_window_and_k_chunks_are_found():
    (three,) = nearest_chunks(INDEX, OWNERS, EAST, 3)
    assert rows_of(three) == [0, 1, 3]
    np.testing.assert_allclose([score for _, score in three], np.cos([0, 0.5, 0.7]), atol=1e-6)
    assert rows_of(nearest_chunks(INDEX, OWNERS, EAST, 100)[0]) == [0, 1, 3, 2]
    assert nearest_chunks(INDEX, OWNERS, EAST, 0) == [[]]


def test_a_mask_over_chunks_leaves_out_their_windows():
    found = nearest_chunks(INDEX, OWNERS, np.vstack([EAST, EAST]), 2, np.array([False, True, True, True]))
    assert [rows_of(one) for one in found] == [[1, 3], [1, 3]]
    assert rows_of(nearest_chunks(INDEX, OWNERS, EAST, 5, np.array([True, False, True, False]))[0]) == [0, 2]
    assert nearest_chunks(INDEX, OWNERS, EAST, 5, np.zeros(4, bool)) == [[]]


@pytest.mark.parametrize("kind", [Flat(), RaBitQ(candidates=10)])
def test_of_many_equal_chunks_the_first_rows_are_found(kind):
    vectors = np.repeat(at(0.4, 0.1, 0.8), [30, 400, 30], axis=0)
    assert rows_of(nearest_chunks(VectorIndex.build(vectors, kind), np.arange(460), EAST, 3)[0]) == [30, 31, 32]


def test_what_differs_in_the_last_digits_is_a_tie():
    vectors = np.array([[0.5, 0], [0.50000004, 0]], np.float32)
    (found,) = nearest_chunks(VectorIndex.build(vectors), np.arange(2), EAST, 2)
    assert rows_of(found) == [0, 1]


def test_a_graph_finds_as_many_chunks_as_there_are():
    drawn = np.random.default_rng(0).standard_normal((9_000, 16)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    index = VectorIndex.build(drawn, Hnsw(neighbours=4, ef_build=8, ef_search=8))
    found = nearest_chunks(index, np.arange(9_000) // 3_000, drawn[:2], 3)
    assert [sorted(rows_of(one)) for one in found] == [[0, 1, 2], [0, 1, 2]]


def test_many_queries_are_searched_in_blocks_and_find_what_each_finds_alone(monkeypatch):
    queries = at(*np.linspace(0, 1, 40))
    alone = [nearest_chunks(INDEX, OWNERS, query[None], 3)[0] for query in queries]
    monkeypatch.setattr(dense, "BLOCK", 60)  # ten queries of six vectors each
    assert nearest_chunks(INDEX, OWNERS, queries, 3) == alone
