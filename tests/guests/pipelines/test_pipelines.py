"""Pipelines of users in a run: over HTTP, in Python, as commands; what they return, and how they fail."""
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from patience import SECONDS

from ragbed.experiments import open_run

PYTHON = '''
def answer(question, documents):
    number = int(question.split("town ")[1].rstrip("?"))
    return {"answer": f"{number * 111} people", "contexts": documents[:1], "citations": [documents[0]["document"]],
            "prompt_tokens": 10, "completion_tokens": 2, "price": 0.001}

async def alone(question):
    return "I do not know."

def dated(question):
    import datetime
    import numpy
    return {"answer": "0 people", "prompt_tokens": numpy.int64(7),
            "contexts": [{"text": "x", "metadata": {"day": datetime.date(2026, 1, 1)}}]}

def failing(question):
    if "town 1" in question:
        raise ValueError("no town has the number one")
    if "town 2" in question:
        return {"text": "nothing where an answer was looked for"}
    if "town 5" in question:
        raise ValueError("half a character: \\ud800")
    said = {"town 3": object(), "town 4": {"answer": "0 people", "refused": "yes"}}
    return said.get(question[-7:-1], "0 people")

asked = []

class Busy(Exception):
    status_code = 429

def busy(question):
    asked.append(question)
    if asked.count(question) == 1:
        raise Busy("come back later")
    return "0 people"
'''


