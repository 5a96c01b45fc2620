"""Read records from JSON Lines, JSON, CSV and Parquet files. Each row knows its file and line."""
from __future__ import annotations

import csv
import errno
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from ragbed.documents.decoding import SEPARATOR_LINE, decode
from ragbed.documents.errors import BenchmarkError, DocumentError
from ragbed.documents.json import loads
from ragbed.documents.paths import expand_path, open_file

S = TypeVar("S")
T = TypeVar("T")
_MAX_LENGTH = 1 << 24  # characters of a field in a CSV file
_MAX_TEXT = 2_000_000_000  # bytes of a file that is read whole
_MAX_LINE = 1 << 28  # bytes of a line of JSON Lines
_MAX_ROW_GROUP = 2_000_000_000  # bytes of a row group of Parquet, unpacked
_SKIPPED: ContextVar[tuple[list[str], bool] | None] = ContextVar("_SKIPPED", default=None)


@contextmanager
def skip_bad_records(wanted: bool) -> Iterator[list[str]]:
    """Open a context that skips invalid records and lists their problems. Unless `wanted`, the first one raises an
    error that mentions `skip_bad`."""
    skipped: list[str] = []
    before = _SKIPPED.set((skipped, wanted))
    try:
        yield skipped
    finally:
        _SKIPPED.reset(before)


def convert_records(make: Callable[[S], T], records: Iterable[S]) -> Iterator[T]:
    """Convert records one by one. An invalid one raises BenchmarkError, or is skipped in `skip_bad_records`."""
    way = _SKIPPED.get()
    for record in records:
        try:
            made = make(record)
        except BenchmarkError as error:
            if way is None:
                raise
            skipped, wanted = way
            if not wanted:
                raise BenchmarkError(f"{error}; set skip_bad to skip invalid records") from error
            skipped.append(str(error))
        else:
            yield made


@dataclass(frozen=True, slots=True)
class Row:
    """One record with its file and line."""

    file: Path
    line: int  # from 1: the line of a JSON Lines file, the row of a Parquet file, the record of a JSON list
    fields: Mapping[str, Any]
    within: str = ""  # path of a nested record, a prefix of its field names

    def fail(self, field: str, expected: str, found: object) -> NoReturn:
        """Raise a BenchmarkError with file, line, field and what was expected."""
        where = f"{self.file}, line {self.line}, field {self.within}{field}"
        raise BenchmarkError(f"{where}: expected {expected}, found {_short(found)}")

    def text(self, field: str) -> str:
        """Return a required text field."""
        value = self.fields.get(field)
        return value if isinstance(value, str) else self.fail(field, "text", value)

    def filled(self, field: str) -> str:
        """Return a required text field that is not blank."""
        text = self.text(field)
        return text if text.strip() else self.fail(field, "text that is not blank", text)

    def optional(self, field: str) -> str:
        """Return an optional text field; empty if it is null or missing."""
        return "" if self.fields.get(field) is None else self.text(field)

    def flag(self, field: str, default: bool) -> bool:
        """Return a boolean field; `default` if it is missing."""
        value = self.fields.get(field, default)
        return value if isinstance(value, bool) else self.fail(field, "true or false", value)

    def number(self, field: str) -> int:
        """Return a required whole number."""
        value = self.fields.get(field)
        return value if isinstance(value, int) and not isinstance(value, bool) else self.fail(
            field, "a whole number", value)

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a required list of texts."""
        value = self.fields.get(field)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(field, "a list of texts", value)
        return tuple(value)

    def filled_texts(self, field: str) -> tuple[str, ...]:
        """Return a required list of texts, none of them blank."""
        texts = self.texts(field)
        return texts if all(map(str.strip, texts)) else self.fail(field, "texts that are not blank", list(texts))

    def parts(self, field: str) -> list[Row]:
        """Return a required list of records."""
        value = self.fields.get(field)
        if not isinstance(value, list):
            self.fail(field, "a list of records", value)
        return [self.part(f"{field}[{at}]", item) for at, item in enumerate(value)]

    def part(self, field: str, value: object) -> Row:
        """Return a nested record."""
        if not isinstance(value, dict):
            self.fail(field, "a record", value)
        return Row(self.file, self.line, value, f"{self.within}{field}.")

    def stated_id(self, field: str = "id") -> str | None:
        """Return an optional id, which is text or a whole number; None if it is missing."""
        value = self.fields.get(field)
        if value is None or value == "":
            return None
        if isinstance(value, bool) or not isinstance(value, str | int):
            self.fail(field, "text, a whole number or null", value)
        return str(value)

    def id(self, *fields: str) -> str:
        """Return the required id, from the first of these fields that has one."""
        found = next((id for id in map(self.stated_id, fields) if id is not None), None)
        return self.fail(fields[0], "text or a whole number", None) if found is None else found

    def decoded(self, field: str, kind: type | tuple[type, ...], expected: str) -> Any:
        """Return a field of the given type. The file may hold its value as JSON text."""
        value = self.fields.get(field)
        if isinstance(value, str):
            try:
                value = loads(value)
            except ValueError as error:
                self.fail(field, f"JSON text of {expected} ({error})", value)
        return value if isinstance(value, kind) else self.fail(field, expected, value)

    def parse_as(self, adapter: TypeAdapter[T]) -> T:
        """Return the record as the adapter's type. Raises BenchmarkError, which names the first invalid field."""
        try:
            return adapter.validate_python(dict(self.fields))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            self.fail(".".join(map(str, first["loc"])), first["msg"], first["input"])


