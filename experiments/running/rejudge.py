"""Judging the answers of a run again, by other judges, several times, or by people; its records stay as they are.

People grade in a sheet, which is written and read back:

    cell,question,text,gold,answer,grade
    3f0c…,q17,How many people live there?,111 people,About 110 [1],

The grade is as a judge's: `Partially Correct`; or `7`; or the numbers of the steps that are held, `0, 2`, or `none`.
An empty one is no label.
"""
from __future__ import annotations

import contextlib
import csv
import io
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar
from unicodedata import normalize

from ragbed.agents.journal import ExchangeResult, Journal, Model
from ragbed.agents.limits import run_bounded
from ragbed.agents.models import open_model, resolve_model
from ragbed.agents.types import Cost
from ragbed.documents.errors import RunError, SettingsError
from ragbed.documents.rows import Row, read_rows, read_text
from ragbed.documents.types import digest
from ragbed.experiments.analysis.agreement import JudgedAnswer, Rater
from ragbed.experiments.judges import (
    Graded,
    Lexical,
    ModelJudge,
    ModelSupport,
    SupportCheck,
    ask_judge,
    ask_support,
    graded_of,
)
from ragbed.experiments.judges.model import numbered, read_grade, read_points, read_steps
from ragbed.experiments.judges.sentence_support import Claims
from ragbed.experiments.question import Rubric
from ragbed.experiments.record import Support, Verdict
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.retrieval.storage.files import write_atomically
from ragbed.retrieval.types import Progress
from ragbed.strategies.reading import strip_citations

Due = TypeVar("Due")
End = TypeVar("End")
_COLUMNS = ("cell", "question", "text", "gold", "answer", "grade")
_READ = ("cell", "question", "grade")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
_UNSEEN = re.compile("[\\s\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f]")  # besides the unprintable
_LONGEST = 2**31 - 1  # characters of a field: a reasoning may be far longer than the reader's usual limit
_EXPECTED = {"grades": "Correct, Partially Correct or Wrong", "points": "a whole number from 0 to 10",
             "steps": "the numbers of the steps that are held, as in 0, 2, or none"}


@dataclass(frozen=True, slots=True)
class Material:
    """The answers of a run that a judge is asked of."""

    rubric: Rubric
    graded: Mapping[JudgedAnswer, Graded]  # what a judge is given of each, in the run's order
    recorded: Mapping[JudgedAnswer, Verdict]  # what the run's own judge said of them

    @property
    def steps(self) -> dict[JudgedAnswer, int]:
        """How many reference steps there are for each answer."""
        return {item: len(graded.steps) for item, graded in self.graded.items()}


def material_of(folder: RunFolder, settings: RunSettings) -> Material:
    """Return what of the run's answers a judge is asked of; RunError where none is asked, or of nothing."""
    questions = folder.questions()
    scheme = settings.scheme_of(questions.values())
    if scheme.rubric is None:
        raise RunError(f"{folder.path}: the scores of {settings.benchmark.kind} rest on no judge, so there is nothing "
                       "to judge again")
    graded: dict[JudgedAnswer, Graded] = {}
    recorded: dict[JudgedAnswer, Verdict] = {}
    for result in folder.results(traces=scheme.rubric == "steps"):  # whose judge reads the reasoning
        item = result.cell, result.question
        if due := graded_of(result, questions[result.question], scheme, settings.scoring):
            graded[item] = due
            if result.verdict is not None:
                recorded[item] = result.verdict
    if not graded:
        raise RunError(f"{folder.path}: holds no answer that a judge is asked of")
    return Material(scheme.rubric, graded, recorded)


def judges_named(names: Sequence[str], settings: RunSettings) -> list[Lexical | ModelJudge]:
    """Return the judges of these names; the run's own is as its settings have it. Raises SettingsError where two are
    one, and ModelError where one is unknown."""
    known: dict[str, str] = {}
    for name in names:
        identity = name if name == "lexical" else resolve_model(name).identity
        if identity in known:
            raise SettingsError(f"--judge {known[identity]} and {name} are one judge, so their agreement says nothing; "
                                "name one of them")
        known[identity] = name
    return [settings.judge if name == settings.judge.name else Lexical() if name == "lexical" else
            ModelJudge(model=name) for name in names]


