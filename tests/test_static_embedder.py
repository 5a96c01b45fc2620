"""Static models: read in either form that is written, averaged by hand's reckoning."""

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel

from ragbed.documents import ModelError
from ragbed.retrieval import Static, open_embedder

pytestmark = pytest.mark.usefixtures("own_cache")
VECTORS = np.asarray([[9, 9], [3, 0], [0, 4], [1, 1]], np.float32)  # of [UNK], rain, river, sea


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
    windows, cut = (open_embedder(Static(model=name, window=32, long=long)) for long in ("windows", "truncated"))
    assert windows.windows([text]) == [[(0, 160), (160, 352)]]
    np.testing.assert_allclose(windows.embed_passages([text]), [[2 ** -.5, 2 ** -.5]], atol=1e-6)
    np.testing.assert_allclose(cut.embed_passages([text]), [[1, 0]], atol=1e-6)
    assert windows.identity != cut.identity
    asking = open_embedder(Static(model=name, window=32, query_prefix="q "))
    assert (asking.passage_identity, windows.passage_identity) == (windows.identity, windows.identity)
    assert asking.identity != windows.identity


def test_the_module_of_a_sentence_transformers_folder_is_found(tmp_path):
    static(tmp_path / "m" / "0_StaticEmbedding", **{"embedding.weight": VECTORS})
    assert open_embedder(f"static:{tmp_path / 'm'}").dimension == 2


@pytest.mark.parametrize(("arrays", "damaged", "says"), [
    ({"other": VECTORS}, None, "is not a static model"),
    ({"embeddings": VECTORS[:2]}, None, "has 2 vectors for 4 tokens"),
    ({"embeddings": VECTORS}, "model.safetensors", "cannot be loaded"),
    ({"embeddings": VECTORS}, "tokenizer.json", r"tokenizer\.json is damaged; download the model again$")])
def test_files_that_are_no_static_model_are_one_line(tmp_path, arrays, damaged, says):
    name = static(tmp_path / "m", **arrays)
    if damaged:
        (tmp_path / "m" / damaged).write_text('{"model"')
    with pytest.raises(ModelError, match=says):
        open_embedder(name).embed_queries(["rain"])
