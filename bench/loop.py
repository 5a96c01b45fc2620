"""Count the calls and seconds of a day's edits: a word in a prompt, a strategy more, a question edited, another metric,
another judge, and nothing.

    python bench/loop.py [--promptfoo node_modules/.bin/promptfoo] [--inspect other/venv/bin/python] [--json]

A server on loopback answers every call after 50 ms and counts it. Each contestant first asks 54 questions with three
prompts, and then makes one edit after the other. promptfoo and Inspect AI take part if their commands are given, each
with its cache of replies turned on. `needed` is the number of calls that no earlier step has made.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from chat_server import completion

QUESTIONS, DELAY = 54, 0.05
EDITS = ("first run", "a word in a prompt", "a strategy more", "a question edited", "another metric", "another judge",
         "nothing")
NEEDED = (162, 54, 54, 4, 0, 216, 0)
WORDS = ("Answer briefly", "Answer with one name", "Explain, then answer", "Answer as a geographer")
GRADES = {"Error type": "Grade: Correct\nError type: None", "GRADE": "GRADE: C",
          "": '{"pass": true, "score": 1, "reason": "equal"}'}  # by a word of the judge's prompt


class Server:
    """A server that answers every call after `DELAY` seconds, and counts the calls."""

    def __init__(self) -> None:
        self.calls, self._loop = 0, asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)

    async def _start(self) -> str:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._chat)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}/v1"

    async def _chat(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.calls += 1
        await asyncio.sleep(DELAY)
        prompt = json.dumps(body["messages"])
        text = f"<Answer>Lyon, says {zlib.crc32(prompt.encode())} [1]</Answer>" if body["model"] == "m" else \
            next(grade for word, grade in GRADES.items() if word in prompt)
        return web.json_response(completion(body["model"], {"role": "assistant", "content": text}, 700, 12))


def state(step: int) -> dict[str, Any]:
    """Return what a contestant compares after this many edits."""
    words = [WORDS[0] + " please" * (step >= 1), *WORDS[1:3 + (step >= 2)]]
    questions = [f"Which city is on page {number}?" for number in range(QUESTIONS)]
    questions[7] += " Name it." * (step >= 3)
    return {"words": words, "questions": questions, "metric": step >= 4, "judge": step >= 5}


class Ragbed:
    """Strategies of one file, over a corpus with a page for each question."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        (folder / "pages").mkdir(parents=True)
        for number in range(QUESTIONS):
            (folder / "pages" / f"{number}.txt").write_text(f"Page {number} is about the city of Lyon.")

    def write(self, words: list[str], questions: list[str], metric: bool, judge: bool) -> list[str]:
        recipes = "".join(f"""

def recipe{place}(task):
    found = yield Search(task.question)
    pages = "\\n".join(one.chunk.content for one in found)
    reply = yield Generate((Message("user", (pages + "\\n{text}: " + task.question,)),), "answer")
    return Draft.from_reply(reply)
""" for place, text in enumerate(words))
        (self.folder / "mine.py").write_text(
            "from ragbed.strategies import Draft, Generate, Message, Search\n" + recipes)
        (self.folder / "scores.py").write_text("def length(record):\n    return len(record.answer)\n")
        (self.folder / "questions.jsonl").write_text("".join(
            json.dumps({"id": str(place), "question": text, "answer": "Lyon"}) + "\n"
            for place, text in enumerate(questions)))
        retriever = {"kind": "bm25", "build": {"embedder": {"kind": "none"}}}
        settings = {"name": "loop", "models": f"{self.url}#m", "conditions": "retrieved", "retriever": retriever,
                    "benchmark": {"kind": "jsonl", "path": "questions.jsonl", "corpus": "pages"},
                    "reasoning": [f"mine.py:recipe{place}" for place in range(len(words))],
                    **({"metrics": ["scores.py:length"]} if metric else {}),
                    **({"judge": f"{self.url}#judge"} if judge else {})}
        (self.folder / "loop.yaml").write_text(yaml.safe_dump(settings))
        return [sys.executable, "-m", "ragbed", "run", "loop.yaml"]


