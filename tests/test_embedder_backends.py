"""The backends of one model: the same vectors, nothing sent, nothing exported twice, and what is amiss in one line."""
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
from tiny_models import make_tiny

from ragbed.documents import ModelError
from ragbed.retrieval import Sentence, open_embedder
from ragbed.retrieval.embedders.engines import TOKENS, batches
from ragbed.retrieval.embedders.sentence import engine_of

TEXTS = ["the river", "", "rain and sand, the sea. " * 30, "서울 서울", "a", "42 rivers"]
openvino = pytest.mark.skipif(not find_spec("openvino"), reason="openvino is not here")
GRAPHS = ["onnx", pytest.param("openvino", marks=openvino)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGBED_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield make_tiny(tmp_path_factory.mktemp("models") / "tiny")


@pytest.mark.parametrize("backend", [*GRAPHS, "bfloat16"])
def test_a_backend_gives_the_vectors_of_float32(tiny, backend):
    wanted, other = open_embedder(f"float32:{tiny}"), open_embedder(f"{backend}:{tiny}")
    found = other.embed_passages(TEXTS)
    assert found.dtype == np.float32
    assert (found * wanted.embed_passages(TEXTS)).sum(1).min() > (0.999 if backend == "bfloat16" else 0.99999)
    assert (other.dimension, other.window) == (32, 32)
    assert other.windows(TEXTS) == wanted.windows(TEXTS)
    assert other.identity == f"{wanted.identity}-backend={backend}"
    assert other.embed_queries([]).shape == (0, 32)


@pytest.mark.slow
@pytest.mark.parametrize("backend", GRAPHS)
def test_the_models_own_pooling_is_in_the_graph(tmp_path, own_cache, backend):
    pooling = "cls" if backend == "openvino" else "lasttoken"
    model = make_tiny(tmp_path / "pooled", pooling=pooling, normalised=False)
    wanted, found = (open_embedder(Sentence(model=str(model), normalise=False, backend=one)).embed_passages(TEXTS[:2])
                     for one in ("float32", backend))
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert (np.abs(np.linalg.norm(found, axis=1) - 1) > 0.01).all()


@pytest.mark.slow
@openvino
def test_many_threads_may_embed_at_once(tiny):
    embedder = open_embedder(f"openvino:{tiny}")
    texts = [f"river {'rain ' * number}" for number in range(40)]
    wanted = embedder.embed_passages(texts)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: embedder.embed_passages(texts), range(16)):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
@openvino
def test_a_kept_graph_needs_no_torch_and_nothing_is_sent(tiny):
    open_embedder(f"openvino:{tiny}").embed_queries(["rain"])
    script = ("import socket, sys\n"
              "def refuse(*_): raise AssertionError('connected')\n"
              "socket.socket.connect = socket.getaddrinfo = refuse\n"
              "from ragbed.retrieval.embedders.opening import open_embedder\n"
              f"print(open_embedder('openvino:{tiny}').embed_queries(['rain']).shape)\n"
              "import openvino.tools.ovc.telemetry_utils as used\n"
              "print('torch' in sys.modules, used.tm.__name__, sys.modules['openvino_telemetry'])\n")
    home = tiny.parent / "home"
    home.mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "HOME": str(home)})
    assert done.stdout.splitlines() == ["(1, 32)", "False openvino.tools.ovc.telemetry_stub None"], done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.slow
@openvino
def test_exporting_sends_nothing_and_a_damaged_export_says_what_to_delete(tmp_path, own_cache, monkeypatch):
    model = make_tiny(tmp_path / "damaged")
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("connected"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("looked up a host"))
    open_embedder(f"openvino:{model}").embed_queries(["rain"])
    (graph,) = (tmp_path / "cache" / "graphs").glob("*/model.xml")
    graph.write_text("no graph")
    from ragbed.retrieval.embedders.graphs import read_openvino

    with pytest.raises(ModelError, match="is damaged: delete that folder"):
        read_openvino(graph, "f32", 1)


@pytest.mark.slow
@openvino
def test_a_graph_with_one_changed_bit_is_exported_anew(tmp_path, own_cache):
    model = f"openvino:{make_tiny(tmp_path / 'flipped')}"
    wanted = open_embedder(model).embed_passages(TEXTS)
    (graph,) = (tmp_path / "cache" / "graphs").glob("*/model.bin")
    content = graph.read_bytes()
    graph.write_bytes(content[:400] + bytes([content[400] ^ 64]) + content[401:])
    engine_of.cache_clear()
    np.testing.assert_array_equal(open_embedder(model).embed_passages(TEXTS), wanted)
    assert graph.read_bytes() == content


@pytest.mark.slow
@openvino
def test_a_graph_with_other_vectors_than_torch_is_refused(tmp_path, own_cache, monkeypatch):
    from ragbed.retrieval.embedders import graphs as used

    honest = used.read_openvino
    monkeypatch.setattr(used, "read_openvino", lambda path: lambda ids, mask: honest(path)(ids[:, ::-1].copy(), mask))
    with pytest.raises(ModelError, match=r"cannot be exported to model\.xml: name it float32:"):
        open_embedder(f"openvino:{make_tiny(tmp_path / 'other')}").embed_queries(["rain"])
    assert list((tmp_path / "cache" / "graphs").iterdir()) == []


@pytest.mark.slow
def test_two_processes_that_first_use_a_model_at_once_share_one_export(tmp_path, own_cache):
    script = ("from ragbed.retrieval import open_embedder\n"
              f"print(open_embedder('{make_tiny(tmp_path / 'shared')}').embed_queries(['rain']).tolist())\n")
    both = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(2)]
    one, other = (process.communicate()[0] for process in both)
    assert one == other != b""
    assert len(list((tmp_path / "cache" / "graphs").iterdir())) == 1


def test_texts_of_about_one_length_are_computed_together():
    made = list(batches([3, 200, 5, 9, 198, 8], None))
    assert made == [[1, 4], [3], [0, 2, 5]]
    assert list(batches([TOKENS * 2, 8], None)) == [[0], [1]]
    assert list(batches([8, 8, 8], 2)) == [[0, 1], [2]]


def test_vectors_that_are_no_numbers_are_refused(tmp_path):
    from safetensors.numpy import load_file, save_file

    model = make_tiny(tmp_path / "broken")
    weights = load_file(model / "model.safetensors")
    weights["encoder.layer.0.output.dense.bias"] = weights["encoder.layer.0.output.dense.bias"] * np.nan
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="gives vectors that are no numbers"):
        open_embedder(f"float32:{model}").embed_passages(["rain"])
