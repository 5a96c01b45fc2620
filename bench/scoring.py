"""What scoring the finished records of a run again takes, without a model and on one core.

    python bench/scoring.py [--records 10000] [--json]

The records are made up and lie in a run folder as a run leaves them: CReSt's questions with ten passages each,
answered by six model calls. Timed are reading and scoring them, and the figures of the set with a thousand
resamples; beside them, reading alone, and reading without the traces, as the summary of a run does.
"""
from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

from ragbed.experiments import (
    Benchmark,
    Cell,
    Gold,
    Plan,
    Question,
    Record,
    Result,
    RunFolder,
    RunSettings,
    StoredMessage,
    StoredPassage,
    StoredStep,
    Timing,
    Verdict,
    aggregate,
)
from ragbed.experiments.benchmarks import Crest
from ragbed.experiments.running.rescore import rescore
from ragbed.strategies import REFUSAL, Usage

PASSAGES = 10
CALLS = 6
BATCH = 500
_REASONING = "The depot's ledger counts parcels by year, and the table of 2021 has the sum in its last row. " * 12
_ANSWERS = ("1,577 parcels [1]", "1,577 [1, 3]", "1,600 parcels [2]", REFUSAL)
_GRADES = ("Correct", "Partially Correct", "Wrong", None)
T = TypeVar("T")


def main() -> None:
    options = _options()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as made:
        settings = RunSettings(name="scoring", out=Path(made), models=["http://127.0.0.1:9/v1#none"],
                               benchmark=Crest(path="crest"))
        benchmark = Benchmark("crest", tuple(_question(number) for number in range(options.records)))
        cells = Plan.of(settings, benchmark).cells
        _fill(settings, benchmark, cells[0].id)
        folder = RunFolder.existing(settings.folder)
        try:
            report = _timed(folder, settings, cells)
        finally:
            folder.close()
    print(json.dumps(report, indent=2) if options.json else _shown(report))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _timed(folder: RunFolder, settings: RunSettings, cells: Sequence[Cell]) -> dict[str, Any]:
    aggregate([], resamples=1)  # imports what it needs
    results, scoring = _seconds(lambda: list(rescore(folder, cells, settings.benchmark.scheme, settings.scoring)))
    figures, aggregating = _seconds(lambda: aggregate(results, settings.scoring))
    read, reading = _seconds(lambda: sum(1 for _ in folder.results(traces=True)))
    kept, summing = _seconds(lambda: len(list(folder.results())))
    assert len(results) == read == kept == figures["unified"]["n"]
    taken = {"reading and scoring": scoring, "aggregating": aggregating, "both": scoring + aggregating,
             "reading alone": reading, "reading without traces": summing}
    return {"records": read, "megabytes": round(folder.database.path.stat().st_size / 1e6),
            "processor_seconds": {name: round(one.processor, 2) for name, one in taken.items()},
            "clock_seconds": {name: round(one.clock, 2) for name, one in taken.items()}}


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds of processor, user and system, and of clock: a busy machine adds to the clock alone."""

    processor: float
    clock: float

    def __add__(self, other: Taken) -> Taken:
        return Taken(self.processor + other.processor, self.clock + other.clock)


def _seconds(work: Callable[[], T]) -> tuple[T, Taken]:
    before = time.process_time(), time.perf_counter()
    done = work()
    return done, Taken(time.process_time() - before[0], time.perf_counter() - before[1])


def _shown(report: dict[str, Any]) -> str:
    processor, clock = report["processor_seconds"], report["clock_seconds"]
    lines = [f"{report['records']} records, {report['megabytes']} MB", f"{'seconds':<24}{'processor':>10}{'clock':>8}"]
    return "\n".join([*lines, *(f"{name:<24}{processor[name]:>10.2f}{clock[name]:>8.2f}" for name in clock)])


def _fill(settings: RunSettings, benchmark: Benchmark, cell: str) -> None:
    folder = RunFolder(settings.folder)
    folder.begin(settings.resolved(), {}, dict(enumerate(benchmark.questions)))
    made = (_record(cell, number) for number in range(len(benchmark.questions)))

    async def add() -> None:
        while batch := list(islice(made, BATCH)):
            await asyncio.gather(*(folder.add(record, 0) for record in batch))

    asyncio.run(add())
    folder.close()


def _question(number: int) -> Question:
    document = f"aster-{number}"
    return Question(id=str(number), text=f"How many parcels left depot {number} in 2021?", answers=("1,577 parcels",),
                    answerable=number % 5 > 0, tags={"language": ("en",), "difficulty_type": ("SimpleQA",)},
                    gold=(Gold(document, chunk=f"{number}-1"), Gold(document, chunk=f"{number}-3")))


def _record(cell: str, number: int) -> Record:
    text, grade = _ANSWERS[number % 4], _GRADES[number % 4]
    refused = text == REFUSAL
    result = Result(
        cell=cell, question=str(number), answerable=number % 5 > 0, outcome="refused" if refused else "answered",
        text=text, refused=refused, refused_as_published=refused, cited=() if refused else (1,), invalid_citations=(),
        tagged=True, notes=(), evidence=tuple(_passages(number)), gold_total=2, gold_in_view=True,
        verdict=Verdict(judge="made up", grade=grade), scores={}, usage=Usage(9000, 1800, calls=CALLS),
        trace=tuple(_trace(number, text)))
    return Record(result=result, timing=Timing(seconds=1.0, attempts=CALLS, replayed=0, paid=0.01, finished="made up"))


def _passages(number: int) -> Iterator[StoredPassage]:
    for place in range(1, PASSAGES + 1):
        holds = {1: (0,), 3: (1,)}.get(place, ())
        yield StoredPassage(number=place, chunk=f"{number}-{place}", document=f"aster-{number}",
                            source=f"aster/{number}.html", format="html", start=place * 4000, end=place * 4000 + 4000,
                            pages=None, text=f"{number:026}{place:06}", gold="chunk" if holds else None, holds=holds)


def _trace(number: int, text: str) -> Iterator[StoredStep]:
    shown = tuple(range(1, PASSAGES + 1))
    yield StoredStep(kind="search", query=f"parcels of depot {number}", found=shown)
    for call in range(CALLS):
        last = call == CALLS - 1
        said = f"<Thinking>{_REASONING}</Thinking><Answer>{text}</Answer>" if last else _REASONING
        messages = tuple(StoredMessage(role="user" if turn % 2 else "assistant",
                                       parts=tuple(f"{number:020}{turn:06}{part:06}" for part in range(PASSAGES + 3)))
                         for turn in range(2 * call + 2))
        yield StoredStep(kind="generate", purpose="answer" if last else "solve", key=f"{number:032}", shown=shown,
                         messages=messages, text=said, finish_reason="stop", usage=Usage(1500, 300, calls=1))


if __name__ == "__main__":
    main()
