"""Names and settings of embedders, prefixes, identities, and what the manifest keeps."""
import json
import shutil

import pytest
from each_case import each
from pydantic import ValidationError
from tiny_models import make_tiny

from ragbed.documents import IndexFolderError, ModelError, SettingsError
from ragbed.retrieval import Index, IndexSettings, Nothing, Sentence, Server, Static, build_index, open_embedder
from ragbed.retrieval.embedders.opening import embedder_settings
from ragbed.retrieval.embedders.prefixes import Prefixes, family_prefixes


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGBED_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield str(make_tiny(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.mark.parametrize(("name", "settings"), [
    ("all-MiniLM-L6-v2", Sentence(model="all-MiniLM-L6-v2")),
    ("static:tables/minilm", Static(model="tables/minilm")),
    ("none", Nothing()),
    ("openai:text-embedding-3-small", Server(model="openai:text-embedding-3-small")),
    ("http://localhost:8000/v1#bge", Server(model="http://localhost:8000/v1#bge")),
    (r"C:\models\minilm", Sentence(model=r"C:\models\minilm")),
])
def test_a_name_stands_for_settings_and_they_are_written_as_that_name(name, settings):
    assert embedder_settings(name) == settings
    chosen = IndexSettings(embedder=name)
    assert chosen.embedder == settings
    assert json.loads(chosen.model_dump_json())["embedder"] == name
    assert IndexSettings.model_validate_json(chosen.model_dump_json()) == chosen


def test_settings_that_no_name_stands_for_are_written_in_full():
    chosen = IndexSettings(embedder={"model": "m", "backend": "onnx", "long": "truncated"})
    written = json.loads(chosen.model_dump_json())["embedder"]
    assert (written["kind"], written["backend"], written["long"]) == ("sentence", "onnx", "truncated")
    assert IndexSettings.model_validate(chosen.model_dump()) == chosen
    assert json.loads(IndexSettings().model_dump_json())["embedder"] == "sentence-transformers/all-MiniLM-L6-v2"


@pytest.mark.parametrize("wrong", [
    {"kind": "sentense"}, {"model": "m", "backend": "int8"}, {"model": "m", "prefix": "q"},
    {"kind": "server", "model": "minilm"}, {"kind": "static"}, "", "static:"])
def test_unknown_settings_are_refused(wrong):
    with pytest.raises(ValidationError):
        IndexSettings(embedder=wrong)


def test_an_index_for_words_alone_needs_no_model(ragbed, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGBED_MODELS", str(tmp_path / "empty"))
    (tmp_path / "jaws.txt").write_text("Steven Spielberg directed Jaws.")
    assert ragbed("index", tmp_path / "jaws.txt", "--out", tmp_path / "idx", "--embedder", "none")[0] == 0
    found, = ragbed.json("search", "Who directed Jaws?", "--index", tmp_path / "idx", "--retriever", "bm25")["hits"]
    assert "Spielberg" in str(found)
    ragbed.refuses("search", "Who directed Jaws?", "--index", tmp_path / "idx", says=["embedder: none", "only bm25"])


def test_an_unknown_name_lists_the_forms():
    with pytest.raises(SettingsError, match=r"the forms are: .*static:FOLDER"):
        open_embedder("static:")


@each(("name", "query", "passage"), [
    ("intfloat/e5-small-v2", "query: ", "passage: "),
    ("intfloat/multilingual-e5-base", "query: ", "passage: "),
    ("BAAI/bge-base-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
    ("BAAI/bge-m3", "", ""),
    ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
    ("Snowflake/snowflake-arctic-embed-m-v2.0", "query: ", ""),
    ("Snowflake/snowflake-arctic-embed-m-v1.5", "Represent this sentence for searching relevant passages: ", ""),
    ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
    ("models/e5-small-v2/", "query: ", "passage: "),
    ("code5-base", "", ""),
])
def test_a_family_has_the_prefixes_that_its_files_do_not_declare(name, query, passage):
    assert family_prefixes(name) == Prefixes(query, passage)


def test_set_prefixes_win_over_declared_ones_and_these_over_the_familys():
    own = Prefixes("q: ", "")
    assert Prefixes.choose("e5-small", own, None, None) == own
    assert Prefixes.choose("e5-small", Prefixes(), None, "") == Prefixes("query: ", "")
    assert Prefixes.choose("e5-small", own, "", "p: ") == Prefixes("", "p: ")


def test_every_setting_that_changes_vectors_changes_the_identity(tiny):
    changes = [{}, {"backend": "float32"}, {"long": "truncated"}, {"query_prefix": "q: "},
               {"passage_prefix": "q: "}, {"normalise": False}, {"truncate_dim": 8}, {"truncate_dim": 16}]
    assert len({open_embedder(Sentence(model=tiny, **change)).identity for change in changes}) == len(changes)
    usual = open_embedder(Sentence(model=tiny))
    assert usual.identity == f"{usual.folder.identity}-backend=onnx"
    assert open_embedder(Sentence(model=tiny, batch=2, query_prefix="")).identity == usual.identity


@pytest.mark.parametrize("kind", [Sentence, Server])
def test_passages_have_one_identity_whatever_the_prefix_of_queries(kind, tiny):
    model = tiny if kind is Sentence else "openai:m"
    usual, asking, other = (open_embedder(kind(model=model, **prefixes)) for prefixes in (
        {}, {"query_prefix": "q: "}, {"query_prefix": "q: ", "passage_prefix": "p: "}))
    assert usual.identity == usual.passage_identity == asking.passage_identity
    assert len({usual.identity, asking.identity, other.identity, other.passage_identity}) == 4


def test_truncated_embeds_only_the_beginning_of_a_long_text(tiny):
    windowed, cut = open_embedder(Sentence(model=tiny)), open_embedder(Sentence(model=tiny, long="truncated"))
    long, beginning = "rain " * 100, "rain " * 30
    assert len(windowed.windows([long])[0]) == 4
    assert cut.windows([long, ""], "header\n") == [[(0, 500)], [(0, 0)]]
    assert cut.embed_passages([long])[0] == pytest.approx(windowed.embed_passages([beginning])[0], abs=1e-5)
    assert cut.embed_queries([long])[0] == pytest.approx(windowed.embed_queries([beginning])[0], abs=1e-5)


TEXTS = ["The river carries sand to the sea.", "rain " * 100, "rain"]


@pytest.mark.parametrize("backend", ["onnx", "float32"])
@pytest.mark.parametrize("long", ["truncated", "windows"])
def test_truncated_vectors_are_those_of_sentence_transformers(backend, long, tiny):
    from sentence_transformers import SentenceTransformer

    texts = TEXTS if long == "truncated" else TEXTS[::2]
    own = open_embedder(Sentence(model=tiny, backend=backend, long=long, truncate_dim=8))
    theirs = SentenceTransformer(tiny, device="cpu", truncate_dim=8).encode(texts, normalize_embeddings=True)
    assert own.dimension == 8
    assert own.embed_passages(texts) == pytest.approx(theirs, abs=1e-5)
    assert (own.embed_passages(texts) ** 2).sum(1) == pytest.approx(1)
    assert own.embed_queries([]).shape == (0, 8)


def test_more_numbers_than_a_model_has_are_refused(tiny):
    assert open_embedder(Sentence(model=tiny, truncate_dim=32)).dimension == 32
    with pytest.raises(SettingsError, match="has vectors of 32 numbers; set truncate_dim to at most 32"):
        open_embedder(Sentence(model=tiny, truncate_dim=33)).embed_queries(["rain"])


def test_an_index_of_truncated_vectors_is_small_and_opens_with_them(tiny, tmp_path, own_cache):
    (tmp_path / "a.txt").write_text("The river carries sand to the sea.")
    build_index([tmp_path / "a.txt"], tmp_path / "idx", IndexSettings(embedder={"model": tiny, "truncate_dim": 8}))
    index = Index.open(tmp_path / "idx")
    assert index.embedder.embed_queries(["rain"]).shape == (1, 8)
    assert json.loads((tmp_path / "idx" / "manifest.json").read_text())["embedder"]["dimension"] == 8


@pytest.fixture
def prompted(tiny, tmp_path):
    """The model with prompts for three tasks."""
    folder = tmp_path / "prompted"
    shutil.copytree(tiny, folder)
    saved = json.loads((folder / "config_sentence_transformers.json").read_text())
    prompts = {"query": "the river ", "document": "sand ", "fact": "rain "}
    (folder / "config_sentence_transformers.json").write_text(json.dumps({**saved, "prompts": prompts}))
    return str(folder)


def test_prompts_of_a_model_are_chosen_by_name(prompted):
    from sentence_transformers import SentenceTransformer

    own = open_embedder(Sentence(model=prompted, query_prompt="fact", passage_prompt="query"))
    model = SentenceTransformer(prompted, device="cpu")
    assert own.embed_queries(["sea"]) == pytest.approx(model.encode(["sea"], prompt_name="fact"), abs=1e-5)
    assert own.embed_passages(["sea"]) == pytest.approx(model.encode(["sea"], prompt_name="query"), abs=1e-5)
    usual = open_embedder(Sentence(model=prompted))
    assert usual.embed_queries(["sea"]) == pytest.approx(model.encode_query(["sea"]), abs=1e-5)
    assert usual.embed_passages(["sea"]) == pytest.approx(model.encode_document(["sea"]), abs=1e-5)
    same = open_embedder(Sentence(model=prompted, query_prompt="query", passage_prompt="document"))
    assert same.identity == usual.identity != own.identity


def test_an_unknown_prompt_lists_the_declared_ones(prompted, tiny):
    with pytest.raises(SettingsError, match="has no prompt 'passage'; choose from: query, document, fact"):
        open_embedder(Sentence(model=prompted, passage_prompt="passage"))
    with pytest.raises(SettingsError, match="has no prompt 'fact'; its files declare none, so set a prefix instead"):
        open_embedder(Sentence(model=tiny, query_prompt="fact"))
    with pytest.raises(ValidationError, match="query_prompt and query_prefix exclude each other; remove one"):
        Sentence(model=tiny, query_prompt="fact", query_prefix="q: ")


def test_an_index_with_a_named_prompt_opens_with_it(prompted, tmp_path, own_cache):
    (tmp_path / "a.txt").write_text("The river carries sand to the sea.")
    build_index([tmp_path / "a.txt"], tmp_path / "idx",
                IndexSettings(embedder={"model": prompted, "query_prompt": "fact"}))
    assert Index.open(tmp_path / "idx").embedder.inner.prefixes == Prefixes("rain ", "sand ")


def test_the_manifest_keeps_the_settings_and_opens_the_embedder_by_them(tiny, tmp_path, own_cache):
    (tmp_path / "a.txt").write_text("The river carries sand to the sea.")
    chosen = IndexSettings(embedder={"model": tiny, "query_prefix": "rain "})
    build_index([tmp_path / "a.txt"], tmp_path / "idx", chosen)
    entry = json.loads((tmp_path / "idx" / "manifest.json").read_text())["embedder"]
    assert (entry["name"], entry["dimension"], entry["window"]) == (tiny, 32, 32)
    assert (entry["choice"]["query_prefix"], entry["choice"]["passage_prefix"]) == ("rain ", "")
    assert entry["choice"]["backend"] == "onnx"
    index = Index.open(tmp_path / "idx")
    assert index.embedder.inner.prefixes == Prefixes("rain ", "")
    with pytest.raises(IndexFolderError, match="was made with embedder"):
        Index.open(tmp_path / "idx", open_embedder(tiny))


def test_an_unknown_model_is_reported_before_anything_is_loaded():
    with pytest.raises(ModelError, match="nobody/nothing was not found; run: hf download nobody/nothing"):
        open_embedder("nobody/nothing")
    with pytest.raises(ModelError, match="static model nobody/nothing was not found"):
        open_embedder("static:nobody/nothing")


def test_a_folder_without_a_model_is_called_one(tmp_path):
    for name, lacks in ((f"{tmp_path}", "config.json"), (f"static:{tmp_path}", "model.safetensors and tokenizer.json")):
        with pytest.raises(ModelError, match=f"{tmp_path}: the folder has no {lacks}; name the folder of a model"):
            open_embedder(name)
