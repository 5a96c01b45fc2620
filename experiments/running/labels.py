"""Labels by people: a sheet to fill in, and reading one back.

    cell,question,text,gold,answer,grade
    3f0c…,q17,How many people live there?,111 people,About 110 [1],

The grade is as a judge's: `Partially Correct`; or `7`; or the numbers of the steps that are held, `0, 2`, or `none`.
An empty one is no label.
"""
from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from documents.errors import RunError, SettingsError
from documents.rows import Row, read_rows, read_text
from experiments.analysis.agreement import JudgedAnswer, Rater
from experiments.judges import Graded
from experiments.judges.model import numbered, read_grade, read_points, read_steps
from experiments.record import Verdict
from experiments.running.rejudge import Material
from retrieval.storage.files import write_atomically
from strategies.reading import strip_citations

_COLUMNS = ("cell", "question", "text", "gold", "answer", "grade")
_READ = ("cell", "question", "grade")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
_LONGEST = 2**31 - 1  # characters of a field: a reasoning may be far longer than the reader's usual limit
_EXPECTED = {"grades": "Correct, Partially Correct or Wrong", "points": "a whole number from 0 to 10",
             "steps": "the numbers of the steps that are held, as in 0, 2, or none"}


def write_sheet(path: Path, material: Material) -> None:
    """Write a row for every answer that a judge is asked of, its grade left empty. It does not say who answered.

    Raises:
        RunError: the file is there already, or cannot be written.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for (cell, question), graded in material.graded.items():
        writer.writerow(map(guarded, (cell, question, graded.question, *_shown(graded), "")))
    if path.exists():
        raise RunError(f"{path}: is there already, maybe with labels; give another name")
    try:
        write_atomically(path, text.getvalue().encode("utf-8-sig"))  # the mark makes spreadsheets read it as UTF-8
    except OSError as error:
        raise RunError(f"{path}: cannot write: {error.strerror}") from error


def guarded(cell: str) -> str:
    """Return the cell with an apostrophe before it where a spreadsheet would run it as a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _shown(graded: Graded) -> tuple[str, str]:
    if graded.rubric == "steps":
        return numbered(graded.steps), graded.reasoning
    return "\nor: ".join(graded.answers), strip_citations(graded.predicted)


def raters_of(paths: Sequence[Path], material: Material) -> list[Rater]:
    """Return a rater for each file, called by the file's name, or by its path where several have that name.

    Raises:
        SettingsError: a file is given twice.
        BenchmarkError, RunError: as `read_labels`.
    """
    real = [path.resolve() for path in paths]
    if twice := [path for path, file in zip(paths, real, strict=True) if real.count(file) > 1]:
        raise SettingsError(f"--labels {twice[-1]} is given twice, so its agreement says nothing; give it once")
    names = [path.name for path in paths]
    return [read_labels(path, material, name if names.count(name) == 1 else str(path))
            for path, name in zip(paths, names, strict=True)]


def read_labels(path: Path, material: Material, rater: str | None = None) -> Rater:
    """Return the labels of a filled-in sheet, or of JSON Lines with `cell`, `question` and `grade` (of steps, a list).

    Args:
        rater: what to call who gave them; the file's name where None.

    Raises:
        BenchmarkError: a row names no such answer, names one twice, or its grade is none: file, line, field.
        RunError: the file cannot be read, or holds no label.
    """
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
    said = str(stated).strip() if stated is not None else ""
    if not said:
        return None
    grade, points, steps = None, None, None
    if graded.rubric == "grades":
        grade = (read_grade(f"Grade: {said}") or (None,))[0]
    elif graded.rubric == "points":
        points = read_points(said)
    else:
        steps = _steps(said, len(graded.steps))
    verdict = Verdict(judge=rater, grade=grade, points=points, steps=steps)
    return row.fail("grade", _EXPECTED[graded.rubric], stated) if verdict.unjudged else verdict


def _steps(said: str, count: int) -> tuple[int, ...] | None:
    return () if said.lower() == "none" else read_steps(said if "[" in said else f"[{said}]", count)


def _sheet_rows(path: Path) -> Iterator[Row]:
    """The rows of a CSV file, whose line is that on which they begin. Cells may be parted by `;` or tabs too.

    Blank rows are passed over, before the names of the columns too.
    """
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
                columns = _columns(row, f"{path}, line {line + 1}")
            elif filled:
                if any(row[len(columns):]):
                    raise RunError(f"{path}, line {line + 1}: expected {len(columns)} cells, found {len(row)}; put "
                                   "what holds a comma, semicolon or tab in quotes")
                yield Row(path, line + 1, dict(zip(columns, row, strict=False)))
            line = reader.line_num
    except csv.Error as error:
        raise RunError(f"{path}, line {line + 1}: cannot be read as CSV: {error}") from error
    if not columns:
        _columns([], f"{path}, line 1")


def _columns(names: list[str], where: str) -> list[str]:
    """The names of the columns; RunError where one that is read is missing or there twice."""
    if missing := [name for name in _READ if name not in names]:
        raise RunError(f"{where}: expected the columns cell, question and grade, found no {' nor '.join(missing)}; "
                       "--sheet writes such a file")
    if twice := [name for name in _READ if names.count(name) > 1]:
        raise RunError(f"{where}: expected one column {twice[0]}, found {names.count(twice[0])}; a file holds the "
                       "labels of one person")
    return names
