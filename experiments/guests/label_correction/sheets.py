"""Grading sheets: a CSV file of a run's answers that people fill in, and the labels read back from it.

    cell,question,text,gold,answer,grade
    3f0c…,q17,How many people live there?,111 people,About 110 [1],

A grade has the form of the judge's grades: `Partially Correct`, a number such as `7`, or the numbers of the steps that
the reasoning contains, such as `0, 2` or `none`. An empty grade is not a label.
"""
from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from ragbed.documents.errors import RunError, SettingsError
from ragbed.documents.rows import Row, read_rows, read_spreadsheet_text
from ragbed.documents.types import digest
from ragbed.experiments.guests.exports.record_tables import escape_formula
from ragbed.experiments.guests.rescoring.rejudge import JudgedAnswer, Material, Rater
from ragbed.experiments.judges import GradingInput
from ragbed.experiments.judges.model_judge import number_steps, read_grade, read_points, read_steps
from ragbed.experiments.record import Verdict
from ragbed.retrieval.storage.files import write_atomically
from ragbed.strategies.reading import strip_citations

_COLUMNS = ("cell", "question", "text", "gold", "answer", "grade")
_REQUIRED = ("cell", "question", "grade")
_MAX_FIELD = 2**31 - 1  # characters of a cell; reasoning can be longer than the csv module's default limit
_EXPECTED = {"grades": "Correct, Partially Correct or Wrong", "points": "a whole number from 0 to 10",
             "steps": "the numbers of the steps that the reasoning contains, as in 0, 2, or none"}


def write_sheet(path: Path, material: Material) -> None:
    """Write a row with an empty grade for every answer that a judge grades. The sheet identifies cells only by id. Its
    rows are in random order, so that the first ones are a random sample. Raises RunError if the file exists or cannot
    be written.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for (cell, question), graded in sorted(material.graded.items(), key=lambda one: digest("sheet", one[0][1])):
        shown = (number_steps(graded.steps), graded.reasoning) if graded.rubric == "steps" else (
            "\nor: ".join(graded.answers), strip_citations(graded.predicted))
        writer.writerow(map(escape_formula, (cell, question, graded.question, *shown, "")))
    if path.exists():
        raise RunError(f"{path}: the file exists and may hold labels; give another name")
    try:
        write_atomically(path, text.getvalue().encode("utf-8-sig"))  # the mark makes spreadsheets read it as UTF-8
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {error.strerror}") from error


def read_raters(paths: Sequence[Path], material: Material) -> list[Rater]:
    """Read one rater from each file. A rater is named after the file, or after its path if several files have the same
    name. Raises SettingsError if a file is given twice; otherwise as `read_labels`.
    """
    real = [path.resolve() for path in paths]
    if twice := [path for path, file in zip(paths, real, strict=True) if real.count(file) > 1]:
        raise SettingsError(f"--labels {twice[-1]} is given twice; give it once")
    names = [path.name for path in paths]
    return [read_labels(path, material, name if names.count(name) == 1 else str(path))
            for path, name in zip(paths, names, strict=True)]


def read_labels(path: Path, material: Material, rater: str | None = None) -> Rater:
    """Read the labels of a filled-in sheet, or of JSON Lines with `cell`, `question` and `grade` (for steps, a list).

    Raises:
        BenchmarkError: a row names an unknown answer, repeats one, or has an invalid grade; with file, line and field.
        RunError: the file cannot be read, or contains no label.
    """
    is_sheet = path.suffix.lower() not in (".jsonl", ".json")
    rater = rater or path.name
    known = {id: id for item in material.graded for id in item}
    if is_sheet:
        known |= {escape_formula(id): id for id in known}
    verdicts: dict[JudgedAnswer, Verdict] = {}
    lines: dict[JudgedAnswer, int] = {}
    for row in _read_sheet(path) if is_sheet else read_rows(path):
        item = (known.get(_read_id(row, "cell"), ""), known.get(_read_id(row, "question"), ""))
        if item not in material.graded:
            row.fail("question", "an answer of this run that a judge grades", f"{_read_id(row, 'question')} in cell "
                     f"{_read_id(row, 'cell')}")
        if item in lines:
            row.fail("question", f"each answer once (line {lines[item]} has it too)", item[1])
        lines[item] = row.line
        verdict = _read_verdict(row, rater, material.graded[item])
        if verdict is not None:
            verdicts[item] = verdict
    if not verdicts:
        raise RunError(f"{path}: contains no label; fill in its column `grade`")
    return Rater(rater, verdicts)


def _read_id(row: Row, field: str) -> str:
    value = row.fields.get(field)
    return value if isinstance(value, str) else row.fail(field, "an id, as in the sheet", value)


def _read_verdict(row: Row, rater: str, graded: GradingInput) -> Verdict | None:
    stated = row.fields.get("grade")
    text = "" if stated is None else str(stated).strip()
    if not text:
        return None
    grade = (read_grade(f"Grade: {text}") or (None,))[0] if graded.rubric == "grades" else None
    steps = None
    if graded.rubric == "steps":
        steps = () if text.lower() == "none" else read_steps(text if "[" in text else f"[{text}]", len(graded.steps))
    points = read_points(text) if graded.rubric == "points" else None
    verdict = Verdict(judge=rater, grade=grade, points=points, steps=steps)
    return row.fail("grade", _EXPECTED[graded.rubric], stated) if verdict.unjudged else verdict


def _read_sheet(path: Path) -> Iterator[Row]:
    """Yield the rows of a CSV file that are not blank, each with the line on which it begins. The file may be as a
    spreadsheet saves it."""
    text, delimiter = read_spreadsheet_text(path)
    csv.field_size_limit(_MAX_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
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
                                   "values with a comma, semicolon or tab in quotes")
                yield Row(path, line + 1, dict(zip(columns, row, strict=False)))
            line = reader.line_num
    except csv.Error as error:
        raise RunError(f"{path}, line {line + 1}: not valid CSV: {error}") from error
    if not columns:
        _check_columns([], f"{path}, line 1")


def _check_columns(names: Sequence[str], where: str) -> None:
    if missing := [name for name in _REQUIRED if name not in names]:
        raise RunError(f"{where}: expected the columns cell, question and grade, found no {' nor '.join(missing)}; "
                       "--sheet writes such a file")
    if twice := [name for name in _REQUIRED if names.count(name) > 1]:
        raise RunError(f"{where}: expected one column {twice[0]}, found {names.count(twice[0])}; a file must have "
                       "the labels of one person only")
