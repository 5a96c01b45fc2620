"""Compared cells question by question: whose score differs, and at which step the two answers part."""
from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ragbed.agents.types import Outcome
from ragbed.experiments.analysis.compare import CellComparison, Match, RunComparison, change_named
from ragbed.experiments.analysis.gates import Passed
from ragbed.experiments.analysis.pairs import row_of
from ragbed.experiments.analysis.view import View
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.words import verdict


@dataclass(frozen=True, slots=True)
class Flip:
    """A question with its score and outcome in the baseline and in the cell."""

    question: str
    before: float
    after: float
    before_outcome: Outcome
    after_outcome: Outcome


def flips(findings: RunComparison, finding: CellComparison) -> list[Flip]:
    """Return the flips of a finding, losses first, in the order of the questions; none for a metric of sets."""
    scores = finding.pairs.scores
    if scores is None:
        return []
    before, after = (cell.answers for cell in findings.cells(finding.match))
    found = [Flip(name, float(first), float(second), before[name].outcome, after[name].outcome)
             for name, (first, second) in zip(finding.pairs.questions, scores, strict=True) if first != second]
    places = {name: place for place, name in enumerate(findings.second.questions)}
    return sorted(found, key=lambda flip: (flip.after > flip.before, places[flip.question]))


NOWHERE = "nowhere"
_BAR = 40  # characters of the longest bar
_TRACES = ("SELECT question, json_extract(result, '$.trace', '$.evidence', '$.outcome', '$.text') FROM records"
           " WHERE cell = ?")


@dataclass(frozen=True, slots=True)
class Divergence:
    """A question, and where its two answers part."""

    question: str
    step: int | None  # from 1; None where no step differs
    where: str  # the step and what differs in it, as `2 answer: the reply`; `nowhere` where all agrees


@dataclass(frozen=True, slots=True)
class Bar:
    """How many questions part at one place, and how many of them score higher in the second cell, or lower."""

    where: str
    questions: int
    up: int
    down: int


# What is compared of a step: its name, and each part of it in the order in which they come about.
_TracedStep = tuple[str, tuple[tuple[str, object], ...]]
_TracedAnswer = tuple[list[_TracedStep], tuple[str, str]]  # with its outcome and text


def divergences(first: tuple[Path, str], second: tuple[Path, str], questions: Sequence[str]) -> list[Divergence]:
    """Return where two cells, each a run's folder and a cell's id, part over the questions that both have.

    Steps are compared in order: a search by its query and then by the chunks that it found, in order; a call by what
    it is for, its prompt, and then the reply. The first difference decides: what follows it differs for its sake.
    Where all steps agree, what was made of them may not: the outcome, or the answer that was read.
    """
    before, after = _answers(*first), _answers(*second)
    found = []
    for name in (name for name in questions if name in before and name in after):
        (steps, read), (others, other_read) = before[name], after[name]
        parted = ((number, what) for number, (one, other) in enumerate(zip_longest(steps, others), 1)
                  if (what := _difference(one, other)))
        number, what = next(parted, (None, NOWHERE if read == other_read else "how the last reply was read"))
        found.append(Divergence(name, number, f"{number} {what}" if number else what))
    return found


def histogram(found: Sequence[Divergence], up: Mapping[str, bool]) -> list[Bar]:
    """Return how many questions part at each place, in the order of the steps, those that part nowhere last; `up` says
    of each question whose score differs whether it is higher in the second cell."""
    counts = Counter((one.step is None, one.step or 0, one.where) for one in found)
    return [Bar(where, count, *(sum(one.where == where and up.get(one.question) is way for one in found)
                                for way in (True, False)))
            for (_, _, where), count in sorted(counts.items())]


def _difference(one: _TracedStep | None, other: _TracedStep | None) -> str:
    if one is None or other is None:
        return f"{(one or other or ('',))[0]}: one of the two ends before it"
    if one[0] != other[0]:
        return " against ".join(sorted((one[0], other[0])))
    different = [name for (name, here), (_, there) in zip(one[1], other[1], strict=True) if here != there]
    return f"{one[0]}: {different[0]}" if different else ""


def _answers(path: Path, cell: str) -> dict[str, _TracedAnswer]:
    folder = RunFolder.existing(path)
    try:
        found = {}
        for question, stored in folder.database.read(_TRACES, (cell,)):
            trace, evidence, outcome, text = json.loads(stored)
            chunks = {passage["number"]: passage["chunk"] for passage in evidence}
            found[question] = [_step(step, chunks) for step in trace], (outcome, text)
        return found
    finally:
        folder.close()


