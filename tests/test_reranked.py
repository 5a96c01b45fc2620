"""Reranked retrieval: what is asked of whom, the order, ties, and scores of both. The figures are worked by hand."""
import pytest
import tiny_rerankers
from pydantic import TypeAdapter

from ragbed.documents import Chunk, ModelError, SettingsError
from ragbed.retrieval import Hit, JudgeReranker, RerankerDeps, RetrieverSettings
from ragbed.retrieval.rerankers.reranker import judges_of
from ragbed.retrieval.retrievers.reranked import Reranked, RerankedRetriever

READ = TypeAdapter(RetrieverSettings)


class Preset:
    """A retriever that finds the same, whatever is asked: chunks by name with their scores."""

    def __init__(self, **scores):
        self.asked = []
        self.hits = [Hit(Chunk(name, name, "plain", 0, 1, name), score, rank, "preset")
                     for rank, (name, score) in enumerate(scores.items(), 1)]

    def search(self, queries, k):
        self.asked.append((tuple(queries), k))
        return [self.hits[:k] for _ in queries]


class Table:
    """Scores by text, times the query's length."""

    def __init__(self, **scores):
        self._scores, self.batches = scores, []

    def scores(self, queries, texts):
        self.batches.append((tuple(queries), [list(own) for own in texts]))
        return [[self._scores[text] * len(query) for text in own] for query, own in zip(queries, texts, strict=True)]


def reranked(first, table, k=10, queries=("?",), **fields):
    weight = fields.pop("weight", 1.0)
    return [[(hit.chunk.id, hit.score, hit.rank) for hit in hits]
            for hits in RerankedRetriever(first, table, Reranked(of="dense", **fields), weight).search(queries, k)]


def test_candidates_come_in_the_order_of_the_reranker_and_with_its_scores():
    first, table = Preset(a=9, b=8, c=7, d=6), Table(a=0.5, b=0.25, c=2, d=1)
    found = reranked(first, table, k=2, queries=("?", "??"), depth=3)
    assert found == [[("c", 2.0, 1), ("a", 0.5, 2)], [("c", 4.0, 1), ("a", 1.0, 2)]]
    assert first.asked == [(("?", "??"), 3)]
    assert table.batches == [(("?", "??"), [["a", "b", "c"]] * 2)]


def test_what_is_asked_for_beyond_the_depth_follows_as_it_was_found():
    first = Preset(a=3, b=2, c=1)
    assert [name for name, *_ in reranked(first, Table(a=0, b=1, c=2), k=3, depth=1)[0]] == ["a", "b", "c"]
    assert first.asked == [(("?",), 3)]


def test_equal_scores_keep_the_order_of_before():
    """The two that differ by less than a millionth are equal."""
    table = Table(a=0, b=0.5, c=0.5000001, d=1, e=0)
    assert [name for name, *_ in reranked(Preset(a=5, b=4, c=3, d=2, e=1), table)[0]] == ["d", "b", "c", "a", "e"]


def test_a_weight_mixes_both_scores_scaled_over_the_candidates():
    """Scaled a 1, b 0.75, c 0 before and a 0, b 0.5, c 1 by the reranker; a quarter of it, and three quarters."""
    first, table = Preset(a=10, b=8, c=2), Table(a=-4, b=-3, c=-2)
    assert reranked(first, table, weight=0.25) == [[("a", 0.75, 1), ("b", 0.6875, 2), ("c", 0.25, 3)]]
    assert reranked(first, table, weight=0.75) == [[("c", 0.75, 1), ("b", 0.5625, 2), ("a", 0.25, 3)]]


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(score):
    with pytest.raises(ModelError, match="late_interaction returned a score that is not a number"):
        reranked(Preset(a=2, b=1), Table(a=1, b=score))


def test_settings_nest_and_a_name_stands_for_defaults():
    inner = READ.validate_python({"kind": "reranked", "of": "dense", "by": {"kind": "judge", "model": "m"}})
    outer = READ.validate_python({"kind": "reranked", "of": inner.model_dump(), "by": "late_interaction", "depth": 10})
    assert (outer.of, outer.by.kind, outer.depth) == (inner, "late_interaction", 10)
    assert judges_of(outer) == [JudgeReranker(model="m")]
    assert judges_of(READ.validate_python("dense")) == []


def test_a_reranker_counts_for_all_unless_its_model_was_not_trained_for_it(tmp_path):
    trained = tiny_rerankers.multi_vector_model(tmp_path / "multi")
    deps = RerankerDeps(judge=lambda judge: Table())
    weights = [Reranked(of="dense", by=by).open_over(Preset(), deps).weight for by in (
        "late_interaction", {"kind": "late_interaction", "model": str(trained)}, {"kind": "judge", "model": "m"})]
    assert weights == [0.5, 1.0, 1.0]
    given = Reranked(of="dense", by={"kind": "judge", "model": "m"}, weight=0.2)
    assert given.open_over(Preset(), RerankerDeps(judge=lambda judge: Table())).weight == 0.2


def test_a_judge_is_refused_where_no_model_can_be_asked():
    with pytest.raises(SettingsError, match="the reranker judge calls m, but no model can be called here"):
        JudgeReranker(model="m").open(RerankerDeps())


def test_a_real_index_is_reranked(tmp_path):
    from ragbed.retrieval import Index, build_index

    for name, text in (("port", "The port has three cranes."), ("ship", "Ada sailed a ship."), ("oak", "Oaks grow.")):
        (tmp_path / f"{name}.txt").write_text(text)
    build_index([tmp_path], tmp_path / "idx")
    retriever = Reranked(of="dense").open(Index.open(tmp_path / "idx"), RerankerDeps())
    hits, = retriever.search(["Which ship did Ada sail?"], 2)
    assert hits[0].chunk.content.strip() == "Ada sailed a ship."
    assert hits[0].found_by == "late_interaction(dense 1)"
    assert 1 >= hits[0].score > hits[1].score >= 0
