"""Models as objects: each setting of a model acts on its requests, or is refused."""
import asyncio
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from each_case import each

from ragbed.agents.journal import call_key
from ragbed.agents.model_settings import CallLimits, ModelConfig, ModelSettings
from ragbed.agents.models import describe_model, open_model
from ragbed.documents import CallError, CallTooLong, ModelError, UserError
from ragbed.experiments.runs.run_manifest import compare_settings
from ragbed.experiments.settings.file import check_settings
from ragbed.strategies import Generate, Message

ASK = Generate((Message("user", ("Where?",)),), "answer")
KEYS = {name: f"canary-{name.lower()}-7f3e9d" for name in ("FIRST_KEY", "SECOND_KEY", "RAGBED_API_KEY", "TEAM")}


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    monkeypatch.setattr("ragbed.documents.http._FIRST_DELAY", 0.01)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def own(server, **config):
    return ModelSettings(calls=CallLimits(attempts=3), models={"m": ModelConfig(model=f"{server.url}#qwen3", **config)})


async def sent(server, action=ASK, **config):
    async with open_model("m", own(server, **config)) as model:
        await model.complete(action, max_tokens=action.max_tokens or 64)
    return server.requests[-1]


def read(models, **settings):
    return check_settings({"name": "x", "benchmark": {"kind": "demo", "limit": 1}, "conditions": "closed-book",
                           "models": models, **settings}, "x.yaml")


async def test_a_key_goes_to_its_own_host_only(serve):
    first, second = serve(["a"]), serve(["b"])
    settings = ModelSettings(models={
        "one": ModelConfig(model=f"{first.url}#m", key_env="FIRST_KEY"),
        "two": ModelConfig(model=f"{second.url}#m", key_env="SECOND_KEY")})
    async with open_model("one", settings) as one, open_model("two", settings) as two:
        await asyncio.gather(one.complete(ASK, max_tokens=9), two.complete(ASK, max_tokens=9))
    for server, key, others in ((first, "FIRST_KEY", {"SECOND_KEY"}), (second, "SECOND_KEY", {"FIRST_KEY"})):
        headers = json.dumps(dict(server.requests[0][1]))
        assert KEYS[key] in headers
        assert not any(KEYS[name] in headers for name in (*others, "RAGBED_API_KEY"))


async def test_the_general_key_is_not_sent_to_two_hosts(serve):
    first, second = serve(["a"]), serve(["b", "c"])
    async with open_model(f"{first.url}#m", ModelSettings()):
        with pytest.raises(ModelError, match=r"^RAGBED_API_KEY goes to 127.0.0.1:\d+, so it is not sent to .*key_env"):
            async with open_model(f"{second.url}#m", ModelSettings()):
                pass
        _, headers = await sent(second, key_env="none")
        assert "canary" not in json.dumps(dict(headers))
    async with open_model(f"{second.url}#m", ModelSettings()) as alone:
        await alone.complete(ASK, max_tokens=9)
    assert KEYS["RAGBED_API_KEY"] in second.requests[-1][1]["Authorization"]


async def test_openais_key_stays_with_openai(monkeypatch, serve):
    monkeypatch.setenv("OPENAI_API_KEY", KEYS["FIRST_KEY"])
    config = ModelConfig(model="openai:gpt-5-mini", base_url=serve(["a"]).url)
    with pytest.raises(ModelError, match=r"OPENAI_API_KEY is the key for api.openai.com, so it is not sent to 127"):
        async with open_model("m", ModelSettings(models={"m": config})):
            pass


async def test_headers_and_fields_of_the_body_are_sent(serve):
    extra = {"chat_template_kwargs": {"enable_thinking": False}, "top_p": 0.9}
    body, headers = await sent(serve(["a"]), headers={"X-Team": "rag", "X-Key": {"env": "TEAM"},
                                                      "Authorization": "Token ${SECOND_KEY}"}, extra_body=extra)
    headers = {name.lower(): value for name, value in headers.items()}
    assert (headers["x-team"], headers["x-key"], headers["authorization"]) == (
        "rag", KEYS["TEAM"], f"Token {KEYS['SECOND_KEY']}")
    assert {name: body[name] for name in extra} == extra


