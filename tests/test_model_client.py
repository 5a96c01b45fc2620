"""The model client against a scripted server: what it sends, what it keeps, how it fails, and whom it tells."""
import gzip
import json
import logging
import os
import socket
import ssl
import threading
from dataclasses import replace

import pytest
from streamed import Told

from ragbed.agents import CallLimits, ModelSettings, open_model
from ragbed.agents.model_settings import ModelConfig
from ragbed.documents import CallError, CallTooLong, ModelError
from ragbed.strategies import Generate, Message, Usage

CANARY = "canary-7f3e9d21c0ffee"
ASK = Generate((Message("system", ("Be brief.",)), Message("user", ("Documents. ", "Where?"))), "answer")
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


@pytest.fixture(autouse=True)
def _quick_and_keyed(monkeypatch):
    monkeypatch.setattr("ragbed.documents.http._FIRST_DELAY", 0.01)
    monkeypatch.setenv("RAGBED_API_KEY", CANARY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


async def call(server, action=ASK, *, repeat=0, **limits):
    settings = ModelSettings(calls=CallLimits(**limits))
    async with open_model(f"{server.url}#m", settings) as model:
        return await model.complete(action, max_tokens=64, repeat=repeat)


async def failure(server, kind=CallError, **limits):
    with pytest.raises(kind) as caught:
        await call(server, **limits)
    return caught.value


async def test_a_call_sends_its_parameters_and_returns_text_and_usage(serve):
    server = serve(["Paris [1]"])
    done = await call(server)
    body, headers = server.requests[0]
    assert body == {"model": "m", "messages": [{"role": "system", "content": "Be brief."},
                                               {"role": "user", "content": "Documents. Where?"}],
                    "temperature": 0.0, "max_tokens": 64}
    assert headers["Authorization"] == f"Bearer {CANARY}"
    assert (done.reply.text, done.reply.finish_reason, done.attempts) == ("Paris [1]", "stop", 1)
    assert done.reply.usage == Usage(700, 12, 0, 1, None)


async def test_a_schema_is_asked_for_strictly_and_the_reply_parsed(serve):
    server = serve(['{"answer": "Paris"}', "no JSON", "[1]", '{"answer": NaN}'])
    action = Generate(ASK.messages, "answer", schema=SCHEMA)
    assert [(await call(server, action)).reply.parsed for _ in range(4)] == [
        {"answer": "Paris"}, None, None, {"answer": None}]
    assert server.requests[0][0]["response_format"] == {
        "type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA}}


async def test_repeats_and_samples_get_seeds_of_their_own(serve):
    server = serve(["a"] * 4)
    draw = Generate(ASK.messages, "answer", sample=2, temperature=0.7, stop=("END",))
    await call(server)
    await call(server, repeat=1)
    await call(server, draw)
    await call(server, draw, repeat=3)
    bodies = [body for body, _ in server.requests]
    assert [body.get("seed") for body in bodies] == [None, 1000, 2, 3002]
    assert bodies[2]["stop"] == ["END"]
    assert bodies[2]["temperature"] == 0.7


@pytest.mark.parametrize("line", [
    {"status": 429}, {"status": 500}, {"status": 503}, {"status": 408}, {"status": 409}, {"drop": True}, {"cut": True},
    {"body": b'{"choices": [{"mess'}, {"body": b"<html>busy</html>"}])
async def test_passing_trouble_is_tried_again(serve, line):
    server = serve([line, line, "Paris"])
    done = await call(server)
    assert (done.reply.text, done.attempts, len(server.requests)) == ("Paris", 3, 3)


@pytest.mark.parametrize(("line", "kind"), [
    ({"status": 500, "error": {"message": "over\x1b[31m\nload"}}, "http_500"),
    ({"drop": True}, "connection"), ({"cut": True}, "connection"), ({"body": b"{"}, "bad_json"),
    ({"body": b"[" * 100_000}, "bad_json")])
async def test_lasting_trouble_is_named_and_counted(serve, line, kind):
    server = serve(lambda _: line)
    error = await failure(server, attempts=3)
    assert (error.kind, error.attempts, len(server.requests)) == (kind, 3, 3)
    assert "\n" not in str(error)
    assert "\x1b" not in str(error)


@pytest.mark.parametrize(("line", "kind"), [
    ({"extra": {"choices": []}}, "bad_response"), ({"extra": {"choices": [{"index": 0}]}}, "bad_response"),
    ({"body": b"[]"}, "bad_response"), ({"status": 400, "error": {"message": "no"}}, "http_400"),
    ({"status": 418, "body": b"\xff"}, "http_418"),
    ({"status": 307, "headers": {"Location": "http://127.0.0.1:9/"}}, "http_307")])
async def test_final_trouble_is_not_tried_again(serve, line, kind):
    server = serve([line])
    error = await failure(server)
    assert (error.kind, error.attempts, len(server.requests)) == (kind, 1, 1)


BOMB = {"body": gzip.compress(b" " * (64 << 20)), "headers": {"Content-Encoding": "gzip"}}


@pytest.mark.parametrize(("line", "says"), [
    (BOMB, "compressed"), ({**BOMB, "status": 500}, "compressed"), ({"text": "x" * (17 << 20)}, "larger than 16 MB"),
    ({"body": b"x" * (17 << 20), "status": 401}, "larger than 16 MB")])
async def test_a_reply_beyond_any_size_is_neither_unpacked_nor_read_to_its_end(serve, line, says):
    server = serve([line])
    error = await failure(server)
    assert (error.kind, error.attempts, len(server.requests)) == ("bad_response", 1, 1)
    assert says in str(error)
    assert server.requests[0][1]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("error", [
    {"message": "too big", "type": "exceed_context_size_error", "n_prompt_tokens": 9031, "n_ctx": 8192},
    {"code": "context_length_exceeded", "message": "This model's maximum context length is 8192 tokens. However, your "
     "messages resulted in 9031 tokens."},
    {"message": "The decoder prompt (length 9031) is longer than the maximum model length of 8192.", "code": 400},
    {"message": "This model's maximum context length is 8192 tokens. However, you requested 9031 tokens"}])
async def test_a_prompt_beyond_the_context_says_both_sizes(serve, error):
    raised = await failure(serve([{"status": 400, "error": error}]), CallTooLong)
    assert raised.kind == "too_long"
    assert str(raised) == "the prompt has 9031 tokens and the model's context holds 8192"


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_names_the_variable_and_not_the_key(serve, status):
    server = serve([{"status": status, "error": {"message": f"bad key {CANARY}"}}])
    error = await failure(server, ModelError)
    assert "RAGBED_API_KEY" in str(error)
    assert CANARY not in str(error)


async def test_a_403_after_a_success_is_about_its_prompt_and_quoted_without_the_key(serve):
    said = {"error": {"message": f"no\r\nsuch talk {CANARY}" + "x" * 1_000}}
    server = serve(["fine", {"status": 403, **said}, "fine", {"status": 401, **said}])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        await model.complete(ASK, max_tokens=9)
        with pytest.raises(CallError, match="no such talk") as caught:
            await model.complete(ASK, max_tokens=9)
        assert (caught.value.kind, caught.value.attempts) == ("http_403", 1)
        assert CANARY not in str(caught.value)
        assert len(str(caught.value)) < 300
        await model.complete(ASK, max_tokens=9)
        with pytest.raises(ModelError):
            await model.complete(ASK, max_tokens=9)


@pytest.mark.parametrize("error", [{"message": "Your input was flagged."}, {"code": "content_filter"},
                                   {"message": "This model requires moderation"}])
async def test_a_content_filter_blocks_no_run_even_at_its_first_prompt(serve, error):
    assert (await failure(serve([{"status": 403, "error": error}]))).kind == "http_403"


async def test_an_unknown_model_and_a_spent_account_end_the_run(serve):
    unknown = await failure(serve([{"status": 404, "error": {"message": "no model m"}}]), ModelError)
    assert "no model m" in str(unknown)
    spent = serve([{"status": 429, "error": {"message": "pay", "code": "insufficient_quota"}}])
    assert "quota" in str(await failure(spent, ModelError))


async def test_a_refused_temperature_is_left_out_once_and_named_in_each_reply(serve, caplog):
    line = {"status": 400, "error": {"message": "Unsupported value: 'temperature' does not support 0"}}
    server = serve([line, "Paris", "Rome"])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        done = [await model.complete(ASK, max_tokens=64) for _ in range(2)]
        assert model.parameters(ASK, 64)["temperature"] == 0.0  # the calls keep their keys
    assert ["temperature" in body for body, _ in server.requests] == [True, False, False]
    assert [(one.reply.text, one.reply.unsent, one.attempts) for one in done] == [
        ("Paris", ("m", "temperature"), 2), ("Rome", ("m", "temperature"), 1)]
    assert [record.getMessage() for record in caplog.records] == [
        f"{server.url}#m: the server refuses temperature, so calls are sent without it"]


async def test_temperature_and_effort_are_what_the_settings_say_and_none_is_not_sent(serve):
    server = serve(["a"] * 4)
    for settings, action in (({"temperature": None}, ASK), ({"temperature": 0.5, "reasoning_effort": "low"}, ASK),
                             ({"temperature": None}, replace(ASK, temperature=0.7)),
                             ({"temperature": None}, replace(ASK, sample=1))):
        async with open_model(f"{server.url}#o1-mini", ModelSettings(**settings)) as model:
            await model.complete(action, max_tokens=9)
    sent = [{name: value for name, value in body.items() if name not in ("model", "messages", "max_tokens")}
            for body, _ in server.requests]
    assert sent == [{}, {"temperature": 0.5, "reasoning_effort": "low", "seed": 0}, {}, {"seed": 1}]


async def test_the_key_reaches_no_error_log_or_reply(serve, caplog):
    caplog.set_level(logging.DEBUG)
    lines = [{"status": 400, "error": {"message": f"you sent {CANARY}"}}, f"your key is {CANARY}", {"drop": True}]
    server = serve(lines)
    assert CANARY not in repr(await failure(server))
    assert (await call(server)).reply.text == "your key is [key]"
    error = await failure(server, attempts=1)
    seen: list[BaseException | None] = [error, error.__cause__, error.__context__]
    assert CANARY not in repr([(one, getattr(one, "__dict__", None)) for one in seen])
    assert CANARY not in caplog.text


async def test_nobody_listening_is_a_failed_connection(serve):
    server = serve([])
    server.url = "http://127.0.0.1:9/v1"
    failed = await failure(server, attempts=2)
    assert failed.kind == "connection"
    assert str(failed).endswith("; check that the server runs and can be reached")


async def test_an_error_of_the_tls_layer_is_a_failed_connection(monkeypatch):
    def anonymous(side):  # needs no certificate
        context = ssl.SSLContext(side)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
        return context

    def serve():
        while True:
            try:
                accepted, _ = listening.accept()
            except OSError:  # the test is over
                return
            with anonymous(ssl.PROTOCOL_TLS_SERVER).wrap_socket(accepted, server_side=True) as tls:
                tls.recv(65_536)
                with socket.socket(fileno=os.dup(tls.fileno())) as plain:
                    plain.sendall(b"\x17\x03\x03\x00\x20" + 32 * b"x")  # a record that no key encrypted

    monkeypatch.setattr("httpx2.create_ssl_context", lambda **_: anonymous(ssl.PROTOCOL_TLS_CLIENT))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        settings = ModelSettings(calls=CallLimits(attempts=1))
        async with open_model(f"https://127.0.0.1:{listening.getsockname()[1]}/v1#m", settings) as model:
            with pytest.raises(CallError, match="SSLError") as caught:
                await model.complete(ASK, max_tokens=9)
        listening.shutdown(socket.SHUT_RDWR)
        server.join()
    assert caught.value.kind == "connection"


async def test_headers_of_the_user_replace_others_and_empty_ones_are_not_sent(serve, monkeypatch):
    monkeypatch.setenv("TEAM_KEY", "abc-0123456789")
    server = serve(["a"])
    config = ModelConfig(model=f"{server.url}#m", headers={
        "AUTHORIZATION": {"env": "TEAM_KEY"}, "user-agent": "", "X-Team": "7"})
    async with open_model("mine", ModelSettings(models={"mine": config})) as model:
        await model.complete(ASK, max_tokens=9)
    sent = [(name.lower(), value) for name, value in server.requests[0][1].items()]
    assert [value for name, value in sent if name == "authorization"] == ["abc-0123456789"]
    assert ("x-team", "7") in sent
    assert "user-agent" not in dict(sent)


async def test_cookies_of_a_server_are_sent_back_so_that_a_balancer_can_keep_its_choice(serve):
    server = serve([{"text": "a", "headers": {"Set-Cookie": "node=7"}}, "b"])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        for _ in range(2):
            await model.complete(ASK, max_tokens=9)
    first, second = ({name.lower(): value for name, value in headers.items()} for _, headers in server.requests)
    assert (first.get("cookie"), second["cookie"]) == (None, "node=7")


async def test_loopback_needs_no_proxy_and_one_that_cannot_be_used_is_named_without_its_password(serve, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "gopher://user:secret@127.0.0.1:9")
    async with open_model("http://models.invalid/v1#m", ModelSettings()) as model:
        with pytest.raises(ModelError, match="ALL_PROXY") as caught:
            await model.complete(ASK, max_tokens=9)
    assert "secret" not in str(caught.value)
    assert (await call(serve(["direct"]))).reply.text == "direct"


async def test_only_openai_itself_is_sent_the_newer_name_of_the_limit():
    from ragbed.agents.openai_chat import connect
    from ragbed.documents.http import Address
    for url, name in (("https://api.openai.com/v1", "max_completion_tokens"), ("https://example.org/v1", "max_tokens")):
        chat = connect(Address(url, CANARY), "gpt-5-mini", 1)
        body = chat.body([{"role": "user", "content": "?"}], {"temperature": 0.0, "max_tokens": 9})
        assert body == {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "?"}], "temperature": 0.0,
                        name: 9}
        assert CANARY not in repr(chat)
        await chat.aclose()


