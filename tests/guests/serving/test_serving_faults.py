"""What goes wrong around a server: its model, its clients, its process. Each question that was asked has one record."""
import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2 as httpx
import pytest
from patience import SECONDS, until
from serving import client_that_leaves, direct, index_of, served
from streamed import DONE, delta, ending, streamed

from ragbed.agents.model_settings import CallLimits, Limits, ModelSettings
from ragbed.documents import SettingsError
from ragbed.experiments.guests.operations.server_settings import ServerSettings
from ragbed.experiments.guests.serving.app import create_app, open_server
from ragbed.experiments.guests.serving.commands import given_settings
from ragbed.experiments.guests.serving.configurations import read_target
from ragbed.experiments.guests.traffic.traffic_runs import runs_of
from ragbed.experiments.runs.store import RunFolder

ROOT = Path(__file__).parents[3]
QUESTION = {"model": "direct", "messages": [{"role": "user", "content": "Which country is Oslo the capital of?"}]}
ONCE = ModelSettings(calls=CallLimits(attempts=1))


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of(tmp_path_factory.mktemp("pages"))


@contextlib.contextmanager
def client_of(index, url, folder, **changes):
    with (served([direct(index, f"{url}#m", calls=ONCE, **changes)], folder) as at,
          httpx.Client(base_url=at, timeout=SECONDS) as client):
        yield client


def records(folder):
    """The outcome of every record, and why those that failed did."""
    found = []
    for run in runs_of(folder):
        with contextlib.closing(RunFolder.existing(run)) as kept:
            for record in kept.records(traces=True):
                found.append((record.result.outcome, getattr(record.result.failure, "kind", None)))
    return found


WITH_NULLS = [
    ("/v1/chat/completions", "messages", [{"role": "user", "content": [
        {"type": "text", "text": None}, {"type": "text", "text": "Which country is Oslo the capital of?"}]}]),
    ("/v1/responses", "input", [{"role": "user", "type": None, "id": None, "content": [
        {"type": "input_text", "text": "Which country is Oslo the capital of?"}]}]),
    ("/api/ask", "question", "Which country is Oslo the capital of?")]
OF_OPENAI = ("tools", "tool_choice", "temperature", "stop", "response_format", "metadata", "user", "n", "logprobs")


@pytest.mark.parametrize(("path", "name", "asked"), WITH_NULLS)
def test_fields_that_are_null_are_absent(serve, index, tmp_path, path, name, asked):
    with client_of(index, serve(lambda _: "Norway [1].").url, tmp_path / "t") as client:
        parts = client.get("/openapi.json").json()
        of_body = parts["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        fields = parts["components"]["schemas"][of_body.rpartition("/")[2]]["properties"]
        others = OF_OPENAI if path.startswith("/v1") else ()
        body = {**dict.fromkeys((*fields, *others)), name: asked, **({"model": "direct"} if "model" in fields else {})}
        answered = client.post(path, json=body)
        assert answered.status_code == 200, answered.text
        assert "Norway" in answered.text
        assert not others or answered.json()["ragbed"]["ignored"] == []
        nested = [{**body, "stream": True, one: {"include_usage": None, "summary": None}}
                  for one in ("stream_options", "reasoning") if one in fields]
        assert [client.post(path, json=one).status_code for one in nested] == [200] * len(nested)


def test_a_required_field_that_is_null_is_missing(serve, index, tmp_path):
    with client_of(index, serve([]).url, tmp_path / "t") as client:
        refused = client.post("/v1/chat/completions", json={**QUESTION, "messages": None})
        assert refused.status_code == 422
        assert "messages" in refused.json()["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "status", "kind"), [
    ({"drop": True}, 502, "connection"), ({"text": "Norway [1].", "cut": True}, 502, "connection"),
    ({"pieces": [delta(content="Nor")], "cut": True}, 502, "connection"),
    ({"text": "late", "delay": 20}, 504, "timeout"), ({"status": 400, "error": {"message": "no"}}, 502, None)])
def test_a_model_that_fails_is_an_error_and_a_record_and_the_next_question_is_answered(serve, index, tmp_path, line,
                                                                                       status, kind):
    with client_of(index, serve([line, line, streamed("Norway [1].")]).url, tmp_path / "t",
                   limits=Limits(seconds=1.5 if kind == "timeout" else 30)) as client:
        whole = client.post("/v1/chat/completions", json=QUESTION)
        assert whole.status_code == status
        assert "No answer:" in whole.json()["error"]["message"]
        stream = client.post("/v1/chat/completions", json={**QUESTION, "stream": True}).text
        assert stream.endswith("data: [DONE]\n\n")
        assert json.loads(stream.split("\n\n")[-3].removeprefix("data: "))["error"]["code"] in ("error", "timeout")
        good = client.post("/v1/chat/completions", json=QUESTION).json()
        assert good["choices"][0]["message"]["content"] == "Norway [1]."
    kept = records(tmp_path / "t")
    assert [outcome for outcome, _ in kept].count("answered") == 1
    assert len(kept) == 3
    assert kind is None or [why for _, why in kept].count(kind) == 2


