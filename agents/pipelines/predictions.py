"""Answers that another tool has written into a file, as a pipeline: each row stands in the place of a call."""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ragbed.agents.pipelines.base import Channel, PipelineSettings, fields_of
from ragbed.agents.pipelines.formats import Prediction, PredictionFormat, read_predictions
from ragbed.documents.errors import CallError, SettingsError
from ragbed.documents.http import Response
from ragbed.documents.paths import expand_path
from ragbed.retrieval.storage.files import sha256_of

if TYPE_CHECKING:
    from ragbed.agents.settings import CallLimits


class Predictions(PipelineSettings):
    """The rows of a file. A row answers the question that has its id, or else its text, space aside.

    Attributes:
        run: which of the file's runs it is, where it has several.
        others: what becomes of rows that answer no question of the run: the run is refused, or they are left out and
            counted in its notes.
    """

    recorded: ClassVar[bool] = True

    kind: Literal["predictions"] = "predictions"
    format: PredictionFormat = "jsonl"
    path: Path
    run: str | None = None
    others: Literal["refuse", "leave_out"] = "refuse"

    @property
    def sources(self) -> Sequence[str]:
        """Return the file's hash."""
        try:
            return [sha256_of(expand_path(self.path))]
        except OSError as error:
            raise SettingsError(f"{self.path}: cannot be read: {error.strerror}") from error

    def open(self, limits: CallLimits) -> PredictionChannel:
        """Read the file; raises as `rows`."""
        rows = self.rows()
        found = {(_spaced(row.question), row.repeat): row for row in rows if row.question} | {
            (row.id, row.repeat): row for row in rows if row.id is not None}
        return PredictionChannel(self, str(self.path), rows=found, repeats=any(row.repeat for row in rows))

    def rows(self) -> list[Prediction]:
        """Return the run's rows. Raises SettingsError where there is none, or the file has several runs and none is
        named; else as `read_predictions`."""
        every = list(read_predictions(self.format, self.path))
        rows = [row for row in every if self.run in (None, row.run)]
        runs = {row.run: None for row in every}
        if not rows or (self.run is None and len(runs) > 1):
            raise SettingsError(f"{self.path} has the runs {', '.join(runs)}; name one of them as `run`" if every else
                                f"{self.path}: no answer in it")
        return rows

    def check(self, questions: Mapping[str, str], repeats: int) -> str | None:
        """Return what to note of rows that are left out. Raises SettingsError where such rows are refused, two rows
        answer one question, or a row has the id of one and the text of another. A replay needs no file."""
        if not expand_path(self.path).is_file():
            return None
        rows, by_text = self.rows(), {_spaced(text): id for id, text in questions.items()}
        answered: dict[tuple[str, int], str] = {}
        left: list[Prediction] = []
        for row in rows:
            text = _spaced(row.question)
            id = row.id if row.id in questions else by_text.get(text)
            if id is None or row.repeat >= repeats:
                left.append(row)
            elif text in by_text and text != _spaced(questions[id]):
                raise SettingsError(f"{row.place}: it has the id of the question {id} and the text of the question "
                                    f"{by_text[text]}; leave one of the two out")
            elif (before := answered.setdefault((id, row.repeat), row.place)) != row.place:
                raise SettingsError(f"{row.place}: it answers the question {id}, as {before} does; keep one")
        if not left:
            return None
        said = (f"{len(left)} of the {len(rows)} answers in {self.path.name} are to no question of this run, such as "
                f"that of {left[0].place}, {left[0].id or left[0].question[:80]!r}")
        if self.others == "refuse":
            raise SettingsError(f"{said}; check the benchmark, or set others: leave_out")
        return f"{said}. They are left out."


def _spaced(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class PredictionChannel(Channel):
    """Looks answers up."""

    rows: Mapping[tuple[str, int], Prediction] = field(default_factory=dict)  # by id or text, and repeat
    repeats: bool = False  # else each repeat has the same answer

    def body(self, messages: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]) -> Any:
        """Return the question's id, its text, and the repeat."""
        asked = fields_of(str(messages[0]["content"]))
        return asked["id"], _spaced(asked["question"]), parameters.get("repeat", 0) if self.repeats else 0

    async def post(self, body: tuple[str, str, int]) -> Response:
        """Return the row; CallError, `missing`, where there is none, and `failed` where it says that there is none."""
        id, text, repeat = body
        row = self.rows.get((id, repeat)) or self.rows.get((text, repeat))
        if row is None:
            raise CallError(f"{self.url} has no answer to it", "missing")
        if row.failure:
            raise CallError(f"{row.place}: {row.failure}", "failed")
        return Response(200, {}, json.dumps(dict(row.came)).encode())
