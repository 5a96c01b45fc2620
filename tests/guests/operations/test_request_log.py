"""One line for each request, its id and its trace, and whether the server can answer now."""
import asyncio
import contextlib
import json
import re
import socket
import time

import httpx2 as httpx
import mcp
import pytest
from patience import SECONDS, until
from serving import answering, client_that_leaves, direct, index_of, served
from starlette.datastructures import Headers
from streamed import as_asked, streamed

from ragbed.agents.model_settings import CallLimits, ModelSettings
from ragbed.documents.errors import CallError
from ragbed.experiments.guests.operations import readiness
from ragbed.experiments.guests.operations.edge import EdgeSettings
from ragbed.experiments.guests.operations.trace_context import TraceContext
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.app import create_app
from ragbed.experiments.guests.serving.middleware import GateSettings
from ragbed.experiments.guests.serving.supervisor import SharedNumbers

ANN = "ann-key-0123456789"
QUESTION = {"model": "direct", "messages": [{"role": "user", "content": "Which country is Oslo the capital of?"}]}
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
NEW_ID = re.compile(r"[0-9a-f]{32}")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def logging_server(serve, index, tmp_path, capsys):
    """Serves a scripted model behind a key; gives a client, a function that waits for this many lines, and the model's
    server."""
    written = []

    def lines(count):  # a line is written after its response
        until(lambda: written.extend(capsys.readouterr().err.splitlines()) or len(written) >= count)
        return written

    with contextlib.ExitStack() as stack:
        def start(*script, style="json", texts=False, **changes):
            model = serve(script[0] if callable(script[0]) else list(script))
            settings = ModelSettings(calls=CallLimits(attempts=1))
            url = stack.enter_context(served(
                [direct(index, f"{model.url}#m", calls=settings, **changes)], tmp_path / "traffic",
                lambda serving: create_app(serving, GateSettings(Keys([f"ann {ANN}"])), EdgeSettings(style)),
                log_texts=texts))
            client = stack.enter_context(httpx.Client(base_url=url, timeout=SECONDS, headers={
                "Authorization": f"Bearer {ANN}"}))
            return client, lines, model

        yield start


def test_each_request_has_one_line_without_texts(logging_server):
    client, lines, _ = logging_server(streamed("Norway [1]."), {"status": 400, "error": {"message": "secret-detail"}},
                                      "I cannot answer because the question is unanswerable with the documents.")
    answered = client.post("/v1/chat/completions", json={**QUESTION, "stream": True}, headers={"X-Request-Id": "r-1"})
    failed = client.post("/v1/chat/completions", json=QUESTION)
    client.post("/api/ask", json={"question": "Who?"})
    client.get("/v1/models")
    client.get("/health")
    first, second, third, fourth = map(json.loads, lines(4))
    assert answered.headers["X-Request-Id"] == "r-1"
    assert {name: first[name] for name in ("request", "key", "method", "route", "status", "outcome", "configuration",
                                           "prompt_tokens", "completion_tokens", "price")} == {
        "request": "r-1", "key": "ann", "method": "POST", "route": "/v1/chat/completions", "status": 200,
        "outcome": "answered", "configuration": "direct", "prompt_tokens": 700, "completion_tokens": 12, "price": None}
    assert 0 <= first["search"] + first["model_seconds"] <= first["seconds"] + 0.002
    assert 0 < first["first_text"] <= first["seconds"]
    assert NEW_ID.fullmatch(second["request"])
    assert second["request"] == failed.headers["X-Request-Id"]
    assert (second["status"], second["outcome"], "secret-detail" in second["failure"]) == (502, "failed", True)
    assert "secret-detail" not in failed.text
    assert "127.0.0.1" not in failed.text
    assert (third["outcome"], third["status"]) == ("refused", 200)
    assert (fourth["route"], fourth["outcome"]) == ("/v1/models", None)
    assert "Oslo" not in str((first, second, third, fourth))