def read_rows(file: Path) -> Iterator[Row]:
    """Return the rows of a `.parquet`, `.jsonl` or `.json` file. A `.json` file may be one record, a list, or JSON
    Lines. Raises BenchmarkError if the file cannot be read or a record is not a JSON object."""
    if not (place := expand_path(file)).is_file():
        other = "not a file" if place.is_dir() else "a pipe or a device, not a file"
        raise BenchmarkError(f"{file}: {other if place.exists() else 'no such file'}")
    if file.suffix == ".parquet":
        return _parquet(file)
    return _json_whole(file) if file.suffix == ".json" and not _is_lines(file) else _json_lines(file)


def _is_lines(file: Path) -> bool:
    """Return whether the first line that is not blank is a complete JSON object."""
    with file.open("rb") as lines:
        first = next((line for line in _lines(file, lines) if line.strip(b"\xef\xbb\xbf \t\r\n")), b"").removeprefix(
            b"\xef\xbb\xbf")
    if not first.lstrip().startswith(b"{"):
        return not first.lstrip().startswith(b"[")
    try:
        loads(first.decode("utf-8"))
    except ValueError:
        return False
    return True


def _json_whole(file: Path) -> Iterator[Row]:
    """Return the rows of a list or of one object. `line` counts records, since a record may span several lines."""
    content = read_json(file)
    return convert_records(lambda one: _row(file, *one, f"{file}, record {one[0]}: expected a JSON object"),
                   enumerate(content if isinstance(content, list) else [content], start=1))


def _row(file: Path, number: int, record: object, expected: str) -> Row:
    if not isinstance(record, dict):
        raise BenchmarkError(f"{expected}, found {_short(record)}")
    return Row(file, number, record)


def read_json(file: Path) -> Any:
    """Read a JSON file. Raises BenchmarkError if it is not valid."""
    try:
        return loads(read_text(file))
    except ValueError as error:
        raise BenchmarkError(f"{file}: cannot be read as JSON: {error}") from error


def read_text(file: Path) -> str:
    """Read a text file in UTF-8, with or without a byte order mark. Raises BenchmarkError if it cannot be read."""
    try:
        with io.TextIOWrapper(open_file(expand_path(file), _MAX_TEXT), encoding="utf-8-sig") as opened:
            return opened.read()
    except OSError as error:
        raise _unreadable(file, error) from error
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{file}: cannot be read as text in UTF-8: {error}") from error


def _unreadable(file: Path, error: OSError) -> BenchmarkError:
    advice = "; split it, or save it as JSON Lines" if error.errno == errno.EFBIG else ""
    return BenchmarkError(f"{file}: cannot be read: {error.strerror}{advice}")


