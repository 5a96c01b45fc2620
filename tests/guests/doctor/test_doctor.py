"""`ragbed doctor` against scripted servers, and the context of models that Ollama serves."""
import json

import pytest
from streamed import streamed

from ragbed.agents import Context, ModelSettings, open_model
from ragbed.documents import CallTooLong
from ragbed.strategies import Generate, Message

CODE = "heron-4821"
LONG = Generate((Message("user", ("rain " * 6_000,)),), "answer")


class Ollama:
    """Ollama's own routes: models with their contexts, of which those that were loaded are listed."""

    def __init__(self, **contexts):
        self.contexts, self.loaded, self.created = contexts, [], []

    def __call__(self, name, body):
        if name == "ps":
            return {"models": [{"name": one, "context_length": self.contexts[one]} for one in self.loaded]}
        if name == "create":
            assert body["from"] in self.contexts or f"{body['from']}:latest" in self.contexts
            self.created.append(body["model"])
            self.contexts[body["model"]] = min(body["parameters"]["num_ctx"], 40_000)
            return {"status": "success"}
        model = body["model"] if ":" in body["model"] else f"{body['model']}:latest"
        if model not in self.contexts:
            return None
        if name == "generate":
            self.loaded.append(model)
        return {"parameters": "stop x\nnum_ctx                        9"}


@pytest.fixture
def ollama(serve):
    """Starts Ollama with these models over a script; returns the scripted server."""
    def start(script=(), **contexts):
        server = serve(script)
        server.ollama = Ollama(**{name.replace("_", ":"): size for name, size in contexts.items()})
        return server
    return start


async def opened(server, context=None, model="llama"):
    async with open_model(f"{server.url}#{model}", ModelSettings(context=context)) as client:
        return client


@pytest.mark.parametrize(("asked", "context", "created", "served"), [
    (None, 4096, [], "llama"), (2048, 2048, [], "llama"), (16_000, 16_000, ["llama:latest-ctx16000"],
                                                         "llama:latest-ctx16000"),
    (99_000, 40_000, ["llama:latest-ctx99000"], "llama:latest-ctx99000")])
async def test_the_context_of_ollama_is_read_and_a_larger_one_asked_for(ollama, asked, context, created, served):
    server = ollama(["Paris"], llama_latest=4096)
    async with open_model(f"{server.url}#llama", ModelSettings(context=asked)) as client:
        assert client.context == Context(context, whole_reply=False)
        await client.complete(Generate((Message("user", ("Where?",)),), "answer"), max_tokens=9)
    assert server.requests[0][0]["model"] == served
    assert client.identity == "llama"
    assert server.ollama.created == created
    await opened(server, asked)  # a model that was made before is used again
    assert server.ollama.created == created


async def test_a_prompt_that_ollama_would_cut_is_not_sent(ollama):
    server = ollama([], llama_latest=4096)
    async with open_model(f"{server.url}#llama", ModelSettings()) as client:
        with pytest.raises(CallTooLong, match="at least 6000 tokens, and the model's context has 4096"):
            await client.complete(LONG, max_tokens=9)
    assert server.requests == []


@pytest.mark.parametrize("replies", [
    None, {"models": None}, {"models": [3, {"name": "llama:latest", "context_length": "many"}]}, [], "x", {"error": 1}])
async def test_a_server_that_is_not_ollama_or_does_not_say_it_has_no_known_context(serve, replies):
    server = serve(["Paris"])
    server.ollama = lambda name, body: replies
    assert (await opened(server)).context is None
    assert (await opened(server, 5_000)).context == Context(5_000)


async def test_an_ollama_that_does_not_list_contexts_says_the_one_of_its_model_file(ollama):
    server = ollama([], llama_latest=None)
    assert (await opened(server)).context == Context(9, whole_reply=False)


