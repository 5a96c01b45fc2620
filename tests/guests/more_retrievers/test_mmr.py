"""Maximal marginal relevance: the published formula, worked by hand, over toy vectors and an index."""
import numpy as np
from pydantic import TypeAdapter

from ragbed.documents import Chunk
from ragbed.experiments.guests.more_retrievers.diverse import marginal_relevance
from ragbed.retrieval import RerankerDeps, RetrieverSettings
from ragbed.retrieval.retrievers.dense import window_vectors

READ = TypeAdapter(RetrieverSettings)

VECTORS = {"?": (1, 0), "a": (0.8, 0.6), "b": (0.8, 0.6), "c": (0.6, -0.8), "d": (0, 1), "e": (-1, 0)}


class Vectors:
    """An embedder whose texts are words of one letter, each a window, with a known vector."""

    name, identity, dimension, window = "toy", "toy", 2, 3

    def __init__(self):
        self.embedded = []

    def windows(self, texts, header=""):
        return [[(place, min(place + 2, len(text))) for place in range(0, len(text), 2)] for text in texts]

    def embed_queries(self, texts):
        return np.array([VECTORS[text.strip()] for text in texts], np.float32)

    def embed_passages(self, texts):
        self.embedded.extend(texts)
        return np.array([VECTORS[text.split("\n")[-1].strip()] for text in texts], np.float32)


class Chunks:
    """A collection of chunks whose content is as given."""

    content, among = "chunks", None

    def __init__(self, *contents, header=""):
        self.chunks = [Chunk(f"{place} {text}", text, "plain", 0, len(text), text)
                       for place, text in enumerate(contents)]
        self.embedder, self._header = Vectors(), header

    def texts(self):
        return (self._header + chunk.content for chunk in self.chunks)

    def vectors(self, chunks):
        return window_vectors(chunks, lambda chunk: None, lambda document: self._header, lambda: self.embedder)

    def nearest(self, queries, k):
        scored = [[(row, max(float(VECTORS[letter] @ query) for letter in chunk.content.split()))
                   for row, chunk in enumerate(self.chunks)] for query in queries]
        return [sorted(rows, key=lambda one: (-round(one[1], 6), one[0]))[:k] for rows in scored]


def found(collection, k=10, **fields):
    retriever = READ.validate_python({"kind": "mmr", **fields}).open(collection, RerankerDeps())
    hits, = retriever.search(["?"], k)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [(hit.chunk.content, hit.score, hit.found_by) for hit in hits]


def test_the_formula_by_hand():
    """Relevance 0.9, 0.8, 0.5; the first two are alike by 0.9, the third is alike to them by 0.1 and 0.2."""
    alike = np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
    taken = marginal_relevance(np.array([0.9, 0.8, 0.5]), alike.__getitem__, 0.7, 3)
    assert taken == [(0, 0.63),  # 0.7 * 0.9
                     (2, 0.32),  # 0.7 * 0.5 - 0.3 * 0.1, above 0.7 * 0.8 - 0.3 * 0.9 = 0.29
                     (1, 0.29)]


def test_a_second_chunk_that_says_the_same_goes_behind_one_that_does_not():
    """a and b have one vector; by relevance alone c is third."""
    assert found(Chunks("a", "b", "c")) == [
        ("a", 0.4, "mmr(dense 1)"), ("c", 0.3, "mmr(dense 3)"), ("b", -0.1, "mmr(dense 2)")]
    assert [text for text, _, _ in found(Chunks("a", "b", "c"), balance=1)] == ["a", "b", "c"]


def test_a_likeness_below_nothing_counts_as_nothing():
    """c and d are alike by -0.8: without the floor d would be worth 0.4 when taken second."""
    assert found(Chunks("c", "d")) == [("c", 0.3, "mmr(dense 1)"), ("d", 0.0, "mmr(dense 2)")]


def test_chunks_are_as_alike_as_their_nearest_windows():
    assert [text for text, _, _ in found(Chunks("a d", "e a", "c"))] == ["a d", "c", "e a"]


def test_relevance_may_be_the_score_of_what_found_the_chunk():
    """Reciprocal ranks, scaled: 1, then (1/62 - 1/63) / (1/61 - 1/63)."""
    of = {"kind": "fused", "method": "reciprocal_rank", "of": ["dense", {"kind": "mmr", "balance": 1}]}
    assert found(Chunks("a", "c", "d"), of=of, relevance="score", balance=1) == [
        ("a", 1.0, "mmr(fused 1)"), ("c", 0.491935, "mmr(fused 2)"), ("d", 0.0, "mmr(fused 3)")]


def test_chunks_are_embedded_as_they_are_in_an_index():
    """With the header that the index has, so that their vectors are in the cache."""
    collection = Chunks("a", "b d", header="Title\n")
    found(collection)
    assert sorted(collection.embedder.embedded) == ["Title\na", "Title\nb ", "Title\nd"]