def test_a_model_that_is_not_there_is_an_error(index, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with client_of(index, f"http://127.0.0.1:{port}/v1", tmp_path / "t") as client:
        assert client.post("/v1/chat/completions", json=QUESTION).status_code == 502
        assert client.get("/health").json() == {"status": "ok"}
    assert records(tmp_path / "t") == [("error", "connection")]


@contextlib.contextmanager
def hanging_model():
    """A model server that says one word, waits, and knows when its caller has hung up."""
    gone, asked = threading.Event(), threading.Event()

    def answer(listening):
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + delta(content="Norway"))
            asked.set()
            while connection.recv(1 << 16):
                pass
        gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", asked, gone
        thread.join(SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_ends_the_call_and_the_record_says_so(index, tmp_path, stream):
    with hanging_model() as (url, asked, gone), client_of(index, url, tmp_path / "t") as client:
        with client_that_leaves(client, "/v1/chat/completions", {**QUESTION, "stream": stream}):
            assert asked.wait(SECONDS)
        assert gone.wait(SECONDS), "the model's server still holds the connection"
        until(lambda: records(tmp_path / "t"))
    assert records(tmp_path / "t") == [("error", "stopped")]


@contextlib.contextmanager
def process(index, url, folder, *options):
    """`ragbed serve` in a process of its own: it, and the address that it tells."""
    running = subprocess.Popen(
        [sys.executable, "-m", "ragbed", "serve", str(index), "--model", f"{url}#m", "--reasoning", "direct",
         "--retriever", "bm25", "--port", "0", "--traffic", str(folder), *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        said = ""
        for line in running.stdout:
            said += line
            if found := re.search(r"chat page: (http://127\.0\.0\.1:\d+)/", said):
                break
        assert found, said
        yield running, found[1]
    finally:
        running.kill()
        running.wait()
        running.stdout.close()


@pytest.mark.slow
def test_a_stop_under_load_ends_what_is_under_way_and_takes_nothing_more(serve, index, tmp_path):
    held = threading.Event()
    model = serve(lambda body: {"pieces": [delta(content="Norway"), held, delta(content=" [1]."), *ending()]})

    def stream(url):
        return httpx.post(f"{url}/v1/chat/completions", json={**QUESTION, "stream": True}, timeout=SECONDS).text

    with process(index, model.url, tmp_path / "t") as (server, url), ThreadPoolExecutor(8) as clients:
        streams = [clients.submit(stream, url) for _ in range(8)]
        until(lambda: len(model.requests) == 8)
        server.send_signal(signal.SIGTERM)
        until(lambda: refuses(url))
        assert server.poll() is None
        held.set()
        assert all(one.result().endswith(DONE.decode()) and " [1]." in one.result() for one in streams)
        assert server.wait(SECONDS) == 0
    assert records(tmp_path / "t") == [("answered", None)] * 8


def refuses(url):
    try:
        return httpx.get(f"{url}/health").status_code == 503
    except httpx.TransportError:
        return True


@pytest.mark.slow
def test_after_a_kill_threads_are_there_and_nothing_is_doubled_and_they_go_on(serve, index, tmp_path):
    held = threading.Event()
    hanging = {"pieces": [delta(content="It"), held, *ending()]}
    model = serve([streamed("Norway [1]."), "Where is Rome?", hanging, "Where is Rome?", streamed("Italy [1].")])
    with process(index, model.url, tmp_path / "t") as (server, url):
        told = httpx.post(f"{url}/api/ask", json={"question": "Where is Oslo?"}, timeout=SECONDS).text
        thread = json.loads(told.split("data: ")[1].split("\n")[0])["thread"]
        with contextlib.suppress(httpx.TransportError), \
                httpx.stream("POST", f"{url}/api/ask", json={"question": "And Rome?", "thread": thread}) as asking:
            for line in asking.iter_lines():
                if '"event": "text"' in line:
                    server.kill()
        server.wait(SECONDS)
    held.set()
    with process(index, model.url, tmp_path / "t") as (server, url):
        assert [one["id"] for one in httpx.get(f"{url}/api/threads").json()["threads"]] == [thread]
        last = httpx.post(f"{url}/api/ask", json={"question": "Which country is Rome in?", "thread": thread},
                          timeout=SECONDS).text.split("data: ")[-1]
        assert (json.loads(last)["text"], json.loads(last)["record"]) == ("Italy [1].", f"{thread}-2")
        turns = httpx.get(f"{url}/api/threads/{thread}").json()["turns"]
        assert [turn["question"] for turn in turns] == ["Where is Oslo?", "And Rome?", "Which country is Rome in?"]
        server.terminate()
        assert server.wait(SECONDS) == 0
    assert sorted(records(tmp_path / "t"), key=str) == [("answered", None), ("answered", None),
                                                        ("error", "interrupted")]


@pytest.mark.parametrize("options", [["--host", "0.0.0.0"], ["--keys", "nothing"], ["--rate", "fast"]])
def test_what_is_not_safe_to_serve_is_refused_in_a_line(index, ragbed, options):
    status, _, error = ragbed("serve", index, "--model", "http://127.0.0.1:9/v1#m", "--port", "0", *options)
    assert (status, error.count("\n")) == (2, 1)
    assert options[0] in error


def test_an_index_is_served_with_these_limits_and_framing_and_a_settings_file_with_its_own(index, ragbed, tmp_path):
    given = given_settings(model="http://127.0.0.1:9/v1#m", max_tokens=50, call_seconds=7.0, framing="datamarked")
    (served,) = read_target(index, given)
    settings = served.settings
    assert (settings.limits.max_tokens, settings.calls.calls.seconds, settings.framing) == (50, 7.0, "datamarked")
    (tmp_path / "run.yaml").write_text("name: x\n")
    status, _, error = ragbed("serve", tmp_path / "run.yaml", "--max-tokens", "50", "--call-seconds", "7")
    assert (status, "omit --max-tokens, --call-seconds" in error) == (2, True)


def test_names_of_documents_are_text_and_lead_nowhere(serve, tmp_path):
    names = ["<img src=x onerror=alert(1)>.txt", "](javascript:alert(1)).txt", "two\nlines.txt"]
    index = index_of(tmp_path, dict.fromkeys(names, "Oslo is the capital of Norway."))
    body = {**QUESTION, "citations": "both"}
    with client_of(index, serve(lambda body: "Norway [1] [2].").url, tmp_path / "t") as client:
        message = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
        listed = message["content"].split("Sources:\n")[1].split("\n")
        assert len(listed) == 2
        assert not any("<img" in line or "](java" in line for line in listed)
        for one in message["annotations"]:
            page = client.get(one["url_citation"]["url"])
            assert page.status_code == 200
            assert "<img src=x" not in page.text
        for path in ("/documents/..%2f..%2fetc%2fpasswd", "/documents/%00", "/assets/..%2fapp.py", "/assets/../app.py"):
            assert client.get(path).status_code == 404


@pytest.mark.parametrize(("path", "body"), [
    ("/v1/chat/completions", {**QUESTION, "stream": True}), ("/api/ask", {"question": "What is Oslo?"})])
async def test_a_client_that_leaves_before_the_first_event_leaves_a_record(serve, index, tmp_path, path, body):
    come = iter([{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}])

    async def receive():
        return next(come, {"type": "http.disconnect"})

    async def send(message):
        pass

    scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "method": "POST", "path": path,
             "query_string": b"", "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")]}
    async with open_server([direct(index, f"{serve([streamed('Norway [1].')]).url}#m")],
                           ServerSettings(tmp_path / "t")) as serving:
        await create_app(serving)(scope, receive, send)
    (kept,) = records(tmp_path / "t")
    assert kept in (("answered", None), ("error", "stopped"))  # the server ended meanwhile, or did not


def test_a_store_of_threads_that_breaks_is_an_error_and_a_record(serve, index, tmp_path):
    with client_of(index, serve(lambda body: "Norway [1].").url, tmp_path / "t") as client:
        with contextlib.closing(sqlite3.connect(tmp_path / "t" / "threads.sqlite")) as store:
            store.executescript("DROP TABLE checkpoints")
        last = client.post("/api/ask", json={"question": "What is Oslo?"}).text.split("data: ")[-1]
        assert json.loads(last)["failure"] == {
            "kind": "store", "message": "the server cannot store answers now; try again later"}
        assert client.post("/v1/chat/completions", json=QUESTION).status_code == 200
    assert sorted(outcome for outcome, _ in records(tmp_path / "t")) == ["answered", "error"]


async def test_a_folder_of_traffic_that_cannot_be_made_is_told_in_a_line(index, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="/file/t: Not a directory; name another folder"):
        async with open_server([direct(index, "http://127.0.0.1:9/v1#m")], ServerSettings(tmp_path / "file" / "t")):
            pass
