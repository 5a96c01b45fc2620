"""A model is named for what it can do: others are refused with what they are and how to use them."""
import json
import re

import pytest

from ragbed.documents import ModelError
from ragbed.experiments.guests.learned_retrievers import LateInteractionSearch, Sparse
from ragbed.experiments.guests.learned_retrievers.late_interaction import LateInteraction
from ragbed.retrieval.embedders import Sentence
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.model_files import model_kind
from ragbed.retrieval.rerankers.cross_encoder import CrossEncoding
from tests import tiny_rerankers as tiny


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    from sentence_transformers import CrossEncoder

    folder = tmp_path_factory.mktemp("kinds")
    tiny.sparse_encoder(folder / "splade")
    tiny.masked_model(folder / "masked")
    tiny.cross_encoder(folder / "cross")
    CrossEncoder(str(folder / "cross"), device="cpu").save_pretrained(str(folder / "saved_cross"))
    tiny.cross_encoder(folder / "classifier", labels=3)
    tiny.causal_model(folder / "causal")
    tiny.multi_vector_model(folder / "multi")
    tiny.sentence_model(folder / "embedder")
    (folder / "static").mkdir()
    (folder / "static" / "config.json").write_text(json.dumps({"model_type": "model2vec"}))
    for name in ("static", "reader"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "model.safetensors").write_bytes((folder / "cross" / "model.safetensors").read_bytes())
    (folder / "reader" / "config.json").write_text(json.dumps({"architectures": ["BertForQuestionAnswering"]}))
    return folder


KINDS = {"splade": "sparse", "masked": "masked", "cross": "cross_encoder", "saved_cross": "cross_encoder",
         "classifier": "classifier", "causal": "language", "multi": "multi_vector", "embedder": "embedder",
         "static": "static", "reader": "head"}
USES = {"splade": "a sparse encoder; use it as the retriever {kind: sparse, model: ",
        "masked": "a masked language model without pooling (BertForMaskedLM); if it is SPLADE, use it as the retriever",
        "cross": "a cross-encoder; use it as the reranker {kind: cross_encoder, model: ",
        "saved_cross": "a cross-encoder; use it as the reranker {kind: cross_encoder, model: ",
        "classifier": "a text classifier (BertForSequenceClassification)",
        "causal": "a language model that generates text (GPT2LMHeadModel)",
        "multi": "a late interaction model, with several vectors per text; use it as the retriever or reranker",
        "embedder": "an embedding model; use it as embedder: ",
        "static": "a static embedding model; use it as embedder: static:",
        "reader": "a model for another task (BertForQuestionAnswering)"}


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_the_kind_of_a_model_is_read_from_its_files(name, kind, models):
    assert model_kind(models / name) == kind


def refused(name, models, what, use):
    with pytest.raises(ModelError, match=re.escape(f"is not {what} but {USES[name]}")):
        use(str(models / name))


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"embedder"}))
def test_a_model_that_does_not_embed_is_refused_as_an_embedder(name, models):
    refused(name, models, "an embedding model", lambda model: open_embedder(Sentence(model=model)))


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"cross", "saved_cross", "classifier"}))
def test_a_model_that_does_not_score_pairs_is_refused_as_a_cross_encoder(name, models):
    refused(name, models, "a cross-encoder", lambda model: CrossEncoding(model=model).open(None))


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"embedder", "multi"}))
def test_a_model_without_vectors_of_tokens_is_refused_for_late_interaction(name, models):
    what = "a late interaction or embedding model"
    refused(name, models, what, lambda model: LateInteraction(model=model).open(None))
    refused(name, models, what, lambda model: LateInteractionSearch(model=model).identity())


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"splade", "masked"}))
def test_a_model_without_weights_of_words_is_refused_as_a_sparse_encoder(name, models):
    refused(name, models, "a sparse encoder", lambda model: Sparse(model=model).identity())


def test_a_command_refuses_it_in_one_line(models, ragbed, tmp_path):
    (tmp_path / "a.txt").write_text("the river")
    ragbed.refuses("index", tmp_path / "a.txt", "--out", tmp_path / "idx", "--embedder", models / "splade",
                   says=["is not an embedding model but a sparse encoder"])