async def rejudge(folder: RunFolder, settings: RunSettings, material: Material, judges: Sequence[Lexical | ModelJudge],
                  repeats: int, progress: Progress) -> tuple[list[Rater], Cost]:
    """Return every judge's verdicts on every answer, through the run's journal: what was asked before costs nothing. A
    repeat is part of a call's key. Repeats of the lexical judge would be equal by construction: it has one. Raises
    ModelError where every call would fail."""
    raters: list[Rater] = []
    spent = Cost()
    journal = Journal(folder.database)
    for judge in judges:
        async with contextlib.AsyncExitStack() as opened:
            client = None
            if isinstance(judge, ModelJudge):
                client = await opened.enter_async_context(open_model(judge.model, settings.asking))
            for repeat in range(repeats if client else 1):
                model = Model(client, journal, settings.limits.max_tokens, repeat) if client else None
                name = f"{judge.name} #{repeat + 1}" if client and repeats > 1 else judge.name
                asks = partial(ask_judge, judge, model, deadline=lambda: time.monotonic() + settings.limits.seconds)
                judged = await _judged(material.graded, asks, client.limits.concurrency if client else 1,
                                       partial(progress, f"judged by {name}"))
                raters.append(Rater(name, {item: one.end for item, one in judged.items() if one.end}))
                spent = sum((one.cost for one in judged.values()), spent)
    return raters, spent


async def _judged(due: Mapping[JudgedAnswer, Due], asks: Callable[[Due], Awaitable[ExchangeResult[End]]], window: int,
                  progress: Callable[[int, int], None]) -> dict[JudgedAnswer, ExchangeResult[End]]:
    found: dict[JudgedAnswer, ExchangeResult[End]] = {}

    async def carry_out(one: tuple[JudgedAnswer, Due]) -> None:
        found[one[0]] = await asks(one[1])
        progress(len(found), len(due))

    await run_bounded(due.items(), window, carry_out)
    return {item: found[item] for item in due}


async def check_support(folder: RunFolder, settings: RunSettings, check: SupportCheck,
                        due: Mapping[JudgedAnswer, Claims], progress: Progress) -> dict[JudgedAnswer, Support]:
    """Return the check's labels of every answer, a model's through the run's journal; ModelError where every call would
    fail."""
    async with contextlib.AsyncExitStack() as opened:
        client = await opened.enter_async_context(
            open_model(check.model, settings.asking)) if isinstance(check, ModelSupport) else None
        model = Model(client, Journal(folder.database), settings.limits.max_tokens) if client else None
        asks = partial(ask_support, check, model, deadline=lambda: time.monotonic() + settings.limits.seconds)
        checked = await _judged(due, asks, client.limits.concurrency if client else 1,
                                partial(progress, f"support checked by {check.name}"))
    return {item: one.end for item, one in checked.items() if one.end}


