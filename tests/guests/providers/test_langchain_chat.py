"""Anthropic, Gemini and Bedrock through LangChain's clients, against servers that speak their protocols."""
import json
import re
import threading

import pytest
from protocol_servers import ProtocolServer

from ragbed.agents.model_settings import CallLimits, ModelConfig, ModelSettings
from ragbed.agents.models import open_model
from ragbed.documents.errors import CallError, CallTimeout, CallTooLong, ModelError
from ragbed.strategies.types import Generate, Message, Usage

for package in ("langchain", "langchain_anthropic", "langchain_google_genai", "langchain_aws"):
    pytest.importorskip(package, reason=f"needs {package}: pip install 'ragbed[langchain]'")

PROVIDERS = ("anthropic:claude-sonnet-5", "google_genai:gemini-3-flash", "bedrock:anthropic.claude-sonnet-5-v1:0")
ASK = Generate((Message("system", ("Be brief.",)), Message("user", ("Where?",))), "answer")
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"],
          "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "search", "description": "Search.", "parameters": {
    "type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}}
KEY = "canary-7f3e9d21c0ffee"
PRICE = {"prompt": 10, "cached": 1, "completion": 100}


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setattr("ragbed.documents.http._FIRST_DELAY", 0.01)
    monkeypatch.setenv("TEAM_KEY", KEY)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)  # signs requests; a bearer token is sent over https only
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def talk():
    running = []

    def start(*script):
        running.append(ProtocolServer(script))
        return running[-1]

    yield start
    for server in running:
        server.close()


def opened(model, server, attempts=2, **config):
    key = "none" if model.startswith("bedrock") else "TEAM_KEY"
    settings = ModelSettings(calls=CallLimits(attempts=attempts), models={"m": ModelConfig(**{
        "model": model, "base_url": server.url, "key_env": key, "prices": PRICE, "seconds": 20, **config})})
    return open_model("m", settings)


async def ask(model, server, action=ASK, **config):
    async with opened(model, server, **config) as client:
        return await client.complete(action, max_tokens=64)


@pytest.mark.parametrize("model", PROVIDERS)
async def test_a_reply_has_text_usage_with_cached_tokens_and_its_price(model, talk):
    server = talk("Paris [1]")
    reply = (await ask(model, server)).reply
    assert (reply.text, reply.finish_reason) == ("Paris [1]", "stop")
    assert reply.usage == Usage(700, 12, 200, 1, (500 * 10 + 200 * 1 + 12 * 100) / 1e6)
    sent = json.dumps(server.requests[0][2])
    assert "Be brief." in sent
    assert "Where?" in sent
    assert KEY not in sent
    assert len([value for value in server.requests[0][1].values() if KEY in value]) == (not model.startswith("bedrock"))


@pytest.mark.parametrize("model", PROVIDERS)
async def test_pieces_arrive_as_they_are_streamed(model, talk):
    pieces, server = [], talk("Paris [1]")
    async with opened(model, server) as client:
        reply = (await client.complete(ASK, max_tokens=64, tell=lambda *piece: pieces.append(piece))).reply
    assert pieces == [("token", "Pari"), ("token", "s [1]")]
    assert (reply.text, reply.finish_reason, reply.usage.prompt_tokens, reply.usage.cached_tokens) == (
        "Paris [1]", "stop", 700, 200)


@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_tool_is_called_and_its_result_goes_back(model, streamed, talk):
    server = talk({"tool": "search", "args": {"query": "the height"}}, "3,776 m")
    asked = Generate(ASK.messages, "answer", tools=(TOOL,))
    async with opened(model, server) as client:
        reply = (await client.complete(asked, max_tokens=64, tell=(lambda *piece: None) if streamed else None)).reply
        call, = reply.tool_calls
        assert (call["function"], reply.finish_reason in ("tool_calls", "stop")) == (
            {"name": "search", "arguments": '{"query": "the height"}'}, True)
        more = Generate((*ASK.messages, Message("assistant", (), tool_calls=(call,)), Message(
            "tool", ("Fuji is 3,776 m high.",), call_id=call["id"])), "answer", tools=(TOOL,))
        assert (await client.complete(more, max_tokens=64)).reply.text == "3,776 m"
    assert "Fuji is 3,776 m high." in json.dumps(server.requests[1][2])


