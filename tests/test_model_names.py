"""What may be written after `--model`, and what each form needs."""

import pytest

from ragbed.agents import ModelSettings, open_model
from ragbed.agents.models import resolve_model
from ragbed.agents.replies import free_price, listed_price
from ragbed.documents import ModelError
from ragbed.experiments.guests.local_models import model_catalogue
from ragbed.strategies import Generate, Message

EMPTY_GGUF = "b83633aa78534479"  # the beginning of the SHA-256 of b"GGUF"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch, tmp_path):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "RAGBED_API_KEY", "RAGBED_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "cache"))


def test_a_typo_lists_the_models_and_the_forms():
    with pytest.raises(ModelError, match=r"did you mean 'smollm2-135m'\?.*openai:NAME.*gguf:PATH"):
        resolve_model("smolm2-135m")


@pytest.mark.parametrize("spec", ["", "openai:", "http://host/v1", "https://#m", "gguf:", "hf:one", "hf:a/b/../c.gguf",
                                  "hf:a/b/c.bin", "http://[::1/v1#m", "http://host:99999/v1#m", "all-minilm-l6-v2"])
def test_a_name_that_does_not_fit_is_one_line(spec, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    with pytest.raises(ModelError) as caught:
        resolve_model(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://user:secret@host/v1#m", "https://host/v1?key=secret#m",
                                 "http://host/v1#m?api_key=secret", "openai:m&key=secret"])
def test_a_secret_in_a_url_is_refused_without_showing_it(url):
    with pytest.raises(ModelError, match="RAGBED_API_KEY") as caught:
        resolve_model(url)
    assert "secret" not in str(caught.value)


def test_a_base_url_that_is_none_names_its_variable(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", "notaurl")
    with pytest.raises(ModelError, match="OPENAI_BASE_URL is not a URL; write http://host/v1 or https://host/v1"):
        resolve_model("openai:m")


def test_the_openai_form_needs_its_key_unless_replaying(monkeypatch):
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        resolve_model("openai:gpt-4o-mini")
    assert resolve_model("openai:gpt-4o-mini", calls=False).identity == "gpt-4o-mini"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789\n")
    target = resolve_model("openai:gpt-4o-mini")
    assert target.remote is not None
    assert (target.remote.url, target.remote.key) == ("https://api.openai.com/v1", "sk-0123456789")
    assert "sk-0123456789" not in repr(target)


def test_a_key_that_no_header_can_carry_is_named_not_shown(monkeypatch):
    monkeypatch.setenv("RAGBED_API_KEY", "sk-ü\x07")
    with pytest.raises(ModelError, match=r"^RAGBED_API_KEY contains") as caught:
        resolve_model("http://host/v1#m")
    assert "sk-" not in str(caught.value)


def test_a_compatible_server_is_known_by_its_served_name():
    target = resolve_model("https://example.org:8000/v1/#org/model-7b")
    assert (target.identity, target.served) == ("org/model-7b", "org/model-7b")
    assert target.remote is not None
    assert target.remote.url == "https://example.org:8000/v1"


def test_a_local_file_is_known_by_its_weights_wherever_it_lies(tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    (tmp_path / "b.gguf").write_bytes(b"GGUF")
    one, other = (resolve_model(f"gguf:{tmp_path}/{name}.gguf") for name in "ab")
    assert one.identity == other.identity
    assert one.identity.startswith(f"sha256:{EMPTY_GGUF}")


def test_a_missing_file_and_one_of_another_kind_are_named(tmp_path):
    with pytest.raises(ModelError, match=r"no\.gguf: cannot be read: No such file"):
        resolve_model(f"gguf:{tmp_path}/no.gguf")
    (tmp_path / "page.gguf").write_text("<html>")
    with pytest.raises(ModelError, match="is not a GGUF file"):
        resolve_model(f"gguf:{tmp_path}/page.gguf")


def test_a_catalogue_model_is_found_where_the_user_says_and_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGBED_MODELS", str(tmp_path))
    entry = model_catalogue.ENTRIES[0]
    (tmp_path / entry.weights.path).write_bytes(b"GGUF but not those weights")
    with pytest.raises(ModelError, match=r"instead of b179c9523d0e6a0f….*ragbed models pull smollm2-135m"):
        resolve_model("smollm2-135m")
    assert resolve_model("smollm2-135m", calls=False).identity == f"sha256:{entry.weights.sha256}"


@pytest.mark.parametrize("spec", ["gguf:{}/no.gguf", "hf:o/r/no.gguf"])
def test_weights_that_are_gone_are_needed_for_calls_only_where_their_identity_is_known(tmp_path, monkeypatch, spec):
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path))
    spec = spec.format(tmp_path)
    assert resolve_model(spec, calls=False, known="sha256:abc").identity == "sha256:abc"
    for args in ({"known": "sha256:abc"}, {"calls": False}):
        with pytest.raises(ModelError):
            resolve_model(spec, **args)
    (tmp_path / "no.gguf").write_bytes(b"GGUF")
    assert resolve_model(f"gguf:{tmp_path}/no.gguf", calls=False, known="sha256:abc").identity != "sha256:abc"


async def test_a_replay_opens_any_model_and_refuses_to_call_it():
    async with open_model("openai:gpt-4o-mini", ModelSettings(), calls=False) as model:
        assert model.parameters(Generate((), "answer"), 5, 0) == {"temperature": 0.0, "max_tokens": 5}
        with pytest.raises(ModelError, match="replay"):
            await model.complete(Generate((Message("user", ("hi",)),), "answer"), max_tokens=5)


def test_prices_come_from_the_table_and_are_null_where_unknown():
    mini = listed_price("https://api.openai.com/v1", "gpt-4o-mini")
    # 600 fresh tokens at 0.15, 400 cached at 0.075 and 50 written at 0.60 dollars a million.
    assert mini(1000, 50, 400) == pytest.approx(0.00015)
    assert listed_price("https://api.openai.com/v1", "no-such-model")(1000, 50, 0) is None
    assert listed_price("http://127.0.0.1:8000/v1", "gpt-4o-mini")(1000, 50, 0) is None
    assert free_price(1000, 50, 0) == 0.0