async def test_the_openai_form_uses_its_own_variables_and_lists_a_price(serve, monkeypatch):
    server = serve(["a"])
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    async with open_model("openai:gpt-4o-mini", ModelSettings()) as model:
        assert (model.name, model.identity) == ("openai:gpt-4o-mini", "gpt-4o-mini")
        await model.complete(ASK, max_tokens=9)
    assert server.requests[0][1]["Authorization"] == "Bearer sk-openai-0123456789"


async def test_openai_secrets_go_to_nobody_else(serve, monkeypatch):
    server = serve(["a"])
    monkeypatch.delenv("RAGBED_API_KEY")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-0123456789")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    await call(server)
    assert "sk-openai" not in str(server.requests)
    assert "secret" not in str(server.requests)


@pytest.mark.parametrize("tokens", [10**30, -1, True, 1.5, "7", None])
async def test_usage_that_cannot_be_is_none(serve, tokens):
    usage = {"prompt_tokens": tokens, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": tokens}}
    assert (await call(serve([{"text": "a", "usage": usage}]))).reply.usage == Usage(0, 2, 0, 1, None)


def inside(**fields):
    """A line with status 200 and this body."""
    return {"body": json.dumps(fields).encode()}


def finished(reason, **choice):
    return inside(choices=[{"index": 0, "finish_reason": reason, "message": {"content": "Par"}, **choice}])


WRAPPED = {"error": {"message": "Provider returned error", "code": 502, "metadata": {
    "raw": '{"error": {"message": "the engine\\u001b[31m\\ndied"}}', "provider_name": "x"}}}


@pytest.mark.parametrize("line", [
    inside(**WRAPPED), inside(choices=[], **WRAPPED), inside(error={"code": "502", "message": "m"}, choices=None),
    inside(error="the upstream server is gone", code=502), finished("error", error={"code": 502, "message": "m"}),
    inside(error={"code": "provider_error", "message": "m"}, choices=[{"message": {"content": "Par"}}])])
@pytest.mark.parametrize("tell", [None, Told()])
async def test_an_error_behind_status_200_is_sent_again_as_its_own_status_would_be(serve, line, tell):
    server = serve([line, line, "Paris", line, line])
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(attempts=3))) as model:
        assert (await model.complete(ASK, max_tokens=9, tell=tell)).attempts == 3
    assert (await failure(server, attempts=2)).kind == "http_502"


