"""Read the rows of CSV, Excel, Parquet, JSON and YAML files, from a file, a folder or the hub."""
from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from ragbed.documents.child_process import ChildFailure, ChildProcess, answer_requests
from ragbed.documents.errors import BenchmarkError, DocumentError, MissingExtra
from ragbed.documents.paths import child_environment, expand_path
from ragbed.documents.rows import Row, read_csv, read_rows, read_text
from ragbed.documents.worker import MAX_MEMORY, read
from ragbed.experiments.benchmarks.base import QUESTION_FILES, files_below
from ragbed.experiments.benchmarks.hub import fetch_files

MAX_BYTES = 200_000_000
_MAX_YAML = 5_000_000  # bytes
_DEADLINE = 120  # seconds to read a workbook
_WORKBOOKS = (".xlsx", ".xlsm")
_HUB = re.compile(r"(hub:[^/@]+/[^/@]+(?:@[^/]+)?)(?:/(.+))?")


def find_files(path: str) -> list[Path]:
    """List the files of questions at a path: a file, a folder, or `hub:OWNER/NAME`. The last two may be followed by a
    subset and a split, as in `hub:OWNER/NAME/test`. Raises BenchmarkError if there are none, or if there are several
    splits or subsets and none is named."""
    hub = _HUB.fullmatch(path)
    place, wanted = (hub[1], hub[2] or "") if hub else (path, "")
    if not hub and not expand_path(path).exists() and expand_path(path).parent.is_dir() and not Path(path).suffix:
        place, wanted = str(Path(path).parent), Path(path).name
    folder = fetch_files(place, also=("*.csv", "*.tsv"))
    if folder.is_file():
        if folder.suffix.lower() not in QUESTION_FILES:
            raise BenchmarkError(f"{path}: questions cannot be read from such a file; save it as one of "
                                 f"{', '.join(QUESTION_FILES)}")
        return [folder]
    files = [file for file in files_below(folder, QUESTION_FILES) if not file.name.startswith("dataset_info")]
    parts = {file: _parts(file.relative_to(folder)) for file in files}
    kept = [file for file in files if set(wanted.split("/")) - {""} <= set(parts[file])]
    splits = sorted({"/".join(parts[file]) for file in kept or files})
    if not kept or len(splits) > 1:
        problem = f"has no {wanted!r}" if not kept else "has several parts"
        raise BenchmarkError(f"{path}: {problem}; name one, as in {place}/{splits[0]}: {', '.join(splits[:20])}")
    return kept


def _parts(file: Path) -> list[str]:
    """Return the subset and the split of a file, such as `data/test-00000-of-00001.parquet`."""
    split = re.sub(r"-\d{5}-of-\d{5}$|[-_.]\d+$", "", file.stem)
    return [part for part in (*file.parts[:-1], split) if part != "data"]


def read_table(file: Path, sheet: str | None = None) -> Iterator[Row]:
    """Yield the rows of a file. Blank rows of a workbook are left out. Raises BenchmarkError, with file and line, if it
    cannot be read or is too large."""
    if not file.is_file() or (size := file.stat().st_size) == 0:
        raise BenchmarkError(f"{file}: {'the file is empty' if file.is_file() else 'no such file'}")
    suffix = file.suffix.lower()
    most = _MAX_YAML if suffix in (".yaml", ".yml") else MAX_BYTES
    if size > most and suffix != ".parquet":
        raise BenchmarkError(f"{file}: larger than the limit of {most:,} bytes; save it as Parquet, or split it")
    if suffix in _WORKBOOKS:
        yield from _read_workbook(file, sheet)
    elif suffix in (".yaml", ".yml"):
        yield from _as_rows(file, _read_yaml(file))
    elif suffix in (".csv", ".tsv"):
        yield from read_csv(file, spreadsheet=True, blank=True)
    else:
        yield from read_rows(file)


def is_blank(row: Row) -> bool:
    """Return whether no cell of a row holds anything."""
    return not any(str(value).strip() for value in row.fields.values() if value is not None)