def test_texts_are_logged_if_asked_for_and_unknown_prices_are_unknown(logging_server):
    client, lines, _ = logging_server("Norway\n[1].", style="text", texts=True)
    client.post("/v1/chat/completions", json=QUESTION)
    (line,) = lines(1)
    assert 'question="Which country is Oslo the capital of?" text="Norway\\n[1]."' in line
    assert " price=unknown " in line
    assert " 200 answered request=" in line


@pytest.mark.parametrize("id", ["a" * 129, "a b", "a\tb", "é", 'x" status=200', ""])
def test_an_id_of_strange_characters_is_replaced(logging_server, id):
    client, lines, _ = logging_server([], style="text")
    answer = client.get("/v1/models", headers={"X-Request-Id": id.encode()})
    assert NEW_ID.fullmatch(answer.headers["X-Request-Id"])
    (line,) = lines(1)
    assert f"request={answer.headers['X-Request-Id']} " in line


def test_rejected_requests_do_not_fill_the_log(logging_server):
    client, lines, _ = logging_server([])
    started = time.monotonic()
    for _ in range(60):
        assert client.get("/v1/models", headers={"Authorization": ""}).status_code == 401
    seconds = time.monotonic() - started
    client.get("/v1/models")
    found = list(map(json.loads, lines(11)))
    while found[-1]["status"] == 401:
        found = list(map(json.loads, lines(len(found) + 1)))
    assert 11 <= len(found) <= 13 + 10 * seconds
    assert len(found) + sum(one.get("left_out", 0) for one in found) == 61


def test_a_client_that_leaves_is_not_a_failure(logging_server):
    client, lines, model = logging_server(lambda body: {"text": "late", "delay": 1_000})
    for asked, (path, body) in enumerate([("/v1/chat/completions", QUESTION), ("/api/ask", {"question": "Where?"})]):
        with client_that_leaves(client, path, body):
            until(lambda asked=asked: len(model.requests) > asked)
    assert [json.loads(line)["outcome"] for line in lines(2)] == ["left", "left"]
    left = 'ragbed_answers_total{configuration="direct",outcome="left"} 2.0'
    until(lambda: left in client.get("/metrics").text)  # counted when the call has ended, after the line
    assert 'outcome="error"' not in client.get("/metrics").text


def test_the_trace_of_a_client_goes_on_to_the_model(logging_server):
    client, lines, model = logging_server(lambda body: "Norway [1].")
    for sent in (f"00-{TRACE}-{SPAN}-01", None, f"00-{'0' * 32}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01"):
        client.post("/v1/chat/completions", json=QUESTION, headers={
            "tracestate": "vendor=1", **({"traceparent": sent} if sent else {})})
    passed_on = [{name.lower(): value for name, value in headers.items()} for _, headers in model.requests]
    found = re.fullmatch(rf"00-{TRACE}-([0-9a-f]{{16}})-01", passed_on[0]["traceparent"])
    assert found[1] != SPAN
    assert passed_on[0]["tracestate"] == "vendor=1"
    assert not any("traceparent" in headers or "tracestate" in headers for headers in passed_on[1:])
    assert [json.loads(line).get("trace") for line in lines(4)] == [TRACE, None, None, None]


@pytest.mark.parametrize(("parent", "trace"), [
    (f"00-{TRACE}-{SPAN}-00", TRACE), (f"cc-{TRACE}-{SPAN}-01-more", TRACE), (f"00-{TRACE}-{SPAN}-01-more", None),
    (f"00-{TRACE.upper()}-{SPAN}-01", None), (f"00-{TRACE}-{'0' * 16}-01", None), ("x" * 10_000, None),
    (f"00-{TRACE}-{SPAN}", None)])
def test_traceparent_is_read_as_w3c_defines_it(parent, trace):
    found = TraceContext.read(Headers({"traceparent": parent}))
    assert (found and found.trace) == trace


