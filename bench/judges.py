"""Measure how often judges of short answers disagree with labels, by kind of difficulty.

    python bench/judges.py [--half {development,held-out,all}] [--model MODEL] [--journal FILE] [--errors]

`judge_pairs.jsonl` has 336 pairs of a gold and a predicted answer, 16 of each of 21 kinds, with the grade that a reader
gives. The rules of the lexical judge were written with the development half only. The CRC-32 of a pair's texts decides
its half: even for development, odd for held out. Exact match and token F1 are those of corrected scoring; F1 counts as
Correct from 0.8 and as Partially Correct from 0.4.
"""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time
import zlib
from pathlib import Path
from typing import NamedTuple, get_args

from ragbed.agents.database import Database
from ragbed.agents.journal import SCHEMA, Journal, Model
from ragbed.agents.model_settings import CallLimits, ModelSettings
from ragbed.agents.models import open_model
from ragbed.experiments.judges import GradingInput, Lexical, ModelJudge, ask_judge
from ragbed.experiments.metrics import best_overlap, exact_match
from ragbed.experiments.record import Grade

PAIRS = Path(__file__).with_name("judge_pairs.jsonl")
HALVES = ("development", "held-out")
GRADES: tuple[Grade, ...] = get_args(Grade)
Rows = dict[str, list[Grade | None]]


class Pair(NamedTuple):
    kind: str
    question: str
    gold: str
    answer: str
    label: Grade

    @property
    def half(self) -> str:
        """Return the half that the pair belongs to."""
        return HALVES[zlib.crc32(f"{self.question}\t{self.gold}\t{self.answer}".encode()) % 2]


def load_pairs(half: str = "all") -> list[Pair]:
    """Return the pairs of a half, or all."""
    pairs = [Pair(**json.loads(line)) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [pair for pair in pairs if half in ("all", pair.half)]


def to_input(pair: Pair) -> GradingInput:
    """Return what a judge is given of a pair."""
    return GradingInput("grades", pair.question, (pair.gold,), pair.answer)


def by_lexical(pair: Pair) -> Grade | None:
    """Return the grade of the lexical judge."""
    return asyncio.run(ask_judge(Lexical(), None, to_input(pair), lambda: 0.0)).end.grade  # type: ignore[union-attr]


def by_em(pair: Pair) -> Grade:
    """Return Correct if the answers match exactly."""
    return "Correct" if exact_match(pair.answer, (pair.gold,)) else "Wrong"


def by_f1(pair: Pair) -> Grade:
    """Return a grade by token F1."""
    f1 = best_overlap(pair.answer, (pair.gold,)).f1
    return "Correct" if f1 >= 0.8 else "Partially Correct" if f1 >= 0.4 else "Wrong"


async def by_model(pairs: list[Pair], name: str, journal: Path | None) -> list[Grade | None]:
    """Return the grades of a model; None if its reply cannot be read."""
    async with contextlib.AsyncExitStack() as opened:
        database = journal and opened.enter_context(contextlib.closing(Database(journal, SCHEMA)))
        client = await opened.enter_async_context(open_model(name, ModelSettings(calls=CallLimits(seconds=900))))
        model, grades = Model(client, Journal(database), 300), []
        for pair in pairs:
            judged = await ask_judge(ModelJudge(model=name), model, to_input(pair), lambda: time.monotonic() + 900)
            grades.append(judged.end.grade if judged.end else None)
        return grades


def show_table(pairs: list[Pair], rows: Rows) -> None:
    """Print the errors of each judge by kind, then its false Correct and its missed Correct."""
    kinds = list(dict.fromkeys(pair.kind for pair in pairs))
    print(" | ".join(["| kind", "n", *rows]) + " |\n|" + "---|" * (2 + len(rows)))
    for kind in [*kinds, "all"]:
        own = [place for place, pair in enumerate(pairs) if kind in (pair.kind, "all")]
        errors = [sum(grades[place] != pairs[place].label for place in own) for grades in rows.values()]
        print(" | ".join([f"| {kind.replace('_', ' ')}", str(len(own)), *map(str, errors)]) + " |")
    for title, label_correct in (("accepted, not correct", False), ("correct, not accepted", True)):
        own = [place for place, pair in enumerate(pairs) if (pair.label == "Correct") == label_correct]
        errors = [sum((grades[place] == "Correct") != label_correct for place in own) for grades in rows.values()]
        print(" | ".join([f"| {title}", str(len(own)), *map(str, errors)]) + " |")


def main(given: argparse.Namespace) -> None:
    """Grade the pairs by each judge and print the table."""
    pairs = load_pairs(given.half)
    rows: Rows = {"lexical": [by_lexical(pair) for pair in pairs], "EM": [by_em(pair) for pair in pairs],
                  "F1": [by_f1(pair) for pair in pairs]}
    if given.model:
        rows["model"] = asyncio.run(by_model(pairs, given.model, given.journal))
    show_table(pairs, rows)
    for pair, found in zip(pairs, rows["lexical"], strict=True):
        if given.errors and found != pair.label:
            print(f"{pair.kind}: {pair.question!r} {pair.gold!r} <- {pair.answer!r}: {found}, not {pair.label}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=[*HALVES, "all"], default="held-out")
    parser.add_argument("--model")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--errors", action="store_true", help="list the errors of the lexical judge")
    main(parser.parse_args())