def read_spreadsheet_text(file: Path) -> tuple[str, str]:
    """Return the text of a CSV file as spreadsheets save it, and its delimiter: a comma, semicolon or tab.

    It may be in UTF-8, UTF-16 or an older encoding. The delimiter is the one that a first line `sep=;` names, or the
    most frequent one in the first line that is not blank. Raises BenchmarkError if the file cannot be read.
    """
    try:
        with open_file(expand_path(file), _MAX_TEXT) as opened:
            text = decode(opened.read(), str(file)).removeprefix("\ufeff")
    except OSError as error:
        raise _unreadable(file, error) from error
    except DocumentError as error:
        raise BenchmarkError(f"{file}: cannot be read as text: {error.reason}") from error
    if named := SEPARATOR_LINE.match(text):
        return text[named.end(1):].lstrip('"'), named[1]  # the rest of the line is blank, so that lines count on
    head = next((line for line in text.splitlines() if line.strip(" ,;\t")), "")
    return text, max(",;\t", key=head.count)


def read_csv(file: Path, spreadsheet: bool = False, blank: bool = False) -> Iterator[Row]:
    """Yield the records of a CSV file with a header, in UTF-8 with commas. With `spreadsheet`, other encodings and
    delimiters are read too, and blank columns and lines are skipped. With `blank`, a blank line is a row without
    fields.

    `line` is the line on which a record ends. Raises BenchmarkError if the file cannot be read, has no header, or a
    record's number of fields differs from the header's."""
    csv.field_size_limit(_MAX_LENGTH)
    text, delimiter = read_spreadsheet_text(file) if spreadsheet else (read_text(file), ",")
    records = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(filter(any, records) if spreadsheet else records, [])
        while spreadsheet and header and not header[-1].strip():
            header.pop()
        if not header or (twice := [name for at, name in enumerate(header) if name in header[:at]]):
            raise BenchmarkError(f"{file}, line 1: " + (
                f"expected unique column names, but two columns are called {twice[0]!r}" if header else "no columns"))
        for record in records:
            if not any(record) if spreadsheet else not record:
                yield from [Row(file, records.line_num, {})] if blank else ()
                continue
            if spreadsheet and not any(record[len(header):]):
                record = record[:len(header)]
            if len(record) != len(header):
                raise BenchmarkError(f"{file}, line {records.line_num}: expected {len(header)} fields, "
                                     f"found {len(record)}")
            yield Row(file, records.line_num, dict(zip(header, record, strict=True)))
    except csv.Error as error:
        raise BenchmarkError(f"{file}, line {records.line_num}: cannot be read as CSV: {error}") from error


def _json_lines(file: Path) -> Iterator[Row]:
    def row(numbered: tuple[int, bytes]) -> Row:
        number, line = numbered
        expected = f"{file}, line {number}: expected one JSON object"
        try:
            return _row(file, number, loads(line.decode("utf-8")), expected)
        except ValueError as error:
            raise BenchmarkError(f"{expected} in UTF-8: {error}") from error

    with file.open("rb") as lines:
        stripped = (line.removeprefix(b"\xef\xbb\xbf").strip() for line in _lines(file, lines))
        yield from convert_records(row, (one for one in enumerate(stripped, start=1) if one[1]))


def _lines(file: Path, opened: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file. Raises BenchmarkError for one that is too long, since it might fill the memory."""
    for number, line in enumerate(iter(lambda: opened.readline(_MAX_LINE + 1), b""), start=1):
        if len(line) > _MAX_LINE:
            raise BenchmarkError(f"{file}, line {number}: longer than {_MAX_LINE:,} bytes")
        yield line


def _parquet(file: Path) -> Iterator[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(file) as table:
            groups = (table.metadata.row_group(place).total_byte_size for place in range(table.num_row_groups))
            if max(groups, default=0) > _MAX_ROW_GROUP:  # it is unpacked whole
                raise BenchmarkError(f"{file}: a row group unpacks to more than {_MAX_ROW_GROUP:,} bytes; write "
                                     "smaller row groups")
            rows = (row for batch in table.iter_batches(batch_size=64) for row in batch.to_pylist())
            for number, row in enumerate(rows, start=1):
                yield Row(file, number, row)
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:  # the last two: bad bytes and dates
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BenchmarkError(f"{file}: cannot be read as Parquet: {reason}") from error


def _short(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