@pytest.mark.parametrize(("line", "kind", "says"), [
    (inside(**WRAPPED), "http_502", '"Provider returned error: the engine [31m died"'),
    (inside(error={"code": 400, "message": "bad input"}, choices=None), "http_400", '"bad input"'),
    (inside(error={"code": "invalid_request_error", "message": "x\n" * 9_000}), "http_400", '"x x x'),
    (inside(error={"code": 402, "message": f"pay {CANARY}"}), "http_402", '"pay [key]"'),
    (inside(error={"code": "context_length_exceeded", "message": "m"}), "too_long", "does not fit"),
    (inside(detail=[{"loc": ["body"], "msg": "field required"}]), "http_500", '"field required"'),
    (inside(base_resp={"status_code": 4711, "status_msg": "odd"}, choices=None), "http_500", '"odd"'),
    ({"body": b'[{"error": {"code": 500, "message": "m", "status": "INTERNAL"}}]'}, "http_500", '"m"'),
    ({"body": b'{"error":' * 150 + b'"x"' + b"}" * 150}, "http_500", "HTTP 500"),
    (finished("error"), "http_500", '"finish_reason: error"'),
    (finished("content_filter"), "content_filter", "content filter stopped the reply"),
    (finished("content_filter", message=None), "content_filter", "content filter stopped the reply")])
