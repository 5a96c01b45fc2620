"""Retrievers that reorder what others find have the same best ones, however many are asked for."""
import pytest
from test_reranked import Preset

from ragbed.retrieval import Fused
from ragbed.retrieval.retrievers.fused import FusedRetriever
from ragbed.retrieval.retrievers.reranked import Reranked, RerankedRetriever
from ragbed.retrieval.types import append_rest


def preset(names):
    return Preset(**{name: 10.0 - place for place, name in enumerate(names)})


class Alphabet:
    """The later in the alphabet, the more relevant."""

    def scores(self, queries, texts):
        return [[float(ord(text)) for text in own] for own in texts]


def names(retriever, k):
    (found,) = retriever.search(["?"], k)
    assert [hit.rank for hit in found] == list(range(1, len(found) + 1))
    assert sorted((hit.score for hit in found), reverse=True) == [hit.score for hit in found]
    return "".join(hit.chunk.id for hit in found)


def test_what_is_behind_follows_below_in_its_order():
    found = append_rest(preset("ab").hits, preset("bcde").hits, 4)
    assert [(hit.chunk.id, hit.rank, hit.score) for hit in found] == [
        ("a", 1, 10.0), ("b", 2, 9.0), ("c", 3, 8.0), ("d", 4, 7.0)]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 9])
def test_only_the_depth_is_reranked(k):
    retriever = RerankedRetriever(preset("abcdef"), Alphabet(), Reranked(of="dense", depth=3))
    assert names(retriever, k) == "cbadef"[:k]


@pytest.mark.parametrize("method", ["weighted", "reciprocal_rank"])
def test_only_the_depth_is_fused_and_the_rest_follows_in_turn(method):
    retriever = FusedRetriever((preset("abxpq"), preset("bayrs")), ("one", "two"), Fused(method=method, depth=2))
    assert names(retriever, 9) == "abxyprqs"
    assert all(names(retriever, k) == "abxyprqs"[:k] for k in range(1, 8))
