"""Reranking by a cross-encoder out of a folder, of random weights: what it is asked is tested, not what it finds."""
import json
import shutil

import pytest
import tiny_rerankers

from ragbed.documents import ModelError
from ragbed.experiments.guests.learned_retrievers.late_interaction import LateInteraction
from ragbed.retrieval import CrossEncoding, RerankerDeps

QUERY, OTHER = "who founded the company", "zebra"
TEXTS = ["ada founded it in 1999", "zebra eats grass", "the wind and the river"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_rerankers.cross_encoder(tmp_path_factory.mktemp("models") / "cross")


@pytest.fixture(scope="module")
def model(folder):
    from sentence_transformers import CrossEncoder

    return CrossEncoder(str(folder), device="cpu")


def scored(folder, queries, texts, **fields):
    return CrossEncoding(model=str(folder), **fields).open(RerankerDeps()).scores(queries, texts)


def logits(model, *pairs):
    import torch

    return pytest.approx(model.predict(list(pairs), activation_fn=torch.nn.Identity()).tolist(), abs=1e-5)


def test_each_text_has_the_score_that_the_model_gives_the_pair(folder, model):
    first, second, none = scored(folder, [QUERY, OTHER, QUERY], [TEXTS, TEXTS[:1], []])
    assert first == logits(model, *((QUERY, text) for text in TEXTS))
    assert second == logits(model, (OTHER, TEXTS[0]))
    assert none == []
    assert len(set(first)) == 3


def test_a_long_passage_has_the_highest_score_of_its_windows(folder, model):
    """Of 32 tokens the pair takes 3 and the query 4: windows of 25 words."""
    words = ("stone river wind ada zebra " * 12).split()
    windows = [" ".join(words[:25]), " ".join(words[25:50]), " ".join(words[50:])]
    own, = scored(folder, [QUERY], [[" ".join(words), "ada"]])
    assert own[0] == pytest.approx(max(logits(model, *((QUERY, window) for window in windows)).expected), abs=1e-5)


def test_a_long_query_leaves_half_of_the_window(folder, model):
    long = "zebra " * 100
    own, = scored(folder, [long], [["ada " * 15, "ada " * 16]])
    assert own[:1] == logits(model, ("zebra " * 14, "ada " * 15))  # 32 less 3, of which 14 and 15
    assert own[1] == pytest.approx(max(logits(model, ("zebra " * 14, "ada " * 15), ("zebra " * 14, "ada")).expected),
                                   abs=1e-5)


def test_half_the_precision_gives_nearly_the_same(folder):
    whole, = scored(folder, [QUERY], [TEXTS])
    half, = scored(folder, [QUERY], [TEXTS], precision="bfloat16")
    assert half == pytest.approx(whole, rel=0.1, abs=0.05)


BOTH = pytest.mark.parametrize(("save", "kind", "file"), [
    (tiny_rerankers.cross_encoder, CrossEncoding, "config.json"),
    (tiny_rerankers.sentence_model, LateInteraction, "sentence_bert_config.json")])


@BOTH
def test_what_changes_the_scores_changes_the_identity(tmp_path, save, kind, file):
    known = kind(model=str(save(tmp_path / "model"))).identity()
    copy = shutil.copytree(tmp_path / "model", tmp_path / "copy")
    assert kind(model=str(copy)).identity() == known != kind(model=str(copy), precision="bfloat16").identity()
    settings = json.loads((copy / file).read_text())
    (copy / file).write_text(json.dumps({**settings, "layer_norm_eps": 0.1, "max_seq_length": 9}))
    assert kind(model=str(copy)).identity() != known


@BOTH
def test_a_damaged_model_is_one_line(tmp_path, save, kind, file):
    weights = save(tmp_path / "damaged") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    with pytest.raises(ModelError, match=r"^reranking model .* cannot be loaded: .*$") as caught:
        kind(model=str(tmp_path / "damaged")).open(RerankerDeps()).scores([QUERY], [TEXTS])
    assert "\n" not in str(caught.value)


def test_a_classifier_is_refused(tmp_path):
    with pytest.raises(ModelError, match="has 3 classes"):
        scored(tiny_rerankers.cross_encoder(tmp_path / "classes", labels=3), [QUERY], [TEXTS])


def test_a_model_that_is_nowhere_says_what_to_run():
    with pytest.raises(ModelError, match="reranking model nobody/has-it was not found; run: hf download nobody"):
        CrossEncoding(model="nobody/has-it").open(RerankerDeps())
