"""Names of providers: their addresses, keys and quirks."""
import json
import re

import pytest
from protocol_servers import ProtocolServer

from ragbed.agents.model_settings import ModelConfig, ModelSettings
from ragbed.agents.models import open_model, resolve_model
from ragbed.documents.errors import MissingExtra, ModelError
from ragbed.documents.http import host_of
from ragbed.experiments.guests.providers.provider_table import providers
from ragbed.guests import BUILT_IN
from ragbed.strategies.types import Generate, Message

KEY = "canary-7f3e9d21c0ffee"
ASK = Generate((Message("user", ("Where?",)),), "answer")


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for one in providers().values():
        monkeypatch.setenv(one.key, f"{KEY}-{'gemini' if one.key == 'GEMINI_API_KEY' else one.name}")
        if one.url_env:
            monkeypatch.delenv(one.url_env, raising=False)
    monkeypatch.setenv("TEAM_KEY", f"{KEY}-team")


def target(model, **config):
    return resolve_model("m", ModelSettings(models={"m": ModelConfig(model=model, **config)}))


def test_every_row_is_registered_and_has_a_source():
    guest = next(one for one in BUILT_IN if one.name == "providers")
    assert [*guest.adds["provider"]] == [*(f"{name}:" for name in providers()), "langchain:"]
    assert all(one.source.startswith("https://") for one in providers().values())
    assert all(one.url.startswith("https://") or one.optional or one.url_env for one in providers().values())


@pytest.mark.parametrize(("model", "url", "served"), [
    ("groq:llama-3.3-70b", "https://api.groq.com/openai/v1", "llama-3.3-70b"),
    ("gemini:gemini-3-flash", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3-flash"),
    ("openrouter:meta/llama:free", "https://openrouter.ai/api/v1", "meta/llama:free")])
def test_a_providers_key_goes_to_the_provider(model, url, served):
    found = target(model)
    assert (found.remote.url, found.served, found.remote.key) == (url, served, f"{KEY}-{model.partition(':')[0]}")


@pytest.mark.parametrize("name", [one.name for one in providers().values() if not one.optional and one.url])
def test_a_providers_key_goes_to_no_other_host(name, monkeypatch):
    with pytest.raises(ModelError, match=r"so it is not sent to gateway.example; name the key .* with key_env"):
        target(f"{name}:m", base_url="https://gateway.example/v1")
    with pytest.raises(ModelError, match="is not sent to"):  # a host that only begins like it
        target(f"{name}:m", base_url=f"https://{host_of(providers()[name].url)}.example/v1")
    if not providers()[name].langchain:
        given = target(f"{name}:m", base_url="https://gateway.example/v1", key_env="TEAM_KEY")
        assert given.remote.key == f"{KEY}-team"
    monkeypatch.delenv(providers()[name].key)
    with pytest.raises(ModelError, match=f"^{providers()[name].key} is not set"):
        target(f"{name}:m")
    assert resolve_model(f"{name}:m", calls=False).served == "m"  # a replay needs no key


@pytest.mark.parametrize(("name", "port"), [("ollama", 11434), ("lmstudio", 1234), ("vllm", 8000), ("litellm", 4000)])
def test_local_servers_have_default_ports_and_need_no_key(name, port, monkeypatch):
    monkeypatch.delenv(providers()[name].key)
    found = target(f"{name}:qwen3")
    assert found.remote.url.startswith(f"http://127.0.0.1:{port}")
    assert (found.remote.key, target(f"{name}:qwen3", base_url="http://10.0.0.5:9/v1").remote.url) == (
        "none", "http://10.0.0.5:9/v1")


def test_ollamas_cloud_key_is_not_sent_to_a_server_of_ones_own():
    assert target("ollama:qwen3").remote.key == "none"
    assert target("ollama:qwen3", base_url="https://ollama.com/v1").remote.key == f"{KEY}-ollama"


async def test_azure_takes_a_key_header_and_an_api_version(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    assert target("azure:gpt").remote.url == "https://mine.openai.azure.com/openai/v1"
    old = target("azure:gpt", api_version="2024-10-21").remote
    assert (old.url, old.query) == ("https://mine.openai.azure.com/openai/deployments/gpt",
                                    (("api-version", "2024-10-21"),))
    server = ProtocolServer(["Paris"])
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)  # the user's own, so it gets the key
    config = ModelConfig(model="azure:gpt", api_version="2024-10-21")
    async with open_model("m", ModelSettings(models={"m": config})) as model:
        assert (await model.complete(ASK, max_tokens=64)).reply.text == "Paris"
    server.close()
    path, headers, body = server.requests[0]
    assert path == "/openai/deployments/gpt/chat/completions?api-version=2024-10-21"
    assert (headers["api-key"], headers.get("authorization"), body["max_completion_tokens"]) == (
        f"{KEY}-azure", None, 64)
    assert "max_tokens" not in body


async def test_mistrals_seed_has_another_name(serve):
    server = serve(["Paris"])
    config = ModelConfig(model="mistral:small", base_url=server.url, key_env="TEAM_KEY", temperature=0.5)
    async with open_model("m", ModelSettings(models={"m": config})) as model:
        reply = (await model.complete(ASK, max_tokens=64)).reply
    body, _ = server.requests[0]
    assert (body["random_seed"], "seed" in body, reply.unsent) == (0, False, ())
    assert KEY not in json.dumps(body)


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setattr("ragbed.documents.errors.find_spec", lambda name: None)
    for model in ("anthropic:claude-sonnet-5", "langchain:google_genai:gemini", "langchain:cohere:command"):
        with pytest.raises(MissingExtra, match=re.escape("pip install 'ragbed[langchain]'")):
            target(model)
    assert resolve_model("anthropic:claude-sonnet-5", calls=False).served == "claude-sonnet-5"


@pytest.mark.parametrize("name", ["langchain:", "langchain:anthropic", "groq:", "groq:a?b"])
def test_a_malformed_name_is_one_line(name):
    with pytest.raises(ModelError) as caught:
        target(name)
    assert "\n" not in str(caught.value)
