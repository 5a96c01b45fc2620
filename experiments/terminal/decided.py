"""The questions of one cause, each with what decided it, for a person to check by hand."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from textwrap import shorten
from typing import Any

from experiments.attribution import Cases, Cause, cause_of
from experiments.attribution.case import Case
from experiments.question import Question
from experiments.terminal.display import console, print_table, say

_SHOWN = 200  # questions that a terminal shows


def decided_json(cause: Cause, cases: Cases, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every question of the cells that has the cause, with its case."""
    return [{"cell": cell, "name": names[cell], "question": question, **asdict(case)}
            for cell, question, case in _having(cause, cases, names)]


def print_decided(cause: Cause, cases: Cases, names: Mapping[str, str],
                  questions: Mapping[str, Question]) -> None:
    """The same as a table, with the questions' texts; of one cell, it has no name."""
    found = list(_having(cause, cases, names))
    if not found:
        say("No question has it.")
        return
    shown, several = asked(questions), len(names) > 1
    print_table(["number", "question", *(["cell"] if several else []), "outcome", "score", "what decided it"],
                [[*shown[question], *([names[cell]] if several else []), case.outcome, _score(case.score),
                  "; ".join(facts(case))]
                 for cell, question, case in found[:_SHOWN]])
    if len(found) > _SHOWN:
        say(f"and {len(found) - _SHOWN} more, with --json")
    say("`ragbed show RUN QUESTION` shows each with its evidence and steps.")


def asked(questions: Mapping[str, Question]) -> dict[str, tuple[str, str]]:
    """By id, the number of each question in the run and what it asks, cut to the width of the terminal.

    Args:
        questions: of the run, in its order.
    """
    room = console().width
    return {id: (f"#{place}", shorten(question.text, room, placeholder="…"))
            for place, (id, question) in enumerate(questions.items(), start=1)}


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