@pytest.mark.parametrize("model", PROVIDERS)
async def test_a_schema_is_sent_natively_and_the_reply_is_parsed(model, talk):
    server = talk('{"answer": "Paris"}')
    reply = (await ask(model, server, Generate(ASK.messages, "answer", schema=SCHEMA))).reply
    assert (reply.parsed, reply.unsent) == ({"answer": "Paris"}, ())
    assert "answer" in json.dumps(server.requests[0][2]).replace('"messages"', "")


@pytest.mark.parametrize("model", PROVIDERS)
async def test_errors_get_their_kinds(model, talk):
    with pytest.raises(CallTooLong):
        await ask(model, talk({"status": 400, "error": "prompt is too long: 300 tokens > 200 maximum"}))
    with pytest.raises(ModelError, match="rejects the key"):
        await ask(model, talk({"status": 401, "error": "no", "kind": "authentication_error"}))
    with pytest.raises(ModelError, match="unknown model"):
        await ask(model, talk({"status": 404, "error": "no such model", "kind": "not_found_error"}))
    with pytest.raises(CallError) as caught:
        await ask(model, talk({"status": 400, "error": f"bad {KEY} thing"}))
    assert (caught.value.kind, caught.value.attempts, KEY in str(caught.value)) == ("http_400", 1, False)


@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("line", [{"status": 500, "error": "busy", "kind": "InternalServerException"},
                                  {"status": 503, "error": "busy", "kind": "ServiceUnavailableException"},
                                  {"status": 429, "error": "slow down", "kind": "ThrottlingException"}])
async def test_only_ragbed_tries_again(model, line, talk):
    server = talk(line, "Paris")
    done = await ask(model, server)
    assert (done.reply.text, done.attempts, len(server.requests)) == ("Paris", 2, 2)


@pytest.mark.parametrize("model", PROVIDERS)
async def test_a_redirect_is_not_followed_and_carries_no_key(model, talk):
    other = talk("Paris")
    with pytest.raises(CallError):
        await ask(model, talk({"redirect": other.url}))
    assert other.requests == []


@pytest.mark.parametrize("model", PROVIDERS)
async def test_a_refused_temperature_is_left_out(model, talk):
    server = talk({"status": 400, "error": "`temperature` is deprecated for this model."}, "Paris", "Rome")
    async with opened(model, server) as client:
        first, second = [(await client.complete(ASK, max_tokens=64)).reply for _ in range(2)]
    assert first.unsent == second.unsent == (model.partition(":")[2], "temperature")
    assert ["temperature" in json.dumps(body) for _, _, body in server.requests] == [True, False, False]


@pytest.mark.parametrize(("model", "unsent"), [(PROVIDERS[0], ("claude-sonnet-5", "seed")), (PROVIDERS[1], ()),
                                               (PROVIDERS[2], ("anthropic.claude-sonnet-5-v1:0", "seed"))])
async def test_a_parameter_that_the_client_lacks_is_left_out_and_named(model, unsent, talk):
    reply = (await ask(model, talk("Paris"), Generate(ASK.messages, "answer", sample=2, temperature=0.5))).reply
    assert (reply.text, reply.unsent) == ("Paris", unsent)


@pytest.mark.parametrize("model", PROVIDERS)
async def test_a_stalled_server_ends_with_the_calls_deadline(model, talk):
    end = threading.Event()
    server = talk(lambda body: end.wait(5) and "late")
    with pytest.raises(CallTimeout):
        await ask(model, server, seconds=0.3)
    end.set()


@pytest.mark.filterwarnings("ignore:.*tpo_p")  # LangChain warns first
@pytest.mark.parametrize(("model", "config", "says"), [
    (PROVIDERS[0], {"extra_body": {"tpo_p": 1}}, "ChatAnthropic has no argument tpo_p; remove it from extra_body"),
    ("langchain:cohere:command", {}, "langchain-cohere"), ("langchain:nosuch:m", {}, "Unsupported provider='nosuch'")])
async def test_what_langchain_does_not_know_is_one_line(model, config, says, talk):
    with pytest.raises(ModelError, match=re.escape(says)) as caught:
        await ask(model, talk(), **config)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", PROVIDERS)
async def test_headers_are_sent(model, talk, monkeypatch):
    monkeypatch.setenv("TEAM_TOKEN", "canary-team-token")
    server = talk("Paris")
    await ask(model, server, headers={"X-Team": "rag", "X-Token": {"env": "TEAM_TOKEN"}})
    assert (server.requests[0][1]["x-team"], server.requests[0][1]["x-token"]) == ("rag", "canary-team-token")
