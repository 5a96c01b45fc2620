"""Two strategies, a LangChain chain, a Haystack pipeline, an HTTP endpoint and a shell command in one matrix over
HotpotQA, killed and continued.

    python bench/pipeline_matrix.py hotpot_dev_distractor_v1.json [--questions 50] [--kills 3] [--json]

All but the shell command ask one scripted model. It knows the answers, and gives one where it stands in a passage that
it was shown, and a hash of the prompt allows it: four times out of five. So cells differ by what they show it. The run
is killed (SIGKILL) after random numbers of its calls, each time continued, then made again from its journal, and made
anew without a kill: each time summary.json has to have the same bytes. Needs haystack-ai.
"""
from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FILES = Path(__file__).parent.parent / "tests" / "guests" / "pipelines" / "data"
RUN = [sys.executable, "-m", "ragbed", "run", "matrix.yaml"]


class Model(ThreadingHTTPServer):
    """The scripted model behind OpenAI's interface, and how many calls it has had."""

    daemon_threads, request_queue_size = True, 64

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {row["question"].strip(): row["answer"] for row in rows}
        self.calls = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that was killed."""

    def reply(self, prompt: str) -> str:
        """The answer and the passage that it stands in."""
        asked = next(question for question in self.answers if question in prompt)
        *passages, _ = re.split(r"^\[(\d+)\]", prompt.rpartition("Question:")[0], flags=re.MULTILINE)[1:] or [""]
        answer, shown = self.answers[asked], dict(zip(passages[::2], passages[1::2], strict=False))
        found = next((number for number, text in shown.items() if answer.lower() in text.lower()), None)
        if sha256(prompt.encode()).digest()[0] % 5 and (found or answer in ("yes", "no")):
            return f"{answer} [{found or 1}]"
        return "nobody knows [1]"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Model

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.calls += 1
        prompt = body["messages"][-1]["content"]
        said = self.server.reply(prompt)
        text = f"<Answer>{said}</Answer>" if "<Answer>" in prompt else said
        words = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
        data = json.dumps({"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {**words, "total_tokens": sum(words.values())}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def main() -> None:
    """Make the run, and print what it shows and how it went on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    text = given.path.read_text()
    rows = json.loads(text) if text.startswith("[") else list(map(json.loads, text.splitlines()))
    with tempfile.TemporaryDirectory() as folder, Model(rows[:given.questions]) as model:
        report = killed(Path(folder), model, rows[:given.questions], given.kills, given.seed)
    print(json.dumps(report) if given.json else "\n".join(f"{name}: {value}" for name, value in report.items()))


def killed(folder: Path, model: Model, rows: list[dict[str, Any]], kills: int, seed: int) -> dict[str, Any]:
    """Return what came of a run in a folder that is killed so often."""
    shutil.copytree(FILES, folder, dirs_exist_ok=True)
    url = f"http://127.0.0.1:{model.server_address[1]}/v1"
    settings = (folder / "matrix.yaml").read_text().replace("http://127.0.0.1:8080/v1", url)
    (folder / "matrix.yaml").write_text(settings)
    (folder / "questions.json").write_text(json.dumps(rows))
    pages = {title: "".join(sentences) for row in rows for title, sentences in row["context"]}
    (folder / "pages.jsonl").write_text("".join(
        json.dumps({"title": title, "text": page}) + "\n" for title, page in pages.items()))
    started: Any = {"cwd": folder, "env": {
        **os.environ, "PAGES": "pages.jsonl", "MODEL_URL": url, "PYTHONPATH": str(FILES.parents[2]),
        "HAYSTACK_TELEMETRY_ENABLED": "false"}}
    summary, report = folder / "runs" / "matrix" / "summary.json", {"killed after calls": []}
    for after in sorted(random.Random(seed).sample(range(1, 5 * len(rows) - 8), kills)):
        with subprocess.Popen(RUN, **started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            while model.calls < after and child.poll() is None:
                time.sleep(0.002)
            child.send_signal(signal.SIGKILL)
        report["killed after calls"].append(model.calls)
        assert not summary.exists()
    done = subprocess.run(RUN, **started, check=True, capture_output=True, text=True)
    calls, made = model.calls, summary.read_bytes()
    subprocess.run([*RUN, "--journal", "replay"], **started, check=True, capture_output=True)
    again = summary.read_bytes()
    other = shutil.copytree(folder, folder / "other", ignore=shutil.ignore_patterns("runs"))
    subprocess.run(RUN, **{**started, "cwd": other}, check=True, capture_output=True)
    never = (other / "runs" / "matrix" / "summary.json").read_bytes()
    return {**report, "calls": calls, "of which needed": 5 * len(rows), "same bytes from the journal": again == made,
            "same bytes as never killed": never == made, "cells": len(json.loads(made)["cells"]), "output": done.stdout}


if __name__ == "__main__":
    main()
