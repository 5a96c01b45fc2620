"""The two backends of a sentence-transformers model: the same vectors, one export, and errors in one line."""
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tiny_models import make_tiny

from ragbed.documents import ModelError
from ragbed.retrieval import Sentence, open_embedder
from ragbed.retrieval.embedders import engines
from ragbed.retrieval.embedders.engines import TOKENS, group_by_length, load_engine

TEXTS = ["the river", "", "rain and sand, the sea. " * 30, "서울 서울", "a", "42 rivers"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGBED_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield make_tiny(tmp_path_factory.mktemp("models") / "tiny")


def test_onnx_gives_the_vectors_of_pytorch(tiny):
    wanted, other = open_embedder(Sentence(model=str(tiny), backend="float32")), open_embedder(str(tiny))
    found = other.embed_passages(TEXTS)
    assert found.dtype == np.float32
    assert (found * wanted.embed_passages(TEXTS)).sum(1).min() > 0.99999
    assert (other.dimension, other.window) == (32, 32)
    assert other.windows(TEXTS) == wanted.windows(TEXTS)
    assert other.identity == f"{wanted.identity}-backend=onnx"
    assert other.embed_queries([]).shape == (0, 32)


@pytest.mark.slow
def test_the_models_own_pooling_is_exported(tmp_path, own_cache):
    model = make_tiny(tmp_path / "pooled", pooling="lasttoken", normalised=False)
    wanted, found = (open_embedder(Sentence(model=str(model), normalise=False, backend=one)).embed_passages(TEXTS[:2])
                     for one in ("float32", "onnx"))
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert (np.abs(np.linalg.norm(found, axis=1) - 1) > 0.01).all()


def test_many_threads_may_embed_at_once(tiny):
    embedder = open_embedder(str(tiny))
    texts = [f"river {'rain ' * number}" for number in range(40)]
    wanted = embedder.embed_passages(texts)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: embedder.embed_passages(texts), range(16)):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
def test_a_kept_export_needs_no_torch_and_sends_nothing(tiny):
    open_embedder(str(tiny)).embed_queries(["rain"])
    script = ("import socket, sys\n"
              "def refuse(*_): raise AssertionError('connected')\n"
              "socket.socket.connect = socket.getaddrinfo = refuse\n"
              "from ragbed.retrieval.embedders.opening import open_embedder\n"
              f"print(open_embedder('{tiny}').embed_queries(['rain']).shape, 'torch' in sys.modules)\n")
    home = tiny.parent / "home"
    home.mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "HOME": str(home)})
    assert done.stdout == "(1, 32) False\n", done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.slow
def test_an_export_sends_nothing_and_is_made_again_when_it_is_damaged(tmp_path, own_cache, monkeypatch):
    model = str(make_tiny(tmp_path / "flipped"))
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("connected"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("looked up a host"))
    wanted = open_embedder(model).embed_passages(TEXTS)
    (graph,) = (tmp_path / "cache" / "graphs").glob("*/model.onnx")
    content = graph.read_bytes()
    graph.write_bytes(content[:400] + bytes([content[400] ^ 64]) + content[401:])
    load_engine.cache_clear()
    np.testing.assert_array_equal(open_embedder(model).embed_passages(TEXTS), wanted)
    assert graph.read_bytes() == content
    graph.write_text("no graph")
    with pytest.raises(ModelError, match="is damaged; delete this folder"):
        engines._load_graph(graph)


@pytest.mark.slow
def test_an_export_with_other_vectors_than_pytorch_is_refused(tmp_path, own_cache, monkeypatch):
    honest = engines._load_graph
    monkeypatch.setattr(engines, "_load_graph", lambda path: lambda ids, mask: honest(path)(ids[:, ::-1].copy(), mask))
    with pytest.raises(ModelError, match=r"cannot be exported to ONNX .*; use the embedder .*backend: float32"):
        open_embedder(str(make_tiny(tmp_path / "other"))).embed_queries(["rain"])
    assert list((tmp_path / "cache" / "graphs").iterdir()) == []


@pytest.mark.slow
def test_two_processes_that_first_use_a_model_at_once_share_one_export(tmp_path, own_cache):
    script = ("from ragbed.retrieval import open_embedder\n"
              f"print(open_embedder('{make_tiny(tmp_path / 'shared')}').embed_queries(['rain']).tolist())\n")
    both = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(2)]
    one, other = (process.communicate()[0] for process in both)
    assert one == other != b""
    assert len(list((tmp_path / "cache" / "graphs").iterdir())) == 1


def test_texts_of_similar_length_are_computed_together():
    assert list(group_by_length([3, 200, 5, 9, 198, 8], None)) == [[1, 4], [3], [0, 2, 5]]
    assert list(group_by_length([TOKENS * 2, 8], None)) == [[0], [1]]
    assert list(group_by_length([8, 8, 8], 2)) == [[0, 1], [2]]


def test_vectors_that_are_not_numbers_are_refused(tmp_path):
    from safetensors.numpy import load_file, save_file

    model = make_tiny(tmp_path / "broken")
    weights = load_file(model / "model.safetensors")
    weights["encoder.layer.0.output.dense.bias"] = weights["encoder.layer.0.output.dense.bias"] * np.nan
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="returns vectors that are not numbers"):
        open_embedder(Sentence(model=str(model), backend="float32")).embed_passages(["rain"])