def find_blank(rows: Sequence[Row]) -> list[tuple[Path, range]]:
    """Return the lines of blank rows, by file and in order."""
    found: list[tuple[Path, range]] = []
    for at, row in enumerate(rows):
        left_out = at and row.file.suffix.lower() in _WORKBOOKS and row.file == rows[at - 1].file
        lines = range(rows[at - 1].line + 1 if left_out else row.line, row.line + is_blank(row))
        if found and lines and found[-1] == (row.file, range(found[-1][1].start, lines.start)):
            found[-1] = row.file, range(found[-1][1].start, lines.stop)
        elif lines:
            found.append((row.file, lines))
    return found


def unwrap(row: Row) -> list[Row]:
    """Return the records inside a JSON object: a list of records under one key, or columns as pandas writes them."""
    lists = [one for one in row.fields.values() if isinstance(one, list) and one
             and all(isinstance(item, dict) for item in one)]
    if len(lists) == 1:
        return list(_as_rows(row.file, lists[0]))
    columns = row.fields
    if columns and all(isinstance(one, dict) and one.keys() == next(iter(columns.values())).keys()
                       for one in columns.values()):
        return list(_as_rows(row.file, [{name: column[at] for name, column in columns.items()}
                                        for at in next(iter(columns.values()))]))
    return [row]


def _as_rows(file: Path, records: Any) -> Iterator[Row]:
    for number, record in enumerate(records if isinstance(records, list) else [records], start=1):
        if not isinstance(record, dict):
            record = {"question": record}
        yield Row(file, number, {str(name): value for name, value in record.items()})


class _Texts(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads numbers, dates and yes or no as the text that they are written as."""


for _tag in ("int", "float", "timestamp", "bool"):
    _Texts.add_constructor(f"tag:yaml.org,2002:{_tag}", lambda loader, node: loader.construct_scalar(node))


def _read_yaml(file: Path) -> Any:
    text = read_text(file)
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, _Texts)):
            raise BenchmarkError(f"{file}: write values instead of YAML aliases, which can expand endlessly")
        return yaml.load(text, _Texts)  # noqa: S506
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BenchmarkError(f"{file}: not valid YAML: {' '.join(str(error).split())[:200]}") from error


def _read_workbook(file: Path, sheet: str | None) -> Iterator[Row]:
    """Yield the rows of a sheet. A separate process reads the file, since a hostile one may take long or crash it."""
    MissingExtra.check("office", "openpyxl")
    child = ChildProcess(__name__, child_environment(RAGBED_KEEP_HIDDEN="1"))
    try:
        answer: Mapping[str, Any] = child.ask({"file": str(file)}, _DEADLINE)
    except ChildFailure as why:
        answer = {"reason": f"not read: {why}"}
    finally:
        child.stop()
    if "reason" in answer:
        raise BenchmarkError(f"{file}: {answer['reason']}")
    sheets = {name: rows for name, rows in answer.items() if rows and sheet in (None, name)}
    if len(sheets) != 1:
        there = ", ".join(name for name, rows in answer.items() if rows) or "none with cells"
        raise BenchmarkError(f"{file}: choose one of its sheets with sheet: NAME, or --set benchmark.sheet=NAME; the "
                             f"sheets are {there}")
    (rows,) = sheets.values()
    wide = max(len(cells) for _, cells in rows)
    header: dict[str, str] = {}  # the first row, except a title above the table
    for number, cells in rows:
        if header:
            yield Row(file, number, {name: cells.get(column, "") for column, name in header.items()})
        elif len(cells) > 1 or wide == 1:
            header = cells
            names = list(header.values())
            if twice := [name for name in names if names.count(name) > 1]:
                raise BenchmarkError(f"{file}, row {number}: several columns are called {twice[0]!r}; rename one")


def read_cells(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the cells of a workbook by sheet and row, or the `reason` why it cannot be read."""
    from ragbed.experiments.guests.office.workbooks import read_sheets

    file = Path(request["file"])
    try:
        return {name: sorted(rows.items()) for name, rows in
                read_sheets(read(file, MAX_BYTES), file.name).items()}
    except DocumentError as error:
        return {"reason": error.reason}


if __name__ == "__main__":
    answer_requests(read_cells, MAX_MEMORY)
