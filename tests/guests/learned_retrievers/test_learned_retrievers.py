"""Sparse encoders and late interaction as first-stage retrievers, over pools and indexes, with tiny models."""
import json

import numpy as np
import pytest

from ragbed.documents import Chunk, Document, SettingsError
from ragbed.experiments.guests.learned_retrievers import LateInteractionSearch, Sparse, late_interaction_search, sparse
from ragbed.experiments.guests.learned_retrievers.late_interaction import LateInteraction
from ragbed.retrieval import Fused, Index
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.model_files import find_model
from ragbed.retrieval.pool import Pool
from ragbed.retrieval.types import RerankerDeps
from tests import tiny_rerankers as tiny

TEXTS = ["ada founded the company in 1999.", "zebra eats grass.", "port and ship.", "wind of the river.", "stone.",
         "the company was in port and the ship was of stone and wind and ada eats it."]
QUERIES = ["who founded the company", "zebra grass", "the wind and the river"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    tiny.multi_vector_model(folder / "multi", longest=32)
    return folder, str(tiny.sparse_encoder(folder / "splade")), str(folder / "multi")


@pytest.fixture
def pool():
    documents = {str(at): Document(str(at), f"{at}.txt", "", text, text) for at, text in enumerate(TEXTS)}
    chunks = [Chunk.of(one, "plain", 0, len(one.plain)) for one in documents.values()]
    return Pool({"all": chunks}, open_embedder("none"), documents).scope("all")


def found(settings, collection, k=3):
    retriever = settings.open(collection, RerankerDeps())
    return [[(hit.chunk.content, hit.score) for hit in hits] for hits in retriever.search(QUERIES, k)]


def test_sparse_scores_are_the_inner_products_of_sentence_transformers(models, pool):
    from sentence_transformers import SparseEncoder

    model = SparseEncoder(models[1], device="cpu")
    scores = model.similarity(model.encode_query(QUERIES), model.encode_document(TEXTS)).to_dense().numpy()
    for own, wanted in zip(found(Sparse(model=models[1]), pool), scores, strict=True):
        best = np.argsort(-wanted)[:3]
        assert [text for text, _ in own] == [TEXTS[row] for row in best]
        assert [score for _, score in own] == pytest.approx(wanted[best], abs=2e-4)


def test_a_passage_beyond_the_window_gets_the_highest_weight_of_each_word(models):
    """One token is one word here: windows of 30 tokens, without the two special ones."""
    first, second = ["ada founded the company in port and "] * 4, ["zebra eats grass of the river and "] * 4
    halves = [" ".join("".join(words).split()[:30]) for words in (first * 2, second * 2)]
    vectors = sparse.SparseVectors(find_model(models[1], "sparse encoder"))
    one, other, whole = (dict(vector.tolist()) for vector in vectors.passages([*halves, " ".join(halves)]))
    assert whole == {word: pytest.approx(max(one.get(word, 0), other.get(word, 0)), abs=1e-4)
                     for word in sorted({*one, *other})}


def test_late_interaction_ranks_every_passage_as_the_reranker_scores_it(models, pool):
    scores = LateInteraction(model=models[2]).open(RerankerDeps()).scores(QUERIES, [TEXTS] * 3)
    for own, wanted in zip(found(LateInteractionSearch(model=models[2]), pool, 6), scores, strict=True):
        assert dict(own) == {text: pytest.approx(score, abs=1e-5) for text, score in zip(TEXTS, wanted, strict=True)}
        assert [score for _, score in own] == sorted((score for _, score in own), reverse=True)


@pytest.mark.parametrize("kind", ["sparse", "late_interaction"])
def test_an_index_without_vectors_is_searched_within_a_filter_and_fused(kind, models, ragbed, tmp_path):
    (tmp_path / "pages").mkdir()
    for at, text in enumerate(TEXTS):
        (tmp_path / "pages" / f"{at}.txt").write_text(text)
    assert ragbed("index", tmp_path / "pages", "--out", tmp_path / "idx", "--embedder", "none")[0] == 0
    settings = {"kind": kind, "model": models[1 if kind == "sparse" else 2]}
    words = ("search", QUERIES[0], "--index", tmp_path / "idx", "--retriever", json.dumps(settings), "-k", "6",
             "--json")
    every, within = ([next(text for text in TEXTS if text in json.dumps(hit)) for hit in json.loads(out)["hits"]]
                     for out in (ragbed(*words)[1], ragbed(*words, "--where", 'source != "0.txt"')[1]))
    assert within == [text for text in every if text != TEXTS[0]]
    assert len(every) >= 3
    one = (Sparse if kind == "sparse" else LateInteractionSearch)(model=settings["model"])
    both = Fused(of=[one, "bm25"]).open(Index.open(tmp_path / "idx"), RerankerDeps()).search(QUERIES[:1], 2)
    assert kind in both[0][0].found_by


def test_a_passage_is_encoded_once_and_kept_without_a_pickle(models, pool, monkeypatch):
    first = found(Sparse(model=models[1]), pool)
    sparse.sparse_vectors.cache_clear()
    monkeypatch.setattr(sparse.SparseVectors, "_encode", lambda *_: pytest.fail("encoded again"))
    assert found(Sparse(model=models[1]), pool) == first


def test_a_large_collection_is_refused_for_late_interaction(models, pool, monkeypatch):
    monkeypatch.setattr(late_interaction_search, "MAX_CHUNKS", 5)
    with pytest.raises(SettingsError, match="compares every chunk, and this collection has 6, more than 5; use"):
        LateInteractionSearch(model=models[2]).open(pool, RerankerDeps())


def test_both_are_listed_and_evaluated_over_a_benchmark(models, ragbed, tmp_path):
    assert {"sparse", "late_interaction"} <= {row["name"] for row in json.loads(
        ragbed("list", "retrievers", "--json")[1])["retrievers"]}
    from tests.test_settings_act import TESTS

    status, out, err = ragbed(
        "evaluate-retrieval", "beir", TESTS / "data" / "beir", "--retriever", f"{{kind: sparse, model: {models[1]}}}",
        "--retriever", f"{{kind: late_interaction, model: {models[2]}}}", "--json")
    assert status == 0, err
    assert out.count("ndcg@10") >= 2
