"""MiniLM as an index uses it: offline, unit vectors, no text cut off, and where its files are found."""
import json
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import make_tiny

from ragbed.documents import ModelError
from ragbed.retrieval import Sentence, find_model, open_embedder
from ragbed.retrieval.embedders.opening import SentenceEmbedder
from ragbed.retrieval.model_files import MINILM_SHA256, WEIGHTS


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SentenceEmbedder]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGBED_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("RAGBED_MODELS", raising=False)
        patch.setattr(socket.socket, "connect", _refuse)
        embedder = open_embedder("all-MiniLM-L6-v2")
        embedder.embed_queries(["warm"])
        yield embedder


def _refuse(*_: object) -> None:
    raise AssertionError("an embedder connected to the network")


def test_vectors_are_unit_length_float32_and_in_order(minilm: SentenceEmbedder) -> None:
    texts = ["a long passage about rivers and lakes " * 8, "x", "rivers", ""]
    vectors = minilm.embed_passages(texts)
    assert vectors.shape == (4, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors[2], minilm.embed_passages(["rivers"])[0], atol=1e-5)
    assert minilm.embed_passages([]).shape == (0, 384)


def test_a_paraphrase_is_nearer_than_another_subject(minilm: SentenceEmbedder) -> None:
    question, near, far = minilm.embed_queries(
        ["How much did sales grow?", "Revenue rose by five percent.", "The cat slept on the mat."])
    assert question @ near > question @ far + 0.2


@pytest.mark.parametrize("text", [
    "word " * 2_000, "서울대학교에서 컴퓨터 공학을 전공하였다. " * 60, "안녕하세요" * 300, "😀ﷺ and é" * 500,
    "a" * 5_000, " " * 3_000, "", "1,234.56 | 7,890 | (12)\n" * 200,
])
def test_windows_cover_the_text_and_fit_the_model(minilm: SentenceEmbedder, text: str) -> None:
    header = "Annual report 2022\n"
    (spans,) = minilm.windows([text], header)
    assert "".join(text[start:end] for start, end in spans) == text
    tokens = minilm.reader.tokenizer.encode_batch([header + text[start:end] for start, end in spans])
    assert max(map(len, tokens)) <= minilm.window == 256


def test_a_text_that_fits_is_one_window(minilm: SentenceEmbedder) -> None:
    assert minilm.windows(["short", "word " * 300]) == [[(0, 5)], [(0, 1270), (1270, 1500)]]


def test_the_end_of_a_query_longer_than_the_window_counts(minilm: SentenceEmbedder) -> None:
    filler = "the weather was fine that day " * 50
    longer = filler + "revenue of Adobe in 2022 " * 30
    plain, with_end, revenue = minilm.embed_queries([filler, longer, "Adobe revenue"])
    assert with_end @ revenue > plain @ revenue + 0.2


def test_identity_is_of_the_weights_and_not_of_the_place(minilm: SentenceEmbedder, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "models" / "copied"
    shutil.copytree(minilm.folder.path, copy)
    assert minilm.identity.startswith(MINILM_SHA256[:32])
    assert find_model(str(copy)).identity == minilm.folder.identity
    monkeypatch.setenv("RAGBED_MODELS", str(copy.parent))
    assert find_model("copied").path == copy


@pytest.mark.parametrize(("file", "change"), [
    ("tokenizer.json", lambda body: body["normalizer"].update(lowercase=False)),
    ("modules.json", lambda body: body.pop()),
    ("sentence_bert_config.json", lambda body: body.update(max_seq_length=9)),
    ("1_Pooling/config.json", lambda body: body.update(pooling_mode_cls_token=True)),
])
def test_what_changes_the_vectors_changes_the_identity(minilm: SentenceEmbedder, tmp_path: Path, file: str,
                                                       change: Callable[[Any], object]) -> None:
    copy = tmp_path / "changed"
    shutil.copytree(minilm.folder.path, copy)
    body = json.loads((copy / file).read_bytes())
    change(body)
    (copy / file).write_text(json.dumps(body))
    assert find_model(str(copy)).identity not in {minilm.folder.identity, ""}


def test_declared_prompts_are_put_in_front_and_change_the_identity(minilm: SentenceEmbedder, tmp_path: Path) -> None:
    copy = tmp_path / "prompted"
    shutil.copytree(minilm.folder.path, copy)
    (copy / "config_sentence_transformers.json").write_text('{"prompts": {"query": "query: ", "passage": ""}}')
    prompted = open_embedder(Sentence(model=str(copy), backend="float32"))
    assert prompted.folder.identity != minilm.folder.identity
    np.testing.assert_allclose(prompted.embed_queries(["rain"]), minilm.embed_queries(["query: rain"]), atol=1e-5)
    np.testing.assert_allclose(prompted.embed_passages(["rain"]), minilm.embed_passages(["rain"]), atol=1e-5)


def test_weights_that_are_not_safetensors_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelError, match=WEIGHTS):
        find_model(str(tmp_path))


def test_a_damaged_model_is_one_line(tmp_path: Path, minilm: SentenceEmbedder) -> None:
    copy = tmp_path / "damaged"
    shutil.copytree(minilm.folder.path, copy)
    (copy / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cannot be loaded"):
        open_embedder(str(copy)).embed_queries(["rain"])


@pytest.mark.parametrize(("file", "content"), [
    ("modules.json", "["), ("modules.json", '{"type": 1}'), ("config_sentence_transformers.json", '{"prompts"'),
    ("sentence_bert_config.json", "[]"), ("tokenizer.json", '{"model": {'), ("tokenizer.json", "{}")])
def test_a_damaged_small_file_is_named(tmp_path: Path, file: str, content: str) -> None:
    (make_tiny(tmp_path / "tiny") / file).write_text(content)
    with pytest.raises(ModelError) as caught:
        open_embedder(str(tmp_path / "tiny")).embed_queries(["rain"])
    assert str(caught.value) == f"{tmp_path / 'tiny' / file} is damaged; download the model again"


@pytest.mark.slow
def test_torch_and_faiss_work_in_one_process() -> None:
    import torch

    from ragbed.retrieval import VectorIndex

    before, minilm = torch.get_num_threads(), open_embedder(Sentence(backend="float32"))
    for _ in range(3):
        vectors = minilm.embed_passages([f"passage number {number}" for number in range(40)])
        index = VectorIndex.build(vectors)
        _, rows = index.search(minilm.embed_queries(["passage number 7"]), 1)
        _, all_rows = index.search(vectors, 1)
        assert rows[0, 0] == 7
        assert all_rows[:, 0].tolist() == list(range(40))
    assert torch.get_num_threads() == before
