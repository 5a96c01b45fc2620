"""Measure what an agent's steps cost when model and tools cost nothing, against `react` and `direct`.

    python bench/agents.py [--questions 60] [--rounds 3] [--before CHECKOUT]

A server that answers at once has each agent call a tool in 12 turns before it answers. The questions have a few
passages of their own, so that searching costs little. In every round each contestant runs `ragbed run` in a fresh
process, with 32 questions at once; the time of a run of two questions is subtracted. `direct` gets 13 times as many
questions, so that all make about as many calls. With `--before`, `react` of another checkout of ragbed takes part.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aiohttp import web
from chat_server import completion, serve
from overhead import HERE

TURNS = 12
ROOT = HERE.parent
CONTESTANTS: dict[str, Any] = {
    "direct": "direct",
    "react, 10 turns": {"kind": "react", "iterations": 10, "tools": "native"},
    "agent, search": {"kind": "agent", "tools": ["search"], "turns": TURNS, "protocol": "native"},
    "agent, grep": {"kind": "agent", "tools": ["grep"], "turns": TURNS, "protocol": "native"}}
BEFORE = "react before"


def reply(asked: dict[str, Any]) -> dict[str, Any]:
    """Call the first tool with words of the question and of the turn, or answer after the last turn."""
    done = sum(message["role"] == "tool" for message in asked["messages"])
    tools = [one["function"] for one in asked.get("tools", ()) if one["function"]["name"] in ("search", "grep")]
    if not tools or done >= TURNS or asked.get("tool_choice") == "none":
        return {"role": "assistant", "content": "<Answer>Lyon [1]</Answer>"}
    argument = "pattern" if tools[0]["name"] == "grep" else "query"
    call = {"name": tools[0]["name"], "arguments": json.dumps({argument: f"wintered in Lyon|turn {done}"})}
    return {"role": "assistant", "content": None, "tool_calls": [
        {"id": f"call{done:05}", "type": "function", "function": call}]}


async def chat(request: web.Request) -> web.Response:
    """Answer a request at once."""
    message = reply(await request.json())
    return web.json_response(completion("instant", message, 700, 12))


def write_questions(folder: Path, count: int) -> Path:
    """Write questions with five passages each, in HotpotQA's form."""
    rows = [{"_id": f"q{number}", "question": f"In which city did expedition {number} spend the winter?",
             "answer": "Lyon", "supporting_facts": [[f"Volume 1 of {number}", 0]], "type": "bridge", "level": "easy",
             "context": [[f"Volume {volume} of {number}", [f"Expedition {number} wintered in Lyon, says {volume}.",
                                                         "The party kept a log of wind and ice."]]
                         for volume in range(1, 6)]} for number in range(count)]
    path = folder / f"questions-{count}.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def run(folder: Path, url: str, strategy: Any, questions: int, tree: Path) -> tuple[float, float, int]:
    """Run a strategy over questions, and return the seconds of processor and of clock, and the number of calls."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        settings = {"name": "run", "out": out, "models": f"{url}#instant", "reasoning": strategy, "concurrency": 32,
                    "benchmark": {"kind": "hotpotqa", "path": str(write_questions(folder, questions))},
                    "conditions": "retrieved", "retriever": {"kind": "bm25"}, "limits": {"searches": 100}}
        (path := Path(out, "settings.json")).write_text(json.dumps(settings), encoding="utf-8")
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        environment = {**os.environ, "PYTHONPATH": str(tree), "RAGBED_CACHE": str(folder / "cache"),
                       "NO_PROXY": "127.0.0.1"}
        done = subprocess.run([sys.executable, "-m", "ragbed", "run", path, "--json"], cwd=tree, text=True, check=True,
                              capture_output=True, env=environment)
        took, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        calls = sum(cell["usage"]["calls"] for cell in json.loads(done.stdout)["cells"])
    return used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime, took, calls


def measure(folder: Path, url: str, name: str, strategy: Any, questions: int, tree: Path) -> tuple[float, float]:
    """Return milliseconds of processor time per call, and calls per second, without start-up."""
    few = run(folder, url, strategy, 2, tree)
    whole = run(folder, url, strategy, questions * (TURNS + 1 if name == "direct" else 1), tree)
    processor, clock, calls = (one - other for one, other in zip(whole, few, strict=True))
    return 1000 * processor / calls, calls / clock


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    contestants = {name: (strategy, ROOT) for name, strategy in CONTESTANTS.items()}
    if options.before:
        contestants[BEFORE] = CONTESTANTS["react, 10 turns"], options.before.resolve()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            [sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        for _ in range(options.rounds):
            for name, (strategy, tree) in contestants.items():
                taken[name].append(measure(Path(folder), url, name, strategy, options.questions, tree))
    print(f"{'':18}{'ms a call':>10}{'calls/s':>10}{'of direct':>11}{'(range)':>14}")
    for name, each in taken.items():
        shares = [one[1] / direct[1] for one, direct in zip(each, taken["direct"], strict=True)]
        print(f"{name:18}{statistics.median(one[0] for one in each):>10.2f}"
              f"{statistics.median(one[1] for one in each):>10.0f}{statistics.median(shares):>11.2f}"
              f"{f'({min(shares):.2f}-{max(shares):.2f})':>14}")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve(chat))
    else:
        main()