@pytest.fixture
def endpoint():
    """An HTTP endpoint that answers as a function of the request's JSON says: a status and a body."""
    servers = []

    def start(answers):
        requests = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                requests.append((body, dict(self.headers)))
                status, said = answers(body)
                data = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        servers.append(server := ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/ask", requests

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def town_rows(town):
    return json.loads((town.run / "summary.json").read_text())["cells"]


@pytest.fixture
def pipes(town, ragbed, monkeypatch):
    """Runs the town with these pipelines, and returns the results by pipeline and question."""
    monkeypatch.chdir(town.folder)
    (town.folder / "mine.py").write_text(PYTHON)

    def run(*pipelines, url="", **settings):
        own = {"models": f"{url}#m"} if url else {}
        path = town.config("http://127.0.0.1:9", pipelines=list(pipelines), **settings)
        content = yaml.safe_load(path.read_text())
        content = {key: value for key, value in content.items() if url or key not in ("models", "reasoning")} | own
        path.write_text(yaml.safe_dump(content))
        status, _, err = ragbed("run", path)
        assert status in (0, 1), err
        models = {row["id"]: row["model"] for row in town_rows(town)}
        return {(models[one["result"]["cell"]], one["result"]["question"]): one["result"] for one in town.records()}

    return run


def test_a_python_function_is_a_cell_whose_contexts_are_matched_with_the_gold(pipes):
    found = pipes({"kind": "python", "name": "mine", "factory": "mine.py:answer"})
    one = found["pipeline:mine", "non_refusal-2"]
    assert one["outcome"] == "answered"
    assert one["text"] == "222 people"
    assert one["cited"] == (1,)
    assert [(passage["number"], passage["gold"], passage.get("aside", False)) for passage in one["evidence"]] == [
        (1, "chunk", False), (2, None, True)]
    assert one["scores"]["citation_precision"] == one["scores"]["citation_recall"] == 1
    assert one["usage"]["prompt_tokens"] == 10
    assert one["usage"]["price"] == 0.001
    assert len(found) == 6


def test_a_pipeline_that_is_sent_no_documents_is_one_cell(pipes, town):
    found = pipes({"kind": "python", "name": "alone", "factory": "mine.py:alone", "refusals": ["I do not know"]},
                  conditions=["provided", "gold"])
    assert {key[0] for key in found} == {"pipeline:alone"}
    assert len(found) == 6
    assert {one["outcome"] for one in found.values()} == {"refused"}
    (row,) = town_rows(town)
    assert (row["condition"], row["retrieval"], row["retriever"]) == ("retrieved", "own", None)


def test_gold_never_reaches_a_pipeline(pipes, endpoint):
    url, requests = endpoint(lambda body: (200, {"answer": "0"}))
    everything = {name: f"{{{name}}}" for name in ("id", "question", "options", "history", "documents")}
    pipes({"kind": "http", "name": "web", "url": url, "request": everything})
    assert len(requests) == 6
    for body, _ in requests:
        assert set(body) == set(everything)
        assert all(set(one) == {"document", "text"} for one in body["documents"])
        assert "refusal" not in json.dumps(body)  # CReSt's ids say which questions have an answer
        assert "people" not in json.dumps({**body, "documents": []}).replace("How many people", "")


def test_an_endpoint_is_asked_by_a_template_and_read_by_paths(pipes, endpoint, monkeypatch):
    monkeypatch.setenv("TOWN_KEY", "secret-of-the-town")
    def answers(body):
        text = body["data"]["docs"][0]["text"]
        return 200, {"result": [{"said": f"key secret-of-the-town [{body['q'].count('?')}]"}], "usage": {"in": 5},
                     "sources": [{"passage": text, "metadata": {"source": "elsewhere.html"}}]}

    url, requests = endpoint(answers)
    found = pipes({"kind": "http", "name": "web", "url": url, "key_variable": "TOWN_KEY",
                   "request": {"q": "Tell me: {question}", "data": {"docs": "{documents}", "k": 3}},
                   "answer": "$.result[0].said", "contexts": "$.sources[*]", "prompt_tokens": "$.usage.in"})
    one = found["pipeline:web", "non_refusal-1"]
    assert one["text"] == "key [key] [1]"
    assert one["cited"] == (1,)
    assert one["usage"]["prompt_tokens"] == 5
    assert one["evidence"][0]["gold"] == "chunk"  # by its text, though the pipeline calls its document otherwise
    body, headers = next(one for one in requests if "town 1?" in one[0]["q"])
    assert body["q"] == "Tell me: How many people live in town 1?"
    assert body["data"]["k"] == 3
    assert headers["Authorization"] == "Bearer secret-of-the-town"


def test_a_busy_or_broken_endpoint_is_asked_again_and_its_failures_are_data(pipes, endpoint):
    tries = {}

    def answers(body):
        number = tries[body["question"]] = tries.get(body["question"], 0) + 1
        if "town 1?" in body["question"] and number == 1:
            return 503, {"error": {"message": "overloaded"}}
        if "town 2?" in body["question"]:
            return 500, {"error": {"message": "broken"}}
        return (200, b"no JSON") if "town 3?" in body["question"] else (200, {"answer": "0 people"})

    url, _ = endpoint(answers)
    found = pipes({"kind": "http", "name": "web", "url": url})
    failures = {question: one["failure"] and one["failure"]["kind"] for (_, question), one in found.items()}
    assert failures == {"refusal-0": None, "non_refusal-1": None, "non_refusal-2": "http_500",
                        "non_refusal-3": "bad_json", "non_refusal-4": None, "non_refusal-5": None}
    assert tries["How many people live in town 1?"] == tries["How many people live in town 2?"] == 2


def test_what_python_code_raises_or_returns_is_a_one_line_failure(pipes):
    found = pipes({"kind": "python", "name": "failing", "factory": "mine.py:failing"})
    said = {question: one["failure"] and (one["failure"]["kind"], one["failure"]["message"])
            for (_, question), one in found.items()}
    assert said["non_refusal-1"] == ("pipeline", "failing: mine.py:18: ValueError: no town has the number one")
    assert said["non_refusal-2"] == (
        "bad_response", "pipeline:failing: it returned no answer at $.answer")
    assert said["non_refusal-3"] == (
        "pipeline", "failing: it returned a value that cannot be written as JSON: a object")
    assert said["non_refusal-4"][1].startswith("pipeline:failing: it returned an invalid refused: ")
    assert said["non_refusal-5"] == ("pipeline", "failing: mine.py:22: ValueError: half a character: ?")
    assert said["refusal-0"] is None


@pytest.mark.slow
def test_code_that_never_returns_does_not_keep_a_run_from_ending(town):
    (town.folder / "mine.py").write_text("import threading\ndef never(question):\n    threading.Event().wait()\n")
    never = {"kind": "python", "name": "never", "factory": "mine.py:never"}
    path = town.config("http://127.0.0.1:9", pipelines=[never], models=[], concurrency=2,
                       calls={"calls": {"attempts": 1, "seconds": 1}})
    done = subprocess.run([sys.executable, "-m", "ragbed", "run", str(path)], cwd=town.folder, timeout=SECONDS,
                          env={"PYTHONPATH": str(Path(__file__).parents[3])}, capture_output=True, text=True)
    assert "6 failed with timeout" in done.stdout + done.stderr


@pytest.mark.slow
def test_an_error_with_the_status_of_a_busy_server_is_retried(pipes):
    found = pipes({"kind": "python", "name": "busy", "factory": "mine.py:busy"})
    assert {one["outcome"] for one in found.values()} == {"answered"}


@pytest.mark.slow
def test_a_command_reads_json_and_writes_json_or_text(pipes, town):
    script = town.folder / "say.sh"
    script.write_text("#!/bin/sh\nread line\ncase \"$line\" in\n"
                      "*'town 1?'*) echo '{\"answer\": \"111 people\"}';;\n"
                      "*'town 2?'*) echo \"222 people\";;\n"
                      "*'town 3?'*) echo 'cannot count' >&2; exit 3;;\n"
                      "*'town 4?'*) sleep 60;;\n*) echo \"$line\" | tr -d '{}';;\nesac\n")
    script.chmod(0o755)
    found = pipes({"kind": "command", "name": "shell", "argv": ["./say.sh"]},
                  calls={"calls": {"attempts": 2, "seconds": 3}})
    said = {question: one["text"] or one["failure"]["message"] for (_, question), one in found.items()}
    assert said == {"refusal-0": '"question": "How many people live in town 0?"', "non_refusal-1": "111 people",
                    "non_refusal-2": "222 people", "non_refusal-3": "shell: exit status 3: cannot count",
                    "non_refusal-4": "no reply within the call's 3 s",
                    "non_refusal-5": '"question": "How many people live in town 5?"'}


def test_a_command_that_leaves_a_child_or_writes_endlessly_is_killed(pipes, town):
    script = town.folder / "odd.sh"
    script.write_text("#!/bin/sh\nread line\ncase \"$line\" in *'town 1?'*) setsid sleep 9 & echo '111 people';;\n"
                      "*'town 2?'*) yes;;\n*) echo '{\"answer\": \"broken';;\nesac\n")
    script.chmod(0o755)
    found = pipes({"kind": "command", "name": "shell", "argv": ["./odd.sh"]}, calls={"calls": {"attempts": 1}},
                  benchmark={"kind": "crest", "path": str(town.crest), "limit": 3})
    said = {question: one["text"] or one["failure"]["message"] for (_, question), one in found.items()}
    assert said == {"refusal-0": "pipeline:shell: the reply is not JSON", "non_refusal-1": "111 people",
                    "non_refusal-2": "pipeline:shell: it wrote more than 16 MB"}


@pytest.mark.slow
def test_pipelines_and_strategies_are_compared_in_one_matrix(pipes, serve, town, ragbed):
    server = serve(town.reply)
    pipes({"kind": "python", "name": "mine", "factory": "mine.py:answer"},
          {"kind": "python", "name": "alone", "factory": "mine.py:alone"}, url=server.url,
          reasoning=["direct", "chain_of_thought"], conditions=["provided", "closed-book"])
    with open_run(town.run) as run:
        called = {row["id"]: name for name, row in run.cells.items()}
        pairs = run.summary["comparisons"]["pairs"]
    assert sorted(called.values()) == [
        "alone · pipeline · retrieved", "m · chain_of_thought · closed-book", "m · chain_of_thought · provided",
        "m · direct · closed-book", "m · direct · provided", "mine · pipeline · closed-book",
        "mine · pipeline · provided"]
    of_models = {(called[one["first"]], called[one["second"]]) for one in pairs if one["factor"] == "model"}
    # What is sent documents differs from a strategy in one thing where both see the same; what finds its own, always.
    assert ("m · direct · provided", "mine · pipeline · provided") in of_models
    assert ("m · direct · provided", "mine · pipeline · closed-book") not in of_models
    assert sum("alone · pipeline · retrieved" in pair for pair in of_models) == 6
    assert ragbed("compare", town.run)[0] == 0


def test_a_run_with_pipelines_is_replayed_elsewhere_without_their_code(pipes, town, ragbed, tmp_path):
    pipes({"kind": "python", "name": "mine", "factory": "mine.py:answer"})
    before = (town.run / "summary.json").read_bytes()
    cassette = tmp_path / "c.gz"
    assert ragbed("cassette", "export", town.run, "--out", cassette)[0] == 0
    (town.folder / "mine.py").unlink()
    status, _, err = ragbed("run", "--replay", cassette, "--out", tmp_path / "again")
    assert status == 0, err
    assert next((tmp_path / "again").glob("*/summary.json")).read_bytes() == before


def test_a_changed_pipeline_is_asked_again(pipes, town, ragbed):
    pipes({"kind": "python", "name": "mine", "factory": "mine.py:answer"})
    (town.folder / "mine.py").write_text(PYTHON.replace("111", "112"))
    status, _, err = ragbed("run", town.folder / "town.yaml")
    assert status == 0
    assert "another model under the name pipeline:mine" in err
    assert "6 calls sent and 0 reused" in err


def test_numpy_numbers_and_dates_are_converted_to_json(pipes):
    found = pipes({"kind": "python", "name": "dated", "factory": "mine.py:dated"})
    assert {(one["outcome"], one["usage"]["prompt_tokens"]) for one in found.values()} == {("answered", 7)}


def test_a_pipeline_that_retrieves_is_compared_with_one_that_is_sent_documents(pipes, town, ragbed):
    pipes({"kind": "python", "name": "mine", "factory": "mine.py:answer"},
          {"kind": "python", "name": "alone", "factory": "mine.py:alone"})
    _, out, _ = ragbed("run", town.folder / "town.yaml")
    assert "`mine · provided` scores highest" in out
