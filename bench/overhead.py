"""Measure the processor time that ragbed and other harnesses need per question when the model costs nothing.

    python bench/overhead.py [--questions 1000] [--rounds 5] [--json]

The script starts a server that answers at once. In every round each contestant, in a fresh process, asks the same
questions once. The figures are medians over the rounds. The ratio is the median of each round's ratio to the bare
LangGraph loop, so that a machine that is slow for a while slows both sides. ragbed's time runs from the first question
to the written summary: every question is scored with all metrics, with its call in the journal and its record durable.
Inspect AI takes part if `inspect_ai` is installed here, or in the environment of the Python that RAGBED_INSPECT names.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

HERE = Path(__file__).parent
BASE = "langgraph_loop"
SHOWN = {"openai_client": "bare OpenAI client", BASE: "bare LangGraph + ChatOpenAI loop",
         "ragbed": "ragbed run, scored and recorded", "ragbed_replay": "ragbed replay of that run",
         "inspect_ai": "Inspect AI"}
PACKAGES = ("ragbed", "openai", "langgraph", "langchain-openai", "pydantic", "inspect_ai")


def main() -> None:
    options = _options()
    names = [name for name in SHOWN if is_there(name)]
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    with server() as url:
        for turn in range(options.rounds):
            for name in names:
                print(f"round {turn + 1} of {options.rounds}: {SHOWN[name]}", file=sys.stderr, flush=True)
                rounds[name].append(child(name, url, options.questions))
    report = {"machine": _machine(), "questions": options.questions, "rounds": options.rounds,
              "contestants": {name: _figures(taken, rounds[BASE], options.questions)
                              for name, taken in rounds.items()}}
    print(json.dumps(report, indent=2) if options.json else _table(report))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def is_there(name: str) -> bool:
    """Whether a contestant is installed. The command of promptfoo is looked for in PATH, or is in RAGBED_PROMPTFOO."""
    if name == "inspect_ai":
        return "RAGBED_INSPECT" in os.environ or find_spec(name) is not None
    return name != "promptfoo" or which(os.environ.get("RAGBED_PROMPTFOO", name)) is not None


@contextmanager
def server(*arguments: float) -> Iterator[str]:
    """Yield the base URL of an instant server with these arguments, which ends when its standard input closes."""
    with subprocess.Popen([sys.executable, HERE / "instant_server.py", *map(str, arguments)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()


def child(name: str, url: str, questions: int, at_once: int = 32, strategy: str = "direct") -> dict[str, float]:
    """One contestant's seconds, from a process of its own. Proxies are for the network, not for loopback. The cache of
    calls is empty: with the one of an earlier round, ragbed would send nothing."""
    python = os.environ.get("RAGBED_INSPECT", sys.executable) if name == "inspect_ai" else sys.executable
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run([python, HERE / "contestants.py", name, url, str(questions), str(at_once), strategy],
                              stdout=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, "NO_PROXY": "127.0.0.1", "RAGBED_CALL_CACHE": cache})
    taken: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return taken


def _figures(taken: list[dict[str, float]], base: list[dict[str, float]], questions: int) -> dict[str, Any]:
    """Medians: milliseconds of processor time per question with their range, ratio, and questions per second."""
    processor = [1000 * one["processor"] / questions for one in taken]
    ratios = [one["processor"] / other["processor"] for one, other in zip(taken, base, strict=True)]
    return {"processor_ms": round(statistics.median(processor), 3), "lowest_ms": round(min(processor), 3),
            "highest_ms": round(max(processor), 3), "ratio": round(statistics.median(ratios), 3),
            "ratios": [round(ratio, 3) for ratio in ratios],
            "questions_per_second": round(statistics.median(questions / one["clock"] for one in taken))}


def _machine() -> dict[str, Any]:
    return {"system": f"{platform.system()} {platform.machine()}", "cores": os.cpu_count(),
            "python": platform.python_version(), "packages": {name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _table(report: dict[str, Any]) -> str:
    machine = report["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items() if number)
    lines = [f"{machine['system']}, {machine['cores']} cores, Python {machine['python']}; {packages}",
             f"{report['questions']} questions, medians of {report['rounds']} rounds; start-up apart", "",
             f"{'':34}{'processor time':>17}{'(range)':>14}{'ratio':>8}{'(range)':>13}{'questions/s':>13}"]
    for name, one in report["contestants"].items():
        spread = f"({one['lowest_ms']:.2f}-{one['highest_ms']:.2f})"
        ratios = f"({min(one['ratios']):.2f}-{max(one['ratios']):.2f})"
        lines.append(f"{SHOWN[name]:34}{one['processor_ms']:>14.2f} ms{spread:>14}{one['ratio']:>8.2f}{ratios:>13}"
                     f"{one['questions_per_second']:>13}")
    if "inspect_ai" not in report["contestants"]:
        lines.append("Inspect AI is not installed, so it took no part: pip install inspect_ai in an environment of its "
                     "own, whose Python RAGBED_INSPECT names")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
