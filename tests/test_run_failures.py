"""What can go wrong in a run: a failing server is counted and named, a mistake of the user's is one line."""
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from patience import SECONDS

from ragbed.strategies import CRESTS

FIVE = list(CRESTS)
NOWHERE = "http://127.0.0.1:9/v1"
TOO_LONG = {"code": "context_length_exceeded",
            "message": "maximum context length is 10 tokens. However, you requested 99"}
TROUBLE = {
    "429": ({"status": 429, "headers": {"Retry-After": "99"}}, "error", "http_429"),
    "500": ({"status": 500}, "error", "http_500"),
    "nothing": ({"drop": True}, "error", "connection"),
    "half": ({"body": b'{"choices": [{"mess'}, "error", "bad_json"),
    "empty": ("", "malformed", None),
    "late": ({"text": "late", "delay": 9}, "timeout", "timeout"),
    "long": ({"status": 400, "error": TOO_LONG}, "too_long", "too_long"),
    "odd": ({"body": b'{"choices": []}'}, "error", "bad_response"),
    "teapot": ({"status": 418, "error": {"message": "short\x1b[2Jand stout"}}, "error", "http_418")}


def asked_about(body: dict) -> str:
    return re.findall(r"About (\w+)\?", body["messages"][1]["content"])[0]


@pytest.mark.slow
def test_every_trouble_that_a_server_can_make_is_counted_and_named(serve, town, ragbed):
    server = serve(lambda body: TROUBLE[asked_about(body)][0])
    own = town.own(*({"id": name, "question": f"About {name}?", "answer": "x"} for name in TROUBLE))
    path = town.config(server.url, benchmark=own, conditions="closed-book", concurrency=16,
                       calls={"calls": {"attempts": 2, "seconds": 1.5}})
    (cell,) = ragbed.json("run", path)["cells"]
    assert cell["n"] == len(TROUBLE)
    assert {name: n for name, n in cell["outcomes"].items() if n} == {
        "error": 6, "malformed": 1, "timeout": 1, "too_long": 1}
    results = {record["result"]["question"]: record["result"] for record in town.records()}
    assert {name: (result["outcome"], (result["failure"] or {}).get("kind")) for name, result in results.items()} == {
        name: (outcome, kind) for name, (_, outcome, kind) in TROUBLE.items()}
    assert results["long"]["failure"]["message"] == "the prompt has 99 tokens and the model's context holds 10"
    tried = Counter(asked_about(body) for body, _ in server.requests)
    assert tried == {**dict.fromkeys(TROUBLE, 1), "500": 2, "nothing": 2, "half": 2}
    assert "\x1b" not in (town.run / "report.html").read_text()


