"""Compare the cost of a Python pipeline in a run with calling it in a loop.

    python bench/pipelines.py hotpotqa_100.json --questions 500

The pipeline finds the passage that shares most words with the question, and waits for `--wait` seconds, as if it asked
a model. The loop calls it once per question, one after the other, and keeps nothing. The run makes several calls at
once, journals each, and scores, matches with the gold and stores each record. Rounds of both alternate.
"""
from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from ragbed.experiments import run
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa

PIPELINE = """
import time

def answer(question, documents):
    words = set(question.lower().split())
    best = max(range(len(documents)), key=lambda place: len(words & set(documents[place]["text"].lower().split())))
    time.sleep({wait})
    return {{"answer": documents[best]["text"][:40], "contexts": [documents[best]], "citations": [1]}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--wait", type=float, default=0.0, help="seconds that each call waits")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _compare(given, Path(folder))


def _compare(given: argparse.Namespace, folder: Path) -> None:
    source = folder / "mine.py"
    source.write_text(PIPELINE.format(wait=given.wait))
    data = folder / "questions.json"
    rows = json.loads(given.path.read_text())
    more = [{**row, "_id": f"{row['_id']}-{lap}"} for lap in range(-(-given.questions // len(rows))) for row in rows]
    data.write_text(json.dumps(more[:given.questions]))
    figures: dict[str, list[tuple[float, float]]] = {"loop": [], "run": []}
    for number in range(given.rounds + 1):  # the first warms up
        for name, work in (("loop", lambda: _loop(data, source)),
                           ("run", lambda n=number: _run(data, source, folder, n, given.concurrency))):
            taken = work()
            if number:
                figures[name].append(taken)
    print(f"{given.questions} questions, a call waits {given.wait:g} s, {given.concurrency} concurrent in the run; "
          f"median of {given.rounds}")
    print(f"{'':6}{'processor ms':>14}{'wall ms':>10}   a question")
    for name, taken in figures.items():
        cpu, wall = (1000 * statistics.median(one) / given.questions for one in zip(*taken, strict=True))
        print(f"{name:6}{cpu:>14.2f}{wall:>10.2f}")
    cpu, wall = ([own[place] - loop[place] for own, loop in zip(figures["run"], figures["loop"], strict=True)]
                 for place in (0, 1))
    print(f"over the loop: {1000 * statistics.median(cpu) / given.questions:.2f} ms of processor time a question, "
          f"{1000 * statistics.median(wall) / given.questions:+.2f} ms of wall time")


def _loop(data: Path, source: Path) -> tuple[float, float]:
    module: dict[str, object] = {}
    exec(compile(source.read_text(), str(source), "exec"), module)
    answer = module["answer"]
    assert callable(answer)
    questions = HotpotQa(path=str(data)).load().questions
    begun = time.process_time(), time.perf_counter()
    for question in questions:
        answer(question.text, [{"document": chunk.document, "text": chunk.content} for chunk in question.provided])
    return time.process_time() - begun[0], time.perf_counter() - begun[1]


def _run(data: Path, source: Path, folder: Path, number: int, concurrency: int) -> tuple[float, float]:
    """All of the run: reading, asking, scoring, tests and the summary; from which reading is taken off."""
    begun = time.process_time(), time.perf_counter()
    HotpotQa(path=str(data)).load()
    reading = time.process_time() - begun[0], time.perf_counter() - begun[1]
    begun = time.process_time(), time.perf_counter()
    with run({"name": f"run-{number}", "out": str(folder), "benchmark": {"kind": "hotpotqa", "path": str(data)},
              "pipelines": [{"kind": "python", "name": "mine", "factory": f"{source}:answer"}],
              "concurrency": concurrency}, fresh=True):
        pass
    return time.process_time() - begun[0] - reading[0], time.perf_counter() - begun[1] - reading[1]


if __name__ == "__main__":
    main()