def _step(step: Mapping[str, Any], chunks: Mapping[int, str]) -> _TracedStep:
    failed = step["failure"] and step["failure"]["kind"]
    if step["kind"] == "search":
        return "search", (("the query", step["query"]), ("whether it failed", failed),
                          ("what was found", [chunks[number] for number in step["found"]]))
    if step["kind"] == "decision":
        return "decision", (("what was decided", (step["purpose"], step["text"])),)
    said = step["text"], step["reasoning"], step.get("tool_calls")
    return str(step["purpose"]), (("the prompt", step["messages"]), ("whether it failed", failed), ("the reply", said))


@dataclass(frozen=True, slots=True)
class Parting:
    """A cell against its baseline: where each question parts, and how many part at each place; by `metric`, that of the
    first finding, a question scores higher or lower."""

    match: Match
    metric: str
    questions: tuple[Divergence, ...]
    bars: tuple[Bar, ...]


def partings_of(findings: RunComparison) -> list[Parting]:
    """Return one for each cell that is compared, whatever by how many metrics; of repeats and seeds, the first's."""
    made = {}
    for one in findings.found:
        if one.match not in made:
            first, second = findings.cells(one.match)
            found = divergences((findings.first.path, first.row["id"]), (findings.second.path, second.row["id"]),
                                list(findings.second.questions))
            up = {flip.question: flip.after > flip.before for flip in flips(findings, one)}
            made[one.match] = Parting(one.match, one.comparison.metric, tuple(found), tuple(histogram(found, up)))
    return list(made.values())


def findings_json(findings: RunComparison, failed: Sequence[Passed], with_flips: bool) -> dict[str, Any]:
    """Return the comparisons, each with the names of its cells and the metric."""
    rows = [{"metric": one.comparison.metric, **row_of(*findings.cells(one.match), one.comparison),
             **_cells(findings, one.match), "verdict": verdict(one.comparison),
             **({"flips": [asdict(flip) for flip in flips(findings, one)]} if with_flips else {})}
            for one in findings.found]
    return {"first": str(findings.first.path), "second": str(findings.second.path), "scoring": findings.first.scoring,
            "comparisons": rows, "notes": list(findings.notes),
            "failed": [{"condition": one.gate.text, **_cells(findings, one.finding.match)} for one in failed]}


def partings_json(findings: RunComparison, partings: Sequence[Parting]) -> list[dict[str, Any]]:
    """Return where the answers of each two cells part."""
    return [{**_cells(findings, one.match), "metric": one.metric, "histogram": [asdict(bar) for bar in one.bars],
             "questions": [asdict(divergence) for divergence in one.questions]} for one in partings]


def _cells(findings: RunComparison, match: Match) -> dict[str, str]:
    first, second = findings.cells(match)
    return {"first": first.row["id"], "second": second.row["id"], "first_name": match.baseline,
            "second_name": match.cell}


def flip_view(findings: RunComparison, metric: str) -> View | None:
    """Return the questions whose score by the metric differs; None without any."""
    found = [one for one in findings.found if one.comparison.metric == metric]
    places = {id: place for place, id in enumerate(findings.second.questions, start=1)}
    rows = [(f"#{places[flip.question]}", findings.second.questions[flip.question].text, change_named(findings, one),
             f"{flip.before:g} {flip.before_outcome}", f"{flip.after:g} {flip.after_outcome}")
            for one in found for flip in flips(findings, one)]
    return View(f"flips:{metric}", f"Questions whose {metric} differs", (
        "number", "question", "cell", "baseline's", "cell's"), tuple(rows), 3, 3) if rows else None


def parting_views(findings: RunComparison, partings: Sequence[Parting]) -> list[View]:
    """Return a histogram for each two cells, the bars of all drawn to one scale."""
    most = max((bar.questions for one in partings for bar in one.bars), default=1)
    views = [View(f"steps:{one.match.baseline}:{one.match.cell}",
                  f"Where {one.match.cell} parts from {one.match.baseline}",
                  ("first step that differs", "questions", f"{one.metric} up", "down", "drawn"),
                  tuple((bar.where, bar.questions, bar.up, bar.down, "█" * -(-_BAR * bar.questions // most))
                        for bar in one.bars), main=1) for one in partings]
    if any(cell.cells > 1 for one in partings for cell in findings.cells(one.match)):
        views[0] = replace(views[0], notes=("Of several repeats or seeds, the steps are those of the first; scores are "
                                            "the means over all.",))
    return views
