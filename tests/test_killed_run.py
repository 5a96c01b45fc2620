"""A run over 195 real questions, killed five times at random moments, is the run that was never disturbed.

Five strategies and three conditions over `tests/data/hotpotqa_195`: 2,925 records.
"""
from __future__ import annotations

import contextlib
import json
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path

import yaml

from strategies.catalogue import REASONING

COMMAND = [sys.executable, "-m", "experiments.cli", "run"]
QUESTIONS = Path(__file__).parent / "data" / "hotpotqa_195"
AT_ONCE, KILLS = 16, 5


def reply(body):
    """Depends on the request alone: right, wrong, cited, malformed or refused; and sub-questions where asked for."""
    last = body["messages"][-1]["content"]
    number = int(sha256(json.dumps(body["messages"]).encode()).hexdigest(), 16)
    if "simpler questions" in last:
        words = re.findall(r"\w+", last)[-6:]
        return f"1. Who was {words[0]}?\n2. What is {words[-1]}?"
    return ["<Answer>yes [1]</Answer>", "<Thinking>Two films.</Thinking><Answer>Chris Evans [2]</Answer>", "no",
            "", "<Answer>1969 [7][9]</Answer>"][number % 5]


def settings(folder, url) -> Path:
    path = folder / "matrix.yaml"
    path.write_text(yaml.safe_dump({
        "out": str(folder / "runs"), "benchmark": {"kind": "hotpotqa", "path": str(QUESTIONS)}, "models": f"{url}#m",
        "reasoning": list(REASONING), "conditions": ["given", "evidence", "closed-book"], "concurrency": AT_ONCE}))
    return path


def begun(path, log) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, str(path), "--json"], stdout=subprocess.DEVNULL, stderr=log)


def made(run: Path) -> tuple[bytes, list[tuple[str, str, str]]]:
    """The summary and the hash of every result."""
    with contextlib.closing(sqlite3.connect(run / "records.sqlite")) as connection:
        rows = connection.execute("SELECT cell, question, hash FROM records ORDER BY cell, question").fetchall()
    return (run / "summary.json").read_bytes(), rows


def calls(requests) -> Counter[str]:
    return Counter(json.dumps(body, sort_keys=True) for body, _ in requests)


def test_killed_five_times_and_continued_a_run_is_the_one_that_was_never_disturbed(serve, tmp_path):
    server = serve(lambda body: {"text": reply(body), "delay": 0.002})
    path, run = settings(tmp_path, server.url), tmp_path / "runs" / "matrix"
    with (tmp_path / "log").open("wb") as log:
        assert begun(path, log).wait() == 0
        undisturbed, once = made(run), calls(server.requests)
        assert len(undisturbed[1]) == 5 * 3 * 195
        assert set(once.values()) == {1}

        run.rename(run.with_name("undisturbed"))
        server.requests.clear()
        for enough in sorted(random.Random(4).sample(range(50, len(once) - 200), KILLS)):
            child = begun(path, log)
            while len(server.requests) < enough:
                assert child.poll() is None
                time.sleep(0.002)
            child.kill()
            child.wait()
            assert not (run / "summary.json").exists()
        assert begun(path, log).wait() == 0
    again = calls(server.requests)
    assert again.keys() == once.keys()
    summary, hashes = made(run)
    assert hashes == undisturbed[1]  # first: a summary can only differ alone where the code changed in between
    assert summary == undisturbed[0]
    assert sum(again.values()) - len(again) <= KILLS * AT_ONCE