class Promptfoo:
    """Prompts as texts, with a check of the words, and a model as judge."""

    def __init__(self, folder: Path, url: str, command: str) -> None:
        self.folder, self.url, self.command = folder, url, command
        folder.mkdir()

    def write(self, words: list[str], questions: list[str], metric: bool, judge: bool) -> list[str]:
        checks: list[dict[str, Any]] = [{"type": "icontains", "value": "Lyon"}]
        checks += [{"type": "javascript", "value": "output.length < 500"}] if metric else []
        checks += [{"type": "llm-rubric", "value": "It names Lyon.", "provider": self._provider("judge")}] if judge \
            else []
        config = {"prompts": [f"{{{{page}}}}\n{text}: {{{{question}}}}" for text in words],
                  "providers": [self._provider("m")], "defaultTest": {"assert": checks},
                  "tests": [{"vars": {"question": text, "page": f"Page {place} is about the city of Lyon."}}
                            for place, text in enumerate(questions)]}
        (self.folder / "promptfooconfig.yaml").write_text(yaml.safe_dump(config))
        return [self.command, "eval", "-c", "promptfooconfig.yaml", "-j", "16", "--no-progress-bar", "--no-table"]

    def _provider(self, model: str) -> dict[str, Any]:
        return {"id": f"openai:chat:{model}", "config": {"apiBaseUrl": self.url, "apiKey": "none", "temperature": 0}}


_INSPECT = """
import json, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import includes, match, model_graded_qa
from inspect_ai.solver import generate

given, url = json.load(open("state.json")), sys.argv[1]
cached = GenerateConfig(temperature=0, cache=True, max_connections=16)
model, judge = (get_model(f"openai/{name}", base_url=url, api_key="none", config=cached, responses_api=False)
                for name in ("m", "judge"))
scorers = [includes(), *([match()] if given["metric"] else []),
           *([model_graded_qa(model=judge)] if given["judge"] else [])]
tasks = [Task([Sample(input=f"Page {place} is about the city of Lyon.\\n{text}: {question}", target="Lyon")
               for place, question in enumerate(given["questions"])], solver=generate(), scorer=scorers,
              name=f"prompt{number}") for number, text in enumerate(given["words"])]
logs = eval(tasks, model=model, display="none", log_dir="logs", max_tasks=4)
assert all(log.status == "success" for log in logs), [log.error for log in logs]
"""


class Inspect:
    """A task for each prompt, with `includes`, and a model as judge."""

    def __init__(self, folder: Path, url: str, command: str) -> None:
        self.folder, self.url, self.command = folder, url, command
        folder.mkdir()
        (folder / "loop.py").write_text(_INSPECT)

    def write(self, words: list[str], questions: list[str], metric: bool, judge: bool) -> list[str]:
        (self.folder / "state.json").write_text(json.dumps(
            {"words": words, "questions": questions, "metric": metric, "judge": judge}))
        return [self.command, "loop.py", self.url]


def measure(contestant: Ragbed | Promptfoo | Inspect, server: Server, quiet: bool) -> list[dict[str, Any]]:
    """Return the calls and seconds of each step."""
    env = {**os.environ, "NO_PROXY": "127.0.0.1", "PYTHONPATH": str(Path(__file__).parents[1]),
           "RAGBED_CALL_CACHE": str(contestant.folder / "calls"), "XDG_CACHE_HOME": str(contestant.folder / "cache"),
           "PROMPTFOO_CONFIG_DIR": str(contestant.folder / "config"), "PROMPTFOO_DISABLE_TELEMETRY": "1",
           "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_PASS_RATE_THRESHOLD": "0"}
    rows = []
    for step, edit in enumerate(EDITS):
        command, before, started = contestant.write(**state(step)), server.calls, time.monotonic()
        done = subprocess.run(command, cwd=contestant.folder, env=env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{command}: {done.stderr[-2000:] or done.stdout[-2000:]}")
        rows.append({"edit": edit, "calls": server.calls - before, "needed": NEEDED[step],
                     "seconds": round(time.monotonic() - started, 2)})
        if not quiet:
            print(type(contestant).__name__, rows[-1], file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--promptfoo", help="the command of promptfoo")
    parser.add_argument("--inspect", help="the python of an environment with inspect_ai and openai")
    parser.add_argument("--json", action="store_true")
    options, server = parser.parse_args(), Server()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        contestants: list[Ragbed | Promptfoo | Inspect] = [Ragbed(folder / "ragbed", server.url)]
        if options.promptfoo:
            contestants.append(Promptfoo(folder / "promptfoo", server.url, str(Path(options.promptfoo).absolute())))
        if options.inspect:
            contestants.append(Inspect(folder / "inspect", server.url, str(Path(options.inspect).absolute())))
        report = {type(one).__name__: measure(one, server, options.json) for one in contestants}
    if options.json:
        print(json.dumps(report, indent=2))
        return
    print(f"{'calls sent (seconds)':20}", "needed", *(f"{name:>14}" for name in report))
    for place, edit in enumerate(EDITS):
        cells = [f"{rows[place]['calls']:4} ({rows[place]['seconds']:5.1f} s)" for rows in report.values()]
        print(f"{edit:20} {NEEDED[place]:6}", *(f"{cell:>14}" for cell in cells))


if __name__ == "__main__":
    main()