async def test_sampling_and_limits_are_the_models_own(serve):
    body, _ = await sent(serve(["a"]), temperature="none", reasoning_effort="low", max_tokens=500,
                         max_tokens_field="max_completion_tokens")
    assert body == {"model": "qwen3", "messages": body["messages"], "reasoning_effort": "low",
                    "max_completion_tokens": 500}
    body, _ = await sent(serve(["a"]), Generate(ASK.messages, "plan", max_tokens=7), temperature=0.5, max_tokens=500)
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.5, 7, 0)
    with pytest.raises(CallTooLong):
        await sent(serve(["a"]), Generate((Message("user", ("word " * 300,)),), "answer"), context=256)
    failing = serve([{"status": 500}] * 4)
    with pytest.raises(CallError):
        await sent(failing, attempts=2)
    assert len(failing.requests) == 2


async def test_requests_per_minute_space_the_requests(serve):
    server = serve(["a"] * 5)
    times = []
    async with open_model("m", own(server, requests_per_minute=1200, concurrency=5, seconds=60)) as model:
        loop = asyncio.get_running_loop()

        async def one():
            await model.complete(ASK, max_tokens=9)
            times.append(loop.time())

        start = loop.time()
        await asyncio.gather(*(one() for _ in range(5)))
        assert model.limits == CallLimits(concurrency=5, seconds=60, attempts=3)
    assert loop.time() - start >= 4 * 0.05  # the first request is sent at once
    assert all(later >= earlier for earlier, later in pairwise(times))


async def test_the_key_of_a_call_has_what_changes_replies_and_nothing_else(serve):
    server = serve([])

    async def key(**config):
        async with open_model("m", own(server, **config)) as model:
            return call_key(model.identity, ASK.messages, model.parameters(ASK, 64), 0, 0)

    plain = await key()
    for config in ({"headers": {"X-Team": "rag"}}, {"key_env": "FIRST_KEY"}, {"concurrency": 3}, {"seconds": 9},
                   {"requests_per_minute": 5}, {"attempts": 1}, {"prices": {"prompt": 1, "completion": 2}},
                   {"max_tokens_field": "max_completion_tokens"}):
        assert await key(**config) == plain, config
    for config in ({"temperature": 0.5}, {"temperature": "none"}, {"extra_body": {"top_p": 0.5}},
                   {"reasoning_effort": "low"}, {"max_tokens": 9}):
        assert await key(**config) != plain, config


async def test_a_name_gives_one_served_model_two_identities(serve):
    settings = ModelSettings(models={name: ModelConfig(model=f"{serve([]).url}#qwen3", key_env="none")
                                     for name in ("a", "b")})
    async with open_model("a", settings) as one, open_model("b", settings) as two:
        assert (one.identity, two.identity) == ("qwen3 (a)", "qwen3 (b)")
        assert one.served_by != two.served_by
    alone = f"{serve([]).url}#qwen3"
    async with open_model(alone, ModelSettings(models={alone: ModelConfig(model=alone, temperature=1)})) as same:
        assert same.identity == "qwen3"  # without a name, as before


def test_prices_are_the_models_own():
    settings = read([{"name": "a", "model": "http://h/v1#m", "prices": {"prompt": 1, "completion": 2}},
                     {"name": "b", "model": "http://h/v1#m", "prices": {"prompt": 3, "completion": 4}}])
    assert [describe_model(name, settings.calls)[1](10**6, 10**6, 0) for name in ("a", "b")] == [3.0, 7.0]


def test_objects_become_names_and_are_written_without_secrets():
    settings = read(["openai:gpt-5-mini", {"name": "claude", "model": "http://h/v1#m", "temperature": None, "headers": {
        "Authorization": {"env": "TEAM"}}}], judge={"kind": "model", "model": "claude"})
    assert settings.models == ["openai:gpt-5-mini", "claude"]
    written = yaml.safe_load(settings.to_yaml())
    assert written["calls"]["models"] == {"claude": {
        "name": "claude", "model": "http://h/v1#m", "headers": {"Authorization": {"env": "TEAM"}},
        "temperature": "none"}}
    assert check_settings(written, "x.yaml") == settings
    assert KEYS["TEAM"] not in settings.to_yaml()


