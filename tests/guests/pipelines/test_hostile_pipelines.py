"""Code of users that raises wherever it can, blocks, or outlives a run: each question has its record, others go on, and
every process ends."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import SECONDS, until
from test_local_server import LINUX

CODE = '''
import asyncio, time

class Bad:
    def __getattr__(self, name):
        raise RuntimeError(f"no {name}")

class Unclear:
    @property
    def __class__(self):
        raise RuntimeError("class")

class Rude(Exception):
    @property
    def status_code(self):
        raise RuntimeError("status")

class Endless(dict):
    def items(self):
        raise OSError("items")

def refuse(error):
    raise error

RETURNS = {"attribute": Bad, "class": Unclear, "items": lambda: Endless(answer=1), "status": lambda: refuse(Rude()),
           "interrupt": lambda: refuse(KeyboardInterrupt()), "exit": lambda: refuse(SystemExit(3))}

def answer(kind):
    def one(question):
        return RETURNS[kind]() if "town 1?" in question else "0 people"
    return one

attribute, unclear, items, status, interrupt, leave = map(
    answer, ("attribute", "class", "items", "status", "interrupt", "exit"))

async def blocks(question):
    if "town 1?" in question:
        time.sleep(1000)
    await asyncio.sleep(0.01)
    return "0 people"

async def interrupted(question):
    if "town 1?" in question:
        raise KeyboardInterrupt
    return "0 people"
'''


def run(town, *pipelines, **settings):
    """Run pipelines in a process, which has to end; the outcomes by question, and the first failure."""
    path = town.config("http://127.0.0.1:9", pipelines=list(pipelines), models=[], **settings)
    done = subprocess.run([sys.executable, "-m", "ragbed", "run", str(path), "--fresh"], cwd=town.folder,
                          timeout=SECONDS, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
                          capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    results = [one["result"] for one in town.records()]
    return {one["question"]: one["outcome"] for one in results}, next(
        (one["failure"]["message"] for one in results if one["failure"]), "")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "why"), [
    ("attribute", "RuntimeError: no model_dump"), ("unclear", "RuntimeError: class"), ("items", "OSError: items"),
    ("status", "RuntimeError: status"), ("interrupt", "KeyboardInterrupt"), ("leave", "SystemExit: 3"),
    ("interrupted", "KeyboardInterrupt"), ("blocks", "blocked the event loop for 2 seconds; use await")])
def test_code_that_raises_or_blocks_fails_one_question_and_the_others_go_on(town, name, why):
    (town.folder / "mine.py").write_text(CODE)
    outcomes, failure = run(town, {"kind": "python", "name": "mine", "factory": f"mine.py:{name}"},
                            calls={"calls": {"attempts": 3, "seconds": 8}})
    assert outcomes.pop("non_refusal-1") == "error"
    assert why in failure
    assert [*outcomes.values()] == ["answered"] * 5


@pytest.mark.slow
def test_a_retriever_that_blocks_fails_its_question_and_the_process_ends(town, serve):
    (town.folder / "mine.py").write_text(
        "import time\nfrom ragbed.retrieval.types import Hit\n\nclass Slow:\n"
        "    def __init__(self, chunks):\n        self.chunks = chunks\n\n"
        "    def search(self, queries, k):\n        if any('town 1?' in one for one in queries):\n"
        "            time.sleep(1000)\n        return [[Hit(self.chunks[0], 1.0, 1, 'x')] for _ in queries]\n")
    path = town.config(serve(town.reply).url, conditions="retrieved", retriever={
        "kind": "external", "factory": "mine.py:Slow", "over": "all", "k": 1, "seconds": 2})
    subprocess.run([sys.executable, "-m", "ragbed", "run", str(path)], cwd=town.folder, timeout=SECONDS,
                   env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}, capture_output=True)
    failures = {one["result"]["question"]: one["result"]["failure"] for one in town.records()}
    assert failures.pop("non_refusal-1")["message"] == "external mine.py:Slow: no result within 2 seconds"
    assert [*failures.values()] == [None] * 5


@LINUX
@pytest.mark.slow
def test_programs_end_with_a_run_that_is_killed(town):
    script = town.folder / "slow.sh"
    script.write_text("#!/bin/sh\necho $$ >> pids\nsleep 1000 &\necho $! >> pids\nwait\n")
    script.chmod(0o755)
    path = town.config("http://127.0.0.1:9", models=[], concurrency=2, pipelines=[
        {"kind": "command", "name": "slow", "argv": ["./slow.sh"]}])
    child = subprocess.Popen([sys.executable, "-m", "ragbed", "run", str(path)], cwd=town.folder,
                             env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
                             stderr=subprocess.DEVNULL)
    pids = town.folder / "pids"
    until(lambda: pids.exists() and len(pids.read_text().split()) == 4)
    child.send_signal(signal.SIGKILL)
    child.wait()
    started = pids.read_text().split()
    until(lambda: not any(map(_runs, started)))


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("url", ["http://a\x00b/x", "http://ho\x7fst/", "http://h\n/x"])
def test_a_url_with_a_control_character_is_refused_in_one_line(town, ragbed, url):
    path = town.config("http://127.0.0.1:9", models=[], pipelines=[{"kind": "http", "name": "web", "url": url}])
    ragbed.refuses("run", path, says=["pipelines.0.url: a pipeline's URL is not a URL"])