def test_the_server_says_which_part_is_not_ready(serve, index, tmp_path, caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for model, status, state in ((serve([]).url, 200, "ok"), (f"http://127.0.0.1:{port}/v1", 503, "failed")):
        with served([direct(index, f"{model}#m")], tmp_path / f"t{status}", lambda serving: create_app(
                serving, GateSettings(Keys([f"ann {ANN}"])))) as url:
            ready = httpx.get(f"{url}/ready")
            assert (ready.status_code, ready.json()) == (status, {
                "status": "ready" if state == "ok" else "not ready", "model": state, "store": "ok", "index": "ok"})
            assert httpx.get(f"{url}/health").json() == {"status": "ok"}
            assert [httpx.get(f"{url}/ready").status_code for _ in range(5)] == [status] * 5
    assert [record.message.startswith("not ready: model: ") for record in caplog.records] == [True]


def test_a_server_whose_model_fails_every_call_is_not_ready_until_one_succeeds(serve, index, tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "_FRESH_SECONDS", 0.0)
    replies = ["fails"] * 4 + ["Norway [1]."] + ["fails"] * 5 + ["refuses"] * 2 + ["Norway [1]."] + ["fails"] * 5
    lines = {"fails": {"status": 500, "error": {"message": "no"}}, "refuses": {
        "status": 400, "error": {"message": "this prompt is not allowed"}}}
    model = serve(lambda body: lines.get(reply := replies.pop(0), reply))
    once = ModelSettings(calls=CallLimits(attempts=1))
    with served([direct(index, f"{model.url}#m", calls=once)], tmp_path / "t") as url:
        def ask():
            httpx.post(f"{url}/v1/chat/completions", json={**QUESTION, "model": "direct"}, timeout=SECONDS)
            return httpx.get(f"{url}/ready").json()["model"]

        assert [ask() for _ in range(9)] == ["ok"] * 9
        assert [ask() for _ in range(3)] == ["failed"] * 3  # a prompt that is refused says nothing of the model
        assert httpx.get(f"{url}/ready").status_code == 503
        assert [ask() for _ in range(6)] == ["ok"] * 5 + ["failed"]
        monkeypatch.setattr(readiness, "_RECENT_SECONDS", 0.0)  # later, so that questions come again
        assert httpx.get(f"{url}/ready").json()["status"] == "ready"


async def test_failed_calls_are_counted_over_all_workers(tmp_path):
    with (tmp_path / "numbers").open("w+b") as file:
        file.truncate(1 << 20)
        counts = [readiness.FailedCalls(SharedNumbers(file.fileno(), process)) for process in (0, 1)]
        for turn in range(4):
            counts[turn % 2].count("m", [True])
        counts[0].check("m")
        counts[0].count("m", [True])
        for one in counts:
            with pytest.raises(CallError, match="m: the last 5 calls have failed"):
                one.check("m")
            one.check("other")
        counts[1].count("m", [True, False])
        counts[0].check("m")


@pytest.mark.slow
def test_a_model_server_that_hangs_is_not_ready(index, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        model = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with served([direct(index, f"{model}#m")], tmp_path / "t") as url:
            assert httpx.get(f"{url}/ready", timeout=10).json()["model"] == "failed"


def test_calls_of_tools_are_counted_by_known_names(serve, tmp_path):
    left = ['Thought: look\ngrep: {"pattern": "Oslo is"}\nlist', "grep: (", "Thought: enough\nfinish",
            "<Answer>Norway [1]</Answer>"]
    with answering(serve, index_of(tmp_path), tmp_path) as start:
        url, _ = start(as_asked(lambda body: left.pop(0)),
                       reasoning={"kind": "agent", "tools": ["list", "grep"], "protocol": "text"})
        httpx.post(f"{url}/v1/chat/completions", json={**QUESTION, "model": "direct"}, timeout=SECONDS)

        async def call():
            async with mcp.Client(f"{url}/mcp") as client:
                await client.call_tool("list", {})
                await client.call_tool("grep", {"pattern": "("})

        asyncio.run(call())
        text = httpx.get(f"{url}/metrics").text
    for tool, outcome, count in (("grep", "done", 1), ("list", "done", 2), ("grep", "failed", 2)):
        assert f'ragbed_tool_calls_total{{outcome="{outcome}",tool="{tool}"}} {count}.0' in text