def good(body):
    if "response_format" in body:
        return '{"colour": "red"}'
    if "tools" in body:
        return {"message": {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"query": "Fuji"}'}}]}}
    if "logprobs" in body:
        return {"extra": {"choices": [{"message": {"content": "Hi"}, "logprobs": {"content": [{"logprob": -0.1}]}}]}}
    if body.get("stream"):
        return streamed("1, 2, 3, 4, 5")
    long = len(json.dumps(body)) > 20_000
    return {"text": CODE if long else "ready", "usage": {"prompt_tokens": 6_700 if long else 12,
                                                         "completion_tokens": 2}}


def examine(ragbed, server, *options):
    status, out, _ = ragbed("doctor", f"{server.url}#m", "--json", *options)
    return status, json.loads(out)


def test_a_server_with_which_all_works(ragbed, serve):
    server = serve(good)
    status, found = examine(ragbed, server)
    assert status == 0
    assert {name: text.partition(" ")[0].rstrip(",:;") for name, text in found.items() if name != "model"} == {
        **dict.fromkeys(("key", "answer", "streaming", "JSON Schema", "tools", "usage", "parameters", "logprobs",
                         "context"),
                        "works"), "price": "unknown"}
    assert len(server.requests) == 6


@pytest.mark.parametrize(("usage", "text", "says"), [
    ({"prompt_tokens": 2_050, "completion_tokens": 2}, CODE, "the server cut a prompt of 6,000 words to 2,050 tokens"),
    (None, "none", "the model did not find the code at the start of 6,000 words")])
def test_a_server_that_cuts_prompts_is_broken(ragbed, serve, usage, text, says):
    def script(body):
        return {"text": text, "usage": usage} if len(json.dumps(body)) > 20_000 else good(body)

    status, found = examine(ragbed, serve(script))
    assert status == 1
    assert found["context"].startswith(f"BROKEN: {says}")


def test_a_server_that_rejects_long_prompts_or_knows_little_is_not_broken(ragbed, serve):
    no = {"status": 400, "error": {"message": "not supported\x1b[31m"}}

    def script(body):
        if len(json.dumps(body)) > 20_000:
            return {"status": 400, "error": {"message": "maximum context length is 4096 tokens, resulted in 6700"}}
        rejected = {"response_format", "tools", "logprobs", "stream"} & body.keys()
        return no if rejected else {"text": "ready", "usage": None}

    status, found = examine(ragbed, serve(script))
    assert status == 0
    assert found["context"].startswith("works: longer prompts are rejected, not cut (the prompt has 6700 tokens")
    assert {found[name].partition(" ")[0] for name in ("streaming", "JSON Schema", "tools", "logprobs", "usage")} == {
        "no:"}
    assert "\x1b" not in str(found)


@pytest.mark.parametrize(("line", "name"), [
    ({"status": 401, "error": {"message": "no"}}, "key"), ({"status": 400, "error": {"message": "no"}}, "answer"),
    ({"extra": {"error": {"code": 502, "message": "gone"}}}, "answer")])
def test_a_model_that_does_not_answer_is_broken(ragbed, serve, line, name):
    status, found = examine(ragbed, serve(lambda _: line))
    assert status == 1
    assert [key for key in found if key != "model"] == [name]
    assert found[name].startswith("BROKEN: ")


def test_every_thing_is_a_line_of_the_terminal(ragbed, serve):
    status, out, _ = ragbed("doctor", f"{serve(good).url}#m")
    assert status == 0
    assert "  JSON Schema  works\n" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_the_models_of_a_settings_file_are_examined_with_their_own_settings(ragbed, serve, tmp_path, monkeypatch):
    monkeypatch.setenv("TEAM_KEY", "canary-7f3e9d21c0ffee")

    def no_temperature(body):
        refused = {"status": 400, "error": {"message": "Unsupported parameter: 'temperature'", "param": "temperature"}}
        return refused if "temperature" in body else good(body)

    first, second = serve(good), serve(no_temperature)
    (tmp_path / "run.yaml").write_text(json.dumps({
        "benchmark": {"kind": "demo", "limit": 1}, "conditions": "closed-book", "models": [
            {"name": "a", "model": f"{first.url}#m", "key_env": "TEAM_KEY", "prices": {"prompt": 1, "completion": 2}},
            {"name": "b", "model": f"{second.url}#m", "key_env": "none", "extra_body": {"top_k": 5}}]}))
    found = ragbed.json("doctor", tmp_path / "run.yaml")["models"]
    assert [(one["model"], one["parameters"], one["price"].split(" ")[0]) for one in found] == [
        ("a", "works", "$1"), ("b", "no: the server refuses temperature; ragbed leaves it out", "unknown;")]
    assert (len(first.requests), len(second.requests)) == (6, 7)
    assert all("canary" in headers["Authorization"] for _, headers in first.requests)
    assert all(body["top_k"] == 5 for body, _ in second.requests)


@pytest.mark.parametrize(("model", "says"), [
    ("{model: http://127.0.0.1:9/v1#m, temprature: 1}", "did you mean 'temperature'"),
    ("{model: [", "expected a model"),
    ("{name: m}", "an object needs the key `model`"), ("antropic:claude", "did you mean 'anthropic:'")])
def test_a_model_that_cannot_be_read_is_one_line(ragbed, model, says):
    ragbed.refuses("doctor", model, says=[says])
