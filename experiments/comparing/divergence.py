"""Where two cells part: for each question, the first step at which their traces differ."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from experiments.runs.store import RunFolder

NOWHERE = "nowhere"
_TRACES = ("SELECT question, json_extract(result, '$.trace', '$.evidence', '$.outcome', '$.text') FROM records"
           " WHERE cell = ?")


@dataclass(frozen=True, slots=True)
class Divergence:
    """A question, and where its two answers part.

    Attributes:
        step: from 1; None where no step differs.
        where: the step and what differs in it, as `2 answer: the reply`; `nowhere` where all agrees.
    """

    question: str
    step: int | None
    where: str


@dataclass(frozen=True, slots=True)
class Bar:
    """How many questions part at one place, and how many of them score higher in the second cell, or lower."""

    where: str
    questions: int
    up: int
    down: int


@dataclass(frozen=True, slots=True)
class _Step:
    """What is compared of a step: its name, and each part of it in the order in which they come about."""

    name: str
    parts: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    steps: tuple[_Step, ...]
    read: tuple[str, str]


def divergences(first: tuple[Path, str], second: tuple[Path, str], questions: Sequence[str]) -> list[Divergence]:
    """Where two cells, each a run's folder and a cell's id, part over the questions that both have.

    Steps are compared in order: a search by its query and then by the chunks that it found, in order; a call by what
    it is for, its prompt, and then the reply. The first difference decides: what follows it differs for its sake.
    Where all steps agree, what was made of them may not: the outcome, or the answer that was read.
    """
    before, after = _answers(*first), _answers(*second)
    return [_parted(name, before[name], after[name]) for name in questions if name in before and name in after]


def histogram(found: Sequence[Divergence], up: set[str], down: set[str]) -> list[Bar]:
    """How many questions part at each place, in the order of the steps; those that part nowhere last.

    Args:
        up, down: questions that score higher in the second cell, and lower.
    """
    counts = Counter((one.step is None, one.step or 0, one.where) for one in found)
    return [Bar(where, count, *(sum(one.where == where and one.question in flipped for one in found)
                                for flipped in (up, down)))
            for (_, _, where), count in sorted(counts.items())]


def _parted(question: str, first: _Answer, second: _Answer) -> Divergence:
    for number, (one, other) in enumerate(zip_longest(first.steps, second.steps), 1):
        if what := _difference(one, other):
            return Divergence(question, number, f"{number} {what}")
    return Divergence(question, None, NOWHERE if first.read == second.read else "how the last reply was read")


def _difference(one: _Step | None, other: _Step | None) -> str:
    """What differs between two steps of one number; empty where nothing does."""
    if one is None or other is None:
        return f"{one.name if one else other.name if other else ''}: one of the two ends before it"
    if one.name != other.name:
        return " against ".join(sorted((one.name, other.name)))
    different = [name for (name, here), (_, there) in zip(one.parts, other.parts, strict=True) if here != there]
    return f"{one.name}: {different[0]}" if different else ""


def _answers(path: Path, cell: str) -> dict[str, _Answer]:
    folder = RunFolder.existing(path)
    try:
        return {question: _answer(*json.loads(stored)) for question, stored in folder.database.read(_TRACES, (cell,))}
    finally:
        folder.close()


def _answer(trace: Sequence[Mapping[str, Any]], evidence: Sequence[Mapping[str, Any]], outcome: str,
            text: str) -> _Answer:
    chunks = {passage["number"]: passage["chunk"] for passage in evidence}
    return _Answer(tuple(_steps(trace, chunks)), (outcome, text))


def _steps(trace: Sequence[Mapping[str, Any]], chunks: Mapping[int, str]) -> Iterator[_Step]:
    for step in trace:
        failed = step["failure"] and step["failure"]["kind"]
        if step["kind"] == "search":
            yield _Step("search", (("the query", step["query"]), ("whether it failed", failed),
                                   ("what was found", [chunks[number] for number in step["found"]])))
        elif step["kind"] == "decision":
            yield _Step("decision", (("what was decided", (step["purpose"], step["text"])),))
        else:
            said = step["text"], step["reasoning"], step.get("tool_calls")
            yield _Step(str(step["purpose"]), (("the prompt", step["messages"]), ("whether it failed", failed),
                                               ("the reply", said)))
