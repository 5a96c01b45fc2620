"""A run over 195 real questions, killed five times at random moments, is the run that was never disturbed.

Five strategies and three conditions over `tests/data/hotpotqa_195`: 2,925 records.
"""
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

import pytest
import yaml

from ragbed.strategies import CRESTS

COMMAND = [sys.executable, "-m", "ragbed", "run"]
QUESTIONS = Path(__file__).parent / "data" / "hotpotqa_195"
AT_ONCE, KILLS = 16, 5
CALLS = 3 * 195 * (1 + 1 + 1 + 1 + 4)  # the last strategy asks for two sub-questions, each, and the question


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
        "reasoning": list(CRESTS), "conditions": ["provided", "gold", "closed-book"], "concurrency": AT_ONCE}))
    return path


def made(run: Path) -> tuple[list[tuple[str, str, str]], bytes]:
    """The hash of every result, and the summary."""
    with contextlib.closing(sqlite3.connect(run / "records.sqlite")) as connection:
        rows = connection.execute("SELECT cell, question, hash FROM records ORDER BY cell, question").fetchall()
    return rows, (run / "summary.json").read_bytes()


def journal(run: Path) -> list[str]:
    """The text of every reply in the journal."""
    with contextlib.closing(sqlite3.connect(run / "records.sqlite")) as connection:
        return sorted(text for text, in connection.execute("SELECT json_extract(reply, '$.text') FROM calls"))


@pytest.mark.slow
def test_killed_five_times_and_continued_a_run_is_the_one_that_was_never_disturbed(serve, tmp_path, ragbed):
    server = serve(reply)
    path, run = settings(tmp_path, server.url), tmp_path / "runs" / "matrix"
    with (tmp_path / "log").open("wb") as log:
        for enough in sorted(random.Random(4).sample(range(50, CALLS - 200), KILLS)):
            child = subprocess.Popen([*COMMAND, str(path), "--json"], stdout=subprocess.DEVNULL, stderr=log)
            while len(server.requests) < enough:
                assert child.poll() is None
                time.sleep(0.002)
            child.kill()
            child.wait()
            assert not (run / "summary.json").exists()
    assert ragbed("run", path)[0] == 0
    hashes, summary = made(run)
    assert len(hashes) == 5 * 3 * 195

    calls = Counter(json.dumps(body, sort_keys=True) for body, _ in server.requests)
    assert len(calls) == CALLS
    assert calls.total() - CALLS <= KILLS * AT_ONCE
    assert journal(run) == sorted(reply(json.loads(body)) for body in calls)

    # What is never disturbed, over the same replies: every record anew from the journal, in one session.
    server.requests.clear()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert server.requests == []
    hashes_undisturbed, summary_undisturbed = made(run)
    assert hashes == hashes_undisturbed  # first: a summary can only differ alone where the code changed in between
    assert summary == summary_undisturbed
