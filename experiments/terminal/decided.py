"""The questions of one cause, each with what decided it, for a person to check by hand."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from experiments.attribution import Cases, Cause, cause_of
from experiments.attribution.case import Case
from experiments.cells import Cell
from experiments.question import Question
from experiments.terminal.display import print_table, say

_SHOWN = 200  # questions that a terminal shows


def decided_json(cause: Cause, cases: Cases, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every question of the cells that has the cause, with its case."""
    return [{"cell": cell, "name": names[cell], "question": question, **asdict(case)}
            for cell, question, case in _having(cause, cases, names)]


def print_decided(cause: Cause, cases: Cases, names: Mapping[str, str], questions: Mapping[str, Question],
                  cells: Sequence[Cell]) -> None:
    """The same as a table."""
    found = list(_having(cause, cases, names))
    numbers = {id: f"#{place}" for place, id in enumerate(questions, start=1)}
    if not found:
        say("No question has it.")
        return
    print_table(["question", "number", "cell", "outcome", "score", "what decided it"],
                [[question, numbers[question], names[cell], case.outcome, _score(case.score), "; ".join(facts(case))]
                 for cell, question, case in found[:_SHOWN]])
    if len(found) > _SHOWN:
        say(f"and {len(found) - _SHOWN} more, with --json")
    say("`ragbed show RUN QUESTION` shows each with its evidence and steps.")


def _having(cause: Cause, cases: Cases, names: Mapping[str, str]) -> Iterator[tuple[str, str, Case]]:
    return ((cell, question, case) for cell in names for question, case in cases[cell].items()
            if cause_of(case) is cause)


def facts(case: Case) -> Iterator[str]:
    """What of the case decides its cause, in words."""
    if not case.answerable:
        yield "unanswerable"
    if case.refused:
        yield "refused"
    if case.unread:
        yield "names no option"
    if case.unjudged:
        yield "no readable verdict"
    if not case.closed_book:
        yield "no gold known" if case.gold is None else f"{case.found} of {case.gold} gold in view"
    if case.cites and case.found and case.answered:
        yield "gold cited" if case.cited_gold else "no gold cited"
    for said, name in ((case.evidence, "over the gold alone"), (case.undisturbed, "with fewer negatives"),
                       (case.known, "closed-book")):
        if said is not None:
            yield f"{'right' if said else 'wrong'} {name}"


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:g}"