def write_sheet(path: Path, material: Material) -> None:
    """Write a row for every answer that a judge is asked of, its grade left empty. It does not say who answered, and
    its questions are in random order: whoever grades the first ones has a sample of all. Raises RunError where the file
    is there already, or cannot be written."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for (cell, question), graded in sorted(material.graded.items(), key=lambda one: digest("sheet", one[0][1])):
        shown = (numbered(graded.steps), graded.reasoning) if graded.rubric == "steps" else (
            "\nor: ".join(graded.answers), strip_citations(graded.predicted))
        writer.writerow(map(guarded, (cell, question, graded.question, *shown, "")))
    if path.exists():
        raise RunError(f"{path}: is there already, maybe with labels; give another name")
    try:
        write_atomically(path, text.getvalue().encode("utf-8-sig"))  # the mark makes spreadsheets read it as UTF-8
    except OSError as error:
        raise RunError(f"{path}: cannot write: {error.strerror}") from error


def guarded(cell: str) -> str:
    """Return the cell with an apostrophe before it where a spreadsheet would run it as a formula, also after blanks,
    line ends and characters that nobody sees."""
    first = next((one for one in cell if one.isprintable() and not _UNSEEN.fullmatch(one)), "")
    return f"'{cell}" if cell.startswith(_FORMULA) or normalize("NFKC", first).startswith(_FORMULA) else cell


def raters_of(paths: Sequence[Path], material: Material) -> list[Rater]:
    """Return a rater for each file, called by the file's name, or by its path where several have that name. Raises
    SettingsError where a file is given twice, and else as `read_labels`."""
    real = [path.resolve() for path in paths]
    if twice := [path for path, file in zip(paths, real, strict=True) if real.count(file) > 1]:
        raise SettingsError(f"--labels {twice[-1]} is given twice, so its agreement says nothing; give it once")
    names = [path.name for path in paths]
    return [read_labels(path, material, name if names.count(name) == 1 else str(path))
            for path, name in zip(paths, names, strict=True)]


def read_labels(path: Path, material: Material, rater: str | None = None) -> Rater:
    """Return the labels of a filled-in sheet, or of JSON Lines with `cell`, `question` and `grade` (of steps, a list),
    by a rater who is called by the file's name if by no other. Raises BenchmarkError with file, line and field where a
    row names no such answer, names one twice, or its grade is none; and RunError where the file cannot be read, or
    holds no label."""
    sheet = path.suffix.lower() not in (".jsonl", ".json")
    rater = rater or path.name
    known = {id: id for item in material.graded for id in item}
    if sheet:
        known |= {guarded(id): id for id in known}
    verdicts: dict[JudgedAnswer, Verdict] = {}
    lines: dict[JudgedAnswer, int] = {}
    for row in _sheet_rows(path) if sheet else read_rows(path):
        item = (known.get(_id(row, "cell"), ""), known.get(_id(row, "question"), ""))
        if item not in material.graded:
            row.fail("question", "an answer of this run that a judge is asked of", f"{_id(row, 'question')} in cell "
                     f"{_id(row, 'cell')}")
        if item in lines:
            row.fail("question", f"an answer of its own (line {lines[item]} has it too)", item[1])
        lines[item] = row.line
        verdict = _verdict(row, rater, material.graded[item])
        if verdict is not None:
            verdicts[item] = verdict
    if not verdicts:
        raise RunError(f"{path}: holds no label; fill in its column `grade`")
    return Rater(rater, verdicts)


def _id(row: Row, field: str) -> str:
    value = row.fields.get(field)
    return value if isinstance(value, str) else row.fail(field, "the id of one, as in the sheet", value)


def _verdict(row: Row, rater: str, graded: Graded) -> Verdict | None:
    stated = row.fields.get("grade")
    said = "" if stated is None else str(stated).strip()
    if not said:
        return None
    grade = (read_grade(f"Grade: {said}") or (None,))[0] if graded.rubric == "grades" else None
    steps = None
    if graded.rubric == "steps":
        steps = () if said.lower() == "none" else read_steps(said if "[" in said else f"[{said}]", len(graded.steps))
    points = read_points(said) if graded.rubric == "points" else None
    verdict = Verdict(judge=rater, grade=grade, points=points, steps=steps)
    return row.fail("grade", _EXPECTED[graded.rubric], stated) if verdict.unjudged else verdict


def _sheet_rows(path: Path) -> Iterator[Row]:
    """Return the rows of a CSV file, whose line is that on which they begin, without blank ones. Cells may be parted by
    `;` or tabs too."""
    text = read_text(path)
    head = next((line for line in text.splitlines() if line.strip(" ,;\t")), "")
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=head.count))
    columns: list[str] = []
    line = 0
    try:
        for row in reader:
            filled = any(map(str.strip, row))
            if filled and not columns:
                columns = row
                _check_columns(row, f"{path}, line {line + 1}")
            elif filled:
                if any(row[len(columns):]):
                    raise RunError(f"{path}, line {line + 1}: expected {len(columns)} cells, found {len(row)}; put "
                                   "what holds a comma, semicolon or tab in quotes")
                yield Row(path, line + 1, dict(zip(columns, row, strict=False)))
            line = reader.line_num
    except csv.Error as error:
        raise RunError(f"{path}, line {line + 1}: cannot be read as CSV: {error}") from error
    if not columns:
        _check_columns([], f"{path}, line 1")


def _check_columns(names: Sequence[str], where: str) -> None:
    if missing := [name for name in _READ if name not in names]:
        raise RunError(f"{where}: expected the columns cell, question and grade, found no {' nor '.join(missing)}; "
                       "--sheet writes such a file")
    if twice := [name for name in _READ if names.count(name) > 1]:
        raise RunError(f"{where}: expected one column {twice[0]}, found {names.count(twice[0])}; a file holds the "
                       "labels of one person")