async def test_an_error_behind_status_200_is_quoted_in_one_short_line(serve, line, kind, says):
    error = await failure(serve(lambda _: line), attempts=1)
    assert error.kind == kind
    assert says in str(error)
    assert len(str(error)) < 300
    assert str(error).isprintable()


async def test_a_rate_limit_behind_status_200_is_none_of_the_attempts(serve):
    slow = inside(error={"code": 429, "message": "slow down"})
    busy = inside(error={"type": "overloaded_error", "message": "Overloaded"})
    server = serve([slow, busy, inside(error={"status": "RESOURCE_EXHAUSTED", "message": "q"}), "Paris"])
    assert (await call(server, attempts=1)).reply.text == "Paris"


async def test_a_key_or_account_that_is_refused_behind_status_200_ends_the_run(serve):
    assert "rejects the key" in str(await failure(serve([inside(error={"code": 401, "message": "m"})]), ModelError))
    assert "quota" in str(await failure(serve([inside(error={"code": "insufficient_quota"})]), ModelError))


@pytest.mark.parametrize("nothing", [None, {}, "", False, {"code": 0, "message": "success"}])
async def test_a_field_for_errors_that_names_none_is_no_error(serve, nothing):
    assert (await call(serve([{"text": "Paris", "extra": {"error": nothing}}]))).reply.text == "Paris"