def test_a_full_disk_ends_a_run_in_one_line_and_the_same_command_continues_it(serve, town, ragbed):
    resource = pytest.importorskip("resource")
    server = serve(lambda body: f"<Thinking>{'x' * 60_000}</Thinking>{town.reply(body)}")
    path = town.config(server.url, concurrency=1)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, usual[1]))
    try:
        ragbed.refuses("run", path, says=["records.sqlite: disk I/O error", "free space; rerun the command"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    asked = len(server.requests)
    assert 0 < asked < 6
    status, out, _ = ragbed("run", path, "--json")
    assert (status, json.loads(out)["cells"][0]["n"]) == (0, 6)
    assert len(server.requests) <= 7


def test_a_run_that_cannot_be_written_can_be_read(serve, town, ragbed):
    path = town.config(serve(town.reply).url)
    assert ragbed("run", path)[0] == 0
    (town.run / "records.sqlite-wal").mkdir()  # SQLite cannot write it, as in a folder that is read-only
    for command in (("report", town.run), ("rescore", town.run), ("judge", town.run), ("show", town.run, "refusal-0")):
        assert ragbed(*command, "--json")[0] == 0
    ragbed.refuses("run", path, says=["records.sqlite: unable to open database file", "copy the folder to a place"])
    (town.run / "report.html").unlink()
    (town.run / "report.html").mkdir()
    ragbed.refuses("report", town.run, says=["report.html: cannot write", "a folder has this name"])


def test_what_failed_is_asked_again_on_request_and_nothing_else(serve, town, ragbed):
    outage = [True]
    server = serve(lambda body: {"status": 500} if outage and "live in town 4" in body["messages"][1]["content"]
                   else town.reply(body))
    path = town.config(server.url, calls={"calls": {"attempts": 1}})
    assert ragbed("run", path)[0] == 0
    assert ragbed("run", path)[0] == 0
    assert len(server.requests) == 6
    outage.clear()
    status, out, _ = ragbed("run", path, "--retry", "--json")
    (cell,) = json.loads(out)["cells"]
    assert (status, len(server.requests), cell["n"], cell["outcomes"]["error"]) == (0, 7, 6, 0)


def test_what_failed_is_told_with_its_cause_and_how_to_ask_again(serve, town, ragbed):
    failing = {"2": {"status": 400, "error": {"message": "odd\x1b[2J " + "x" * 5000}}, "3": {"status": 400},
               "4": {"drop": True}}
    server = serve(lambda body: next((line for number, line in failing.items()
                                      if f"live in town {number}" in body["messages"][1]["content"]), "x"))
    path = town.config(server.url, calls={"calls": {"attempts": 1}}, concurrency=1)
    for options in ([], ["--json"]):
        status, _, err = ragbed("run", path, *options)
        assert status == 0
        lines = err.splitlines()
        (first,) = [line for line in lines if line.startswith("2 failed with http_400, the first: ")]
        assert "HTTP 400" in first
        assert len(first) < 400
        assert any(line.startswith("1 failed with connection, the first: ") for line in lines)
        assert f"`ragbed run {path} --retry` asks them again" in lines
        assert "\x1b" not in err
    failing.clear()
    assert " failed with " not in ragbed("run", path, "--retry")[2]


@pytest.mark.parametrize(("settings", "outcome"), [
    ({}, "error"), ({"calls": {"calls": {"attempts": 1, "seconds": 0.05}}}, "timeout"),
    ({"limits": {"tokens": 1}, "reasoning": "least_to_most"}, "budget"),
    ({"calls": {"context": 256}}, "too_long")])
def test_a_run_in_which_no_question_had_a_reply_ends_with_status_1(serve, town, ragbed, settings, outcome):
    server = serve(lambda body: {"status": 400} if outcome == "error" else
                   {"text": town.reply(body), "delay": 0.2 if outcome == "timeout" else 0})
    status, out, _ = ragbed("run", town.config(server.url, **settings), "--json")
    assert (status, json.loads(out)["cells"][0]["outcomes"][outcome]) == (1, 6)


_AS_IN_A_SCRIPT = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]  # a shell that is no terminal's starts `command &` so


@pytest.mark.slow
@pytest.mark.parametrize(("started", "sent", "status", "said"), [
    ([], signal.SIGINT, 130, "interrupted"),
    pytest.param(_AS_IN_A_SCRIPT, signal.SIGTERM, 143, "terminated", marks=pytest.mark.slow)])
def test_a_run_that_is_told_to_stop_waits_for_no_reply_and_the_same_command_continues_it(
        serve, town, ragbed, started, sent, status, said):
    go = threading.Event()
    server = serve(lambda body: {"text": town.reply(body)} | ({"hold": go} if len(server.requests) > 3 else {}))
    path = town.config(server.url, calls={"calls": {"seconds": 900}})
    child = subprocess.Popen([*started, sys.executable, "-m", "ragbed", "run", str(path)],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while len(server.requests) < 6 or len(town.hashes()) < 3:
        assert child.poll() is None
        time.sleep(0.005)
    child.send_signal(sent)
    _, err = child.communicate(timeout=SECONDS)  # a fraction of a second on an idle machine
    assert (child.returncode, "Traceback" in err) == (status, False)
    assert err.splitlines()[-1] == (f"{said}; what was answered is kept; `ragbed report {town.run}` shows it; rerun "
                                    "the command to continue")
    assert not (town.run / "summary.json").exists()
    assert len(town.hashes()) == 3
    go.set()
    assert ragbed("run", path)[0] == 0
    assert len(server.requests) == 6 + 3


@pytest.mark.slow
@pytest.mark.parametrize("status", [401, 404])
def test_what_would_fail_every_call_ends_the_run_with_one_line_and_once_mended_it_goes_on(
        serve, town, ragbed, monkeypatch, status):
    monkeypatch.setenv("RAGBED_API_KEY", "sk-canary-0123456789")
    mended: list[bool] = []
    server = serve(lambda body: town.reply(body) if mended else {
        "status": status, "error": {"message": "bad key sk-canary-0123456789"}})
    path = town.config(server.url, reasoning=FIVE)
    ragbed.refuses("run", path, says=[f"HTTP {status}"])
    assert len(server.requests) <= 4
    mended.append(True)
    assert ragbed("run", path)[0] == 0
    assert len(town.hashes()) == 30


@pytest.mark.parametrize(("settings", "words"), [
    ({"reasonning": "direct"}, ["unknown setting 'reasonning'; did you mean 'reasoning'?"]),
    ({"limits": {"call": 3}}, ["unknown setting 'limits.call'; did you mean 'calls'?"]),
    ({"benchmark": {"kind": "crest", "pth": "x"}}, ["'benchmark.pth'; did you mean 'path'?"]),
    ({"benchmark": {"kind": "jsonl", "path": "no/such.jsonl"}}, ["no/such.jsonl: no such file"]),
    ({"benchmark": {"kind": "crest", "path": "no-such-folder"}}, ["no-such-folder: no such file or folder"]),
    ({"benchmark": {"kind": "demo"}, "conditions": "provided"}, ["has no chunks for its questions; use retrieved"]),
    ({"conditions": "gold", "benchmark": "OWN"}, ["no corpus", "benchmark: {corpus: FOLDER}"]),
    ({"conditions": "retrieved", "benchmark": "OWN"}, ["no corpus", "benchmark: {corpus: FOLDER}"]),
    ({"reasoning": "guess"}, ["unknown reasoning strategy 'guess'", "direct, chain_of_thought"]),
    ({"models": "smollm"}, ["unknown model 'smollm'", "smollm2-135m"]),
    ({"models": ["a", "a"]}, ["models: duplicate value"]),
    ({"models": ["http://127.0.0.1:9/v1#m", "http://127.0.0.1:7/v1#m"]},
     ["127.0.0.1:9/v1#m and http://127.0.0.1:7/v1#m", "have the same identity, m"]),
    ({"rules": "closed-book"}, ["rules", "conditions: closed-book"]),
    ({"models": "openai:gpt"}, ["OPENAI_API_KEY is not set"]),
    ({"judge": "guess"}, ["unknown model 'guess'"]),
    ({"judge": {"kind": "model", "model": "http://h/v1#j", "tokens": 3}}, ["'judge.tokens'", "max_tokens"]),
    ({"name": "a/b"}, ["name: 'a/b' cannot be the name of a folder", "letters"]),
    *(({key: []}, [f"{key}: the list is empty; name at least one"]) for key in (
        "models", "reasoning", "retrieval", "retriever", "rules", "conditions", "formats")),
    ({"concurrency": 0}, ["concurrency", "greater than or equal to 1"]),
    ({"retriever": {"k": 5, "indx": "x"}, "conditions": "retrieved"},
     ["'retriever.0.indx'; did you mean 'index'?"]),
    ({"conditions": "retrieved", "retriever": {"index": "no-index"}}, ["no-index", "does not exist"])])
def test_what_the_user_can_mend_is_one_line_and_does_not_bar_the_mended_run(
        serve, town, ragbed, monkeypatch, settings, words):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if settings.get("benchmark") == "OWN":
        settings = {**settings, "benchmark": town.own({"question": "Where?"})}
    ragbed.refuses("run", town.config(NOWHERE, **settings), says=words)
    if town.run.exists():
        assert ragbed("run", town.config(serve(town.reply).url), "--limit", 1)[0] == 0


@pytest.mark.parametrize(("content", "word"), [
    (b"name: \xff\xfe", "not valid YAML"), (b"a: [b", "not valid YAML"), (b"- a", "mapping"),
    (b"", "mapping"),
    (b"[" * 1500, "nested too deeply"), (b"1: 2\nbenchmark: {kind: demo}", "1: Keys should be strings"),
    (b"seed: 1\nbenchmark: {kind: demo}\nseed: 2", "line 3 repeats the key 'seed'"),
    (b"benchmark: {kind: demo, kind: crest}", "line 1 repeats the key 'kind'"),
    (b"!!python/object/apply:os.system ['true']", "not valid YAML"), (b"name: x", "benchmark: Field required")])
def test_a_settings_file_that_does_not_fit_is_one_line(ragbed, tmp_path, content, word):
    (tmp_path / "bad.yaml").write_bytes(content)
    ragbed.refuses("run", tmp_path / "bad.yaml", says=["bad.yaml", word])


def test_a_name_that_no_run_can_have_is_one_line(ragbed):
    for name in ("judge", "report", "rescore"):
        ragbed.refuses(name, "a" * 5000, says=["holds no run"])


def test_questions_that_share_an_id_or_are_none_are_refused(town, ragbed):
    own = town.own({"id": "a", "question": "One?"}, {"id": "a", "question": "Two?"})
    ragbed.refuses("run", town.config(NOWHERE, benchmark=own, conditions="closed-book"), says=["line 2", "field id"])
    town.write([town.row(0), *(town.row(1, id=id) for id in ("7", "7", "7~2"))])
    ragbed.refuses("run", town.config(NOWHERE), says=["id non_refusal-7~2", "make the ids unique"])
    ragbed.refuses("run", town.config(NOWHERE, benchmark=town.own(), conditions="closed-book"), says=["no question"])


RAISES = """
import asyncio


class Mute(BaseException):
    def __str__(self):
        raise Mute


RAISED = [asyncio.CancelledError("x"), BaseException("y"), GeneratorExit(), Mute(), SystemExit(3), ValueError("z")]


def fail(text):
    raise RAISED[int(text.split()[-1].rstrip("?"))]


def recipe(task):
    fail(task.question)
    yield


class make:
    def __init__(self, chunks):
        self.chunks = chunks

    def search(self, queries, k):
        fail(queries[0])
"""


@pytest.mark.parametrize(("kind", "settings"), [
    ("strategy", {"reasoning": "raises.py:recipe"}),
    ("retriever", {"conditions": "retrieved", "retriever": {"kind": "external", "factory": "raises.py:make"}})])
def test_every_question_has_a_record_whatever_code_of_others_raises(kind, settings, serve, town, ragbed, monkeypatch):
    monkeypatch.chdir(town.folder)
    (town.folder / "raises.py").write_text(RAISES)
    status, out, err = ragbed("run", town.config(serve(town.reply).url, **settings), "--json")
    (cell,) = json.loads(out)["cells"]
    assert (status, cell["n"], cell["outcomes"]["error"]) == (1, 6, 6), err
    failures = [record["result"]["failure"] for record in town.records()]
    assert {failure["kind"] for failure in failures} == {kind}
    for said in ("CancelledError: x", "BaseException: y", "GeneratorExit", "Mute: <exception str() failed>",
                 "SystemExit: 3", "ValueError: z"):
        assert sum(said in failure["message"] for failure in failures) == 1
