"""Static models: distilled from one that is here, read in either form that is written, averaged by hand's reckoning."""
import json

import numpy as np
import pytest
from safetensors.numpy import save_file
from tiny_models import WORDS, make_tiny
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel

from documents.errors import IndexFolderError, ModelError
from retrieval.embedders import Static
from retrieval.embedders.distilling import distil
from retrieval.embedders.opening import open_embedder
from retrieval.storage.folder import alone

VECTORS = np.asarray([[9, 9], [3, 0], [0, 4], [1, 1]], np.float32)  # of [UNK], rain, river, sea


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "cache"))


def static(folder, **arrays):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "rain": 1, "river": 2, "sea": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file(arrays, folder / "model.safetensors")
    return f"static:{folder}"


@pytest.mark.parametrize("arrays", [
    {"embedding.weight": VECTORS}, {"embeddings": VECTORS}, {"embeddings": VECTORS.astype(np.float16)},
    {"embeddings": VECTORS[[3, 1, 2]], "mapping": np.asarray([0, 1, 2, 0])},
    {"embeddings": VECTORS / 2, "weights": np.full(4, 2.0)},
])
def test_a_text_is_the_mean_of_its_known_tokens_at_unit_length(tmp_path, arrays):
    embedder = open_embedder(static(tmp_path / "m", **arrays))
    found = embedder.embed_passages(["rain river", "rain unheard", "", "unheard", "sea"])
    np.testing.assert_allclose(found, [[.6, .8], [1, 0], [0, 0], [0, 0], [2 ** -.5, 2 ** -.5]], atol=1e-3)
    assert (embedder.dimension, embedder.window, found.dtype) == (2, 512, np.float32)
    assert embedder.embed_queries([]).shape == (0, 2)


def test_a_long_text_is_the_mean_of_its_windows_or_its_beginning(tmp_path):
    name = static(tmp_path / "m", embeddings=VECTORS).removeprefix("static:")
    text = "rain " * 32 + "river " * 32
    windows, cut = (Static(model=name, window=32, long=long).open() for long in ("windows", "truncated"))
    assert windows.windows([text]) == [[(0, 160), (160, 352)]]
    np.testing.assert_allclose(windows.embed_passages([text]), [[2 ** -.5, 2 ** -.5]], atol=1e-6)
    np.testing.assert_allclose(cut.embed_passages([text]), [[1, 0]], atol=1e-6)
    assert windows.identity != cut.identity
    asking = Static(model=name, window=32, query_prefix="q ").open()
    assert (asking.passage_identity, windows.passage_identity) == (windows.identity, windows.identity)
    assert asking.identity != windows.identity


def test_the_module_of_a_sentence_transformers_folder_is_found(tmp_path):
    static(tmp_path / "m" / "0_StaticEmbedding", **{"embedding.weight": VECTORS})
    assert open_embedder(f"static:{tmp_path / 'm'}").dimension == 2


def test_files_that_are_no_static_model_are_one_line(tmp_path):
    with pytest.raises(ModelError, match="is no static model"):
        open_embedder(static(tmp_path / "m", other=VECTORS)).embed_queries(["rain"])
    with pytest.raises(ModelError, match="has 2 vectors for 4 tokens"):
        open_embedder(static(tmp_path / "n", embeddings=VECTORS[:2])).embed_queries(["rain"])
    name = static(tmp_path / "o", embeddings=VECTORS)
    (tmp_path / "o" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cannot be loaded"):
        open_embedder(name).embed_queries(["rain"])
    name = static(tmp_path / "p", embeddings=VECTORS)
    (tmp_path / "p" / "tokenizer.json").write_text('{"model"')
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged: fetch the model again$"):
        open_embedder(name).embed_queries(["rain"])


def test_a_model_is_distilled_and_its_folder_is_read_by_others_too(tmp_path, ragbed):
    source, out = make_tiny(tmp_path / "tiny"), tmp_path / "static"
    status, printed, _ = ragbed("models", "distil", source, "--out", out, "--dimensions", 8, "--json")
    assert (status, json.loads(printed)["tokens"]) == (0, len(WORDS) - 6)  # without five special ones and [unused1]
    embedder = open_embedder(f"static:{out}")
    found = embedder.embed_passages(["river rain", "the", "sand sea"])
    assert found.shape == (3, 8)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    theirs = StaticEmbedding.load(str(out)).embedding.weight.detach().numpy()
    mean = theirs[[WORDS.index("river"), WORDS.index("rain")]].mean(0)
    np.testing.assert_allclose(found[0], mean / np.linalg.norm(mean), atol=1e-5)
    ragbed.refuses("models", "distil", source, "--out", out, says=["is not empty", "name another folder"])


def test_distilling_that_ends_early_leaves_nothing_and_may_begin_again(tmp_path):
    def stopped(stage, done, total):
        raise KeyboardInterrupt

    source, out = make_tiny(tmp_path / "tiny"), tmp_path / "made" / "static"
    with pytest.raises(KeyboardInterrupt):
        distil(str(source), out, 8, stopped)
    assert not out.exists()
    with alone(out), pytest.raises(IndexFolderError, match="another process is building this"):
        distil(str(source), out, 8, lambda *_: None)
    assert distil(str(source), out, 8, lambda *_: None) == len(WORDS) - 6
    assert [path.name for path in out.parent.iterdir()] == ["static"]
