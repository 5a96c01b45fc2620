"""A finished run, as whatever reads one has it: its summary checked, the rest read when it is first asked for.

Python's search for garbage, left out where much is read and all of it kept.
"""
from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, Field, ValidationError

from documents.errors import RunError
from experiments.cells import Cell, labels
from experiments.metrics import Scoring
from experiments.question import Question, Scheme
from experiments.runs.manifest import Made, manifest_of
from experiments.runs.store import RunFolder
from experiments.statistics import Clusters, clusters

_AGAIN = "give the same `ragbed run` command to write it again"


class _Estimate(BaseModel):
    mean: float | None
    low: float | None
    high: float | None
    n: int


class _Row(BaseModel):
    id: str
    scoring: Scoring
    judge: str | None
    n: int
    outcomes: dict[str, int]
    metrics: dict[str, _Estimate]
    usage: dict[str, float | None]


class _Summary(BaseModel):
    """What a summary is sure to have."""

    name: str
    seed: int
    columns: list[str] = Field(min_length=1)
    cells: list[_Row] = Field(min_length=1)
    results: str


class _Factors(BaseModel):
    cells: list[Cell]


@dataclass(frozen=True)
class Finished:
    """A finished run, whose folder is open.

    Attributes:
        summary: as `summarise` made it.
    """

    folder: RunFolder
    summary: Mapping[str, Any]

    @classmethod
    def of(cls, folder: RunFolder) -> Finished:
        """Return the run of an open folder.

        Raises:
            RunError: it has not finished, or its summary is damaged, or another version of ragbed made it.
        """
        summary = folder.summary()
        try:
            _Summary.model_validate(summary)
            _Factors.model_validate(summary)
        except ValidationError as error:
            raise _unusable(folder.path, error) from error
        run = cls(folder, summary)
        for row, cell in zip(run.rows, run.cells, strict=True):
            if row["id"] != cell.id:
                raise RunError(f"{folder.path / 'summary.json'}: damaged, {row['id']} is not the id of a cell with "
                               f"these factors; {_AGAIN}")
        return run

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def name(self) -> str:
        return str(self.summary["name"])

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The cells as the summary has them, with their figures."""
        return list(self.summary["cells"])

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(map(Cell.of, self.rows))

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """What the cells are called, by id, in the run's order."""
        return dict(zip((row["id"] for row in self.rows), labels(self.rows), strict=True))

    @cached_property
    def questions(self) -> Mapping[str, Question]:
        """By id, in order, without their chunks."""
        return self.folder.questions()

    @cached_property
    def grouped(self) -> Clusters:
        """The clusters of the questions."""
        return clusters(self.questions.values())

    @cached_property
    def made(self) -> Made:
        """What the run was made of; RunError where its manifest cannot be read."""
        return manifest_of(self.path)

    @property
    def scheme(self) -> Scheme:
        """What the benchmark measures, as this run asks its questions."""
        return self.made.scheme

    @property
    def scoring(self) -> Scoring:
        return self.made.scoring

    @property
    def judge(self) -> str:
        """Who graded the answers, where any are graded."""
        return self.made.judge

    @property
    def seed(self) -> int:
        """What intervals are drawn by."""
        return int(self.summary["seed"])

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The resolved settings as they are written, for display; empty where they are damaged."""
        try:
            content = yaml.safe_load(self.folder.config() or "")
        except yaml.YAMLError:
            content = None
        return content if isinstance(content, dict) else {}


@contextmanager
def open_finished(path: Path) -> Iterator[Finished]:
    """Yield the finished run of a folder, which is closed in the end.

    Raises:
        RunError: there is no run, or as `Finished.of` says.
    """
    folder = RunFolder.existing(path)
    try:
        yield Finished.of(folder)
    finally:
        folder.close()


def _unusable(path: Path, error: ValidationError) -> RunError:
    first = error.errors(include_url=False)[0]
    at = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    what = f"without {at}" if first["type"] == "missing" else f"{at}: {first['msg']}"
    return RunError(f"{path / 'summary.json'}: damaged, {what}; {_AGAIN}")


@contextmanager
def no_collections() -> Iterator[None]:
    """Yield what is read is kept to the end; walking it again and again in search of cycles takes a quarter of the
    time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