@each(("model", "says"), [
    ({"model": "http://h/v1#m", "headers": {"Authorization": "Bearer abc"}}, "would be stored with the settings"),
    ({"model": "http://h/v1#m", "headers": {"X-Team": "rag", "X-Other": KEYS["RAGBED_API_KEY"]}},
     "X-Other: the value would be stored"),
    ({"model": "http://h/v1#m", "headers": {"X\n": "a"}}, "not a header"),
    ({"model": "http://h/v1#m", "headers": {"X": {"file": "a"}}}, "expected a text, or {env: NAME}"),
    ({"model": "http://h/v1#m", "extra_body": {"temperature": 1}}, "temperature: give the model's own setting"),
    ({"model": "http://h/v1#m", "extra_body": {"messages": []}}, "messages: ragbed fills it"),
    ({"model": "http://h/v1#m", "extra_body": {"api_key": "x"}}, "must not hold secrets"),
    ({"model": "http://h/v1#m", "base_url": "http://h/v1"}, "base_url has no effect"),
    ({"model": "http://h/v1#m", "api_version": "2024-10-21"}, "api_version has no effect"),
    ({"model": "http://h/v1#m", "key_env": "sk-123"}, "key_env"),
    ({"model": "smollm2-135m", "concurrency": 2}, "concurrency has no effect on smollm2-135m"),
    ({"model": "gguf:x.gguf", "headers": {"X": "a"}}, "headers has no effect"),
    ({"name": "x"}, "an object needs the key `model`"),
    ({"model": "http://h/v1#m", "temprature": 1}, "did you mean 'temperature'"),
    ({"model": "groqq:llama"}, "did you mean 'groq:'"),
    ({"model": "http://h/v1#to\nwn"}, "cannot contain a line break"),
    ({"name": "m\x1b[31m", "model": "http://h/v1#m"}, "cannot contain a line break or another control character"),
    ({"model": "openia:gpt"}, "did you mean 'openai:'")])
def test_a_setting_that_cannot_act_is_refused(model, says):
    with pytest.raises(UserError) as caught:
        read([{"name": "m", **model} if "model" in model else model])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_model_is_not_suggested_for_itself():
    with pytest.raises(UserError) as caught:
        read([{"model": "groqq:llama", "max_tokens": 9}])
    assert "unknown model 'groqq:llama'; did you mean 'groq:'? choose from smollm2-135m" in str(caught.value)


def test_two_models_need_two_names():
    with pytest.raises(UserError, match=r"two models have the name http://h/v1#m; give each a different `name`"):
        read([{"model": "http://h/v1#m"}, {"model": "http://h/v1#m", "temperature": 1}])
    with pytest.raises(UserError, match=r"calls.models: unknown model spare"):
        read("m:1", calls={"models": {"spare": {"model": "http://h/v1#m"}}})


@each(("change", "counts"), [
    ({"headers": {"X-Team": "b"}}, False), ({"key_env": "SECOND_KEY"}, False), ({"concurrency": 9}, False),
    ({"requests_per_minute": 9}, False), ({"seconds": 9}, False), ({"attempts": 9}, False), ({"temperature": 1}, True),
    ({"extra_body": {"top_p": 0.5}}, True), ({"max_tokens": 9}, True)])
def test_how_a_model_is_reached_may_change_when_a_run_continues(change, counts):
    model = {"name": "gpt-4.1", "model": "http://h/v1#m", "key_env": "FIRST_KEY", "headers": {"X-Team": "a"}}
    before, after = (read([{**model, **more}]).model_dump(mode="json", by_alias=True) for more in ({}, change))
    assert (compare_settings(before, after, True) is not None) == counts


def test_the_example_of_the_docs_is_valid():
    page = (Path(__file__).parent.parent / "docs" / "models.md").read_text()
    text, = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    example = yaml.safe_load(text)
    assert read(example.pop("models"), **example).models == ["openai:gpt-5-mini", "claude", "local"]
