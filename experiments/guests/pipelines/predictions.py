"""Read answers from another tool's file. The file acts as a pipeline whose calls look up a row."""
from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from ragbed.documents.errors import CallError, SettingsError
from ragbed.documents.http import Response
from ragbed.documents.paths import expand_path
from ragbed.experiments.answer_files import Prediction, find_answer_format
from ragbed.experiments.guests.pipelines.pipeline import Channel, JSONPipeline, parse_fields
from ragbed.guests import entries
from ragbed.retrieval.storage.files import sha256_of

if TYPE_CHECKING:
    from ragbed.agents.model_settings import CallLimits


def _check_format(format: str) -> str:
    if format not in (formats := entries("answers")):
        raise ValueError(f"unknown format {format!r}; the formats are {', '.join(formats)}")
    return format


FormatName = Annotated[str, AfterValidator(_check_format), Field(
    json_schema_extra=lambda schema: schema.update(enum=list(entries("answers"))))]


def read_predictions(format: str, path: Path) -> Iterator[Prediction]:
    """Yield the answers in a file. Raises BenchmarkError, with file and line: the file cannot be read, or a row is
    invalid. Raises MissingExtra if the package that reads the format is not installed."""
    from ragbed.experiments.guests.pipelines.answer_files.conversion import check_size

    file = expand_path(path)
    if file.is_file():
        check_size(file, file.stat().st_size)
    return find_answer_format(format).read(file)


class Predictions(JSONPipeline):
    """The answers in a file. A row is matched to its question by id or, without an id, by text, ignoring whitespace.

    Attributes:
        format: the tool that wrote the file.
        path: the file, or the folder of a format that has one.
        run: which of the file's runs to read; required if there are several.
        others: what to do with rows for questions that are not in the run: refuse the run, or skip and count them.
    """

    recorded: ClassVar[bool] = True

    kind: Literal["predictions"] = "predictions"
    format: FormatName = "jsonl"
    path: Path
    run: str | None = None
    others: Literal["refuse", "leave_out"] = "refuse"

    @property
    def sources(self) -> Sequence[str]:
        """Return the hash of the file, or of each file in the folder."""
        place = expand_path(self.path)
        try:
            return list(map(sha256_of, sorted(place.iterdir()) if place.is_dir() else [place]))
        except OSError as error:
            raise SettingsError(f"{self.path}: cannot be read: {error.strerror}") from error

    def open(self, limits: CallLimits) -> PredictionChannel:
        """Copy the answers to a temporary file, because they may not fit into memory. Raises the same errors as
        `read_rows`."""
        with ExitStack() as undone:
            rows = undone.enter_context(closing(sqlite3.connect("")))
            rows.execute("CREATE TABLE rows (key, repeat, by_id, place, failure, content, "
                         "PRIMARY KEY (key, repeat, by_id))")
            rows.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?)", (
                (_key(key), row.repeat, by_id, row.place, row.failure, json.dumps(dict(row.content)))
                for row in self.read_rows() for by_id, key in ((False, _squeeze(row.question) or None), (True, row.id))
                if key is not None))
            undone.pop_all()
        return PredictionChannel(self, str(self.path), rows=rows,
                                 repeats=bool(rows.execute("SELECT 1 FROM rows WHERE repeat").fetchone()))

    def read_rows(self) -> Iterator[Prediction]:
        """Yield the rows of the run. Raises SettingsError if there are none, or the file has several runs and `run` is
        missing. Also raises the errors of `read_predictions`."""
        every, runs = read_predictions(self.format, self.path), dict[str, None]()
        for row in every:
            runs[row.run] = None
            if self.run is None and len(runs) > 1:
                runs.update((one.run, None) for one in every)
                break
            if self.run in (None, row.run):
                yield row
        if not runs:
            raise SettingsError(f"{self.path}: the file has no answers")
        if self.run not in runs and (self.run is not None or len(runs) > 1):
            raise SettingsError(f"{self.path} has the runs {', '.join(runs)}; choose one with `run`")

    def check(self, questions: Mapping[str, str], repeats: int) -> str | None:
        """Return a note about skipped rows. Raises SettingsError if `others` refuses such rows, two rows answer one
        question, or a row has the id of one question and the text of another. A replay needs no file."""
        if not expand_path(self.path).exists():
            return None
        by_text = {_squeeze(text): id for id, text in questions.items()}
        answered: dict[tuple[str, int], str] = {}
        first, unmatched, count = None, 0, 0
        for count, row in enumerate(self.read_rows(), start=1):  # noqa: B007
            text = _squeeze(row.question)
            id = row.id if row.id in questions else by_text.get(text)
            if id is None or row.repeat >= repeats:
                first, unmatched = first or row, unmatched + 1
            elif text in by_text and text != _squeeze(questions[id]):
                raise SettingsError(f"{row.place}: the row has the id of question {id} and the text of question "
                                    f"{by_text[text]}; remove one of the two")
            elif (before := answered.setdefault((id, row.repeat), row.place)) != row.place:
                raise SettingsError(f"{row.place}: question {id} already has an answer in {before}; keep one row")
        if first is None:
            return None
        text = (f"{unmatched} of {count} answers in {self.path.name} match no question of this run, such as "
                f"{first.id or first.question[:80]!r} ({first.place})")
        if self.others == "refuse":
            raise SettingsError(f"{text}; check the benchmark, or set others: leave_out")
        return f"{text}. They are left out."


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _key(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class PredictionChannel(Channel):
    """Looks up answers.

    Attributes:
        rows: the answers by question id or text, and repeat.
        repeats: whether the file has several repeats. If not, every repeat gets the same answer.
    """

    rows: sqlite3.Connection = field(kw_only=True)
    repeats: bool = False

    def body(self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> Any:
        """Return the question's id, its text, and the repeat."""
        fields = parse_fields(str(messages[0]["content"]))
        return fields["id"], _squeeze(fields["question"]), parameters.get("repeat", 0) if self.repeats else 0

    async def post(self, body: tuple[str, str, int]) -> Response:
        """Return the row. Raises CallError of kind `missing` if there is no row, or `failed` if the row records a
        failure."""
        *names, repeat = body
        row = next(filter(None, (self.rows.execute(
            "SELECT place, failure, content FROM rows WHERE key = ? AND repeat = ? ORDER BY by_id DESC",
            (_key(name), repeat)).fetchone() for name in names)), None)
        if row is None:
            raise CallError(f"{self.url} has no answer to this question", "missing")
        place, failure, content = row
        if failure:
            raise CallError(f"{place}: {failure}", "failed")
        return Response(200, {}, content.encode())

    async def aclose(self) -> None:
        """Remove the copy."""
        self.rows.close()
