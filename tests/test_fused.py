"""Fused retrieval: the published formula, scaled scores, and what is refused. The figures are worked by hand."""
import pytest
from pydantic import TypeAdapter
from test_reranked import Preset

from ragbed.retrieval import Fused, RetrieverSettings
from ragbed.retrieval.retrievers.fused import FusedRetriever, labels

READ = TypeAdapter(RetrieverSettings)


def settings(**fields):
    return Fused.model_construct(**{"of": (), "method": "reciprocal_rank", **fields})


def fused(*parts, k=10, **fields):
    """Names, scores and what found them."""
    names = tuple(f"r{place}" for place in range(1, len(parts) + 1))
    hits, = FusedRetriever(parts, names, settings(**fields)).search(["?"], k)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [(hit.chunk.id, round(hit.score, 6), hit.found_by) for hit in hits]


def test_reciprocal_ranks_are_summed_over_those_that_found_a_chunk():
    assert fused(Preset(a=9, b=8, c=7), Preset(c=0.3, d=0.2)) == [
        ("c", 0.032266, "fused(r1 3, r2 1)"),  # 1/63 + 1/61
        ("a", 0.016393, "fused(r1 1)"),  # 1/61
        ("b", 0.016129, "fused(r1 2)"),  # 1/62, and the first retriever's goes first
        ("d", 0.016129, "fused(r2 2)")]


def test_the_constant_and_the_weights_say_how_much_a_rank_counts():
    assert fused(Preset(a=1, b=0), Preset(b=1), constant=0, weights=(1.0, 0.25)) == [
        ("a", 1.0, "fused(r1 1)"), ("b", 0.75, "fused(r1 2, r2 1)")]  # 1/2 + 0.25


def test_weighted_scores_are_scaled_to_what_each_retriever_gave():
    hits = fused(Preset(a=10, b=6, c=2), Preset(c=0.9, b=0.8, d=0.5), method="weighted")
    assert hits == [("b", 0.625, "fused(r1 2, r2 2)"),  # (1/2 + 3/4) / 2
                    ("a", 0.5, "fused(r1 1)"), ("c", 0.5, "fused(r1 3, r2 1)"), ("d", 0.0, "fused(r2 3)")]
    weighed = fused(Preset(a=10, b=6, c=2), Preset(c=0.9, b=0.8, d=0.5), method="weighted", weights=(3.0, 1.0))
    assert [(name, score) for name, score, _ in weighed] == [("a", 0.75), ("b", 0.5625), ("c", 0.25), ("d", 0.0)]


@pytest.mark.parametrize("only", [{"b": 7}, {"b": -7}, {"b": 0}])
def test_a_single_hit_has_the_highest_scaled_score(only):
    assert fused(Preset(a=2, b=1), Preset(**only), method="weighted")[0] == ("a", 0.5, "fused(r1 1)")
    assert fused(Preset(a=2, b=1), Preset(**only), method="weighted")[1] == ("b", 0.5, "fused(r1 2, r2 1)")


def test_each_retriever_is_asked_once_for_all_queries_and_never_for_fewer_than_wanted():
    part, other = Preset(a=1), Preset()
    retriever = FusedRetriever((part, other), ("x", "y"), settings(depth=20))
    assert [[hit.found_by for hit in hits] for hits in retriever.search(["?", "!"], 5)] == [["fused(x 1)"]] * 2
    retriever.search(["?"], 50)
    assert part.asked == other.asked == [(("?", "!"), 20), (("?",), 50)]
    assert retriever.search(["?"], 0) == [[]]
    assert retriever.search([], 5) == []


def test_retrievers_of_one_kind_are_told_apart_by_number():
    kinds = [READ.validate_python(one) for one in (
        "dense", {"kind": "fused", "depth": 7}, {"kind": "fused", "depth": 8})]
    assert labels(kinds) == ("dense", "fused[1]", "fused[2]")
