"""`ragbed diagnose` at work, and the table of causes that a run ends with.

The questions of one cause, each with what decided it, for a person to check by hand.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from documents.errors import RunError
from experiments.analysis.cases import Cases, cases_of
from experiments.analysis.causes import BY_NAME, CAUSES, Case, Cause, cause_of
from experiments.analysis.error_analysis import attribution_of, tradeoff_of
from experiments.question import Question
from experiments.runs.finished import Finished, open_finished
from experiments.runs.selectors import cells_named
from experiments.settings.strategies import sweeps_of
from experiments.terminal.display import console, print_json, print_records, print_table, say
from experiments.terminal.tables import Table
from experiments.words import probability

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
    for said, name in ((case.over_gold, "over the gold alone"), (case.undisturbed, "with fewer negatives"),
                       (case.known, "closed-book")):
        if said is not None:
            yield f"{'right' if said else 'wrong'} {name}"


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:g}"


@dataclass(frozen=True, slots=True)
class _Run:
    """What is told of a finished run; `names` of its cells, by id, those that are wanted."""

    finished: Finished
    cases: Cases
    names: Mapping[str, str]
    said: Mapping[str, Any]


def attribute(path: Path, cell: str | None, cause: str | None, json: bool) -> None:
    """Show why the questions of a run came out as they did, from its records alone. The run stays as it is.

    Raises:
        UserError: there is no such run, cell or cause, or answers are not scored there.
    """
    wanted = None if cause is None else _cause_named(cause)
    with open_finished(path) as finished:
        run = _read(finished, cell)
    if json:
        questions = [] if wanted is None else decided_json(wanted, run.cases, run.names)
        print_json({**run.said, **({} if wanted is None else {"questions": questions})})
    elif wanted is None:
        _show(run)
    else:
        say(f"{wanted.title}: {wanted.definition}")
        print_decided(wanted, run.cases, run.names, run.finished.questions)


def _cause_named(name: str) -> Cause:
    folded = name.strip().replace("-", "_").replace(" ", "_").lower()
    found = BY_NAME.get(folded) or next((one for one in CAUSES if one.title == name.strip().lower()), None)
    if found is None:
        raise RunError(f"no cause {name!r}; there are: {', '.join(BY_NAME)}")
    return found


def _read(run: Finished, cell: str | None) -> _Run:
    names, grouped = cells_named(run.rows, cell), run.grouped.of
    cases = cases_of(run.cells, run.folder.results(), run.questions, run.scheme, run.settings.scoring)
    said = attribution_of(run.cells, cases, run.questions, run.scheme, grouped, run.settings.seed)
    if said is None:
        raise RunError(f"{run.path}: its benchmark scores what is found, not answers; there is no cause to tell")
    kept, joint = ([{**row, "name": names[row["cell"]]} for row in said[part] if row["cell"] in names]
                   for part in ("cells", "joint"))
    return _Run(run, cases, names, {
        "run": str(run.path), **said, "cells": kept, "joint": joint,
        "tradeoff": [row for row in tradeoff_of(run.cells, cases, grouped, sweeps_of(run.settings)) or ()
                     if row["cell"] in names]})


def _show(run: _Run) -> None:
    show_causes(run.said, run.names)
    say("")
    print_table(["cell", "of the right, right closed-book too", "all gold in view", "gold in view, mean",
                 "of the retrieval misses, refused"],
                [[row["name"], *(percent(row[name]) for name in ("known", "gold_whole", "gold_found", "abstained"))]
                 for row in run.said["cells"]], title="What was known, and what was in view: % [95 %]")
    if swept := [row for row in run.said["tradeoff"] if "threshold" in row]:
        say("")
        print_table(*_swept(run, swept), title="Thresholds: % of the questions [95 %]")
        say("The best threshold is picked on the questions that it is measured on, and so looks better than it is.")
    if run.said["joint"]:
        say("")
        print_table(*_joint(run), title="Beside the same questions over the gold alone (`gold`)")
    say("")
    print_records([("Causes; the first that holds is the one", [
        (one["title"], one["definition"]) for one in _occurring(run.said)])])
    for text in run.said["notes"]:
        say(text)


def _swept(run: _Run, rows: Sequence[Mapping[str, Any]]) -> Table:
    header = ["cell", "threshold", "answered", "wrong among those answered", "rightly refused", "needlessly refused"]
    shares = ("answered", "risk", "rightly", "needlessly")
    return header, [[run.names[row["cell"]], f"{row['threshold']:g}", *(percent(row[name]) for name in shares)]
                    for row in sorted(rows, key=lambda row: (row["sweep"], row["threshold"]))]


def _joint(run: _Run) -> Table:
    header = ["cell", "n", "right in both", "right over the gold alone only", "right here only", "neither",
              "stays right, % [95 %]", "retrieval misses right over the gold alone, %",
              "others right over the gold alone, %", "p (Holm)"]
    return header, [[row["name"], str(row["n"]), *(str(row[name]) for name in ("both", "lost", "gained", "neither")),
                     *(percent(row[name]) for name in ("kept", "mended", "others")), probability(row["p_holm"])]
                    for row in run.said["joint"]]


def show_causes(said: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """The shares of the causes that occur, cells by causes."""
    causes = _occurring(said)
    print_table(["cell", "n", *(one["title"] for one in causes)],
                [[names[row["cell"]], str(row["n"]), *(percent(row["causes"][one["name"]]) for one in causes)]
                 for row in said["cells"]], title=f"Why: % of the questions [95 %], right by {said['metric']}")


def _occurring(said: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in said["causes"] if any(row["causes"][one["name"]]["mean"] for row in said["cells"])]


def percent(value: Mapping[str, Any]) -> str:
    """An estimated share in percent, with its interval."""
    if value["mean"] is None:
        return "-"
    mean, low, high = (None if part is None else f"{100 * part:.0f}" for part in (
        value["mean"], value["low"], value["high"]))
    return str(mean) if low is None else f"{mean} [{low}, {high}]"
