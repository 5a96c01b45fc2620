"""A finished run, as whatever reads one has it: its summary checked, the rest read when it is first asked for. Also
found here: a question and cells of a run by what a person writes of them."""
from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, Field, NonNegativeInt, ValidationError

from ragbed.documents.errors import RunError
from ragbed.experiments.cells import FACTORS, PART, Cell, called, labels
from ragbed.experiments.metrics import Scoring
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.runs.manifest import Made, config_of, manifest_of
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.statistics import Clusters, cluster_questions

_NEAREST = 3
_AGAIN = "give the same `ragbed run` command to write it again"


_Figure = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]  # of which sums and axes can be made


class _Estimate(BaseModel):
    mean: _Figure | None
    low: _Figure | None
    high: _Figure | None
    n: NonNegativeInt


class _Usage(BaseModel):
    calls: _Figure | None
    prompt_tokens: _Figure | None
    completion_tokens: _Figure | None
    price: _Figure | None


class _Row(BaseModel):
    id: str
    scoring: Scoring
    judge: str | None
    n: NonNegativeInt
    outcomes: dict[str, NonNegativeInt]
    metrics: dict[str, _Estimate]
    usage: _Usage


class _Summary(BaseModel):
    """What a summary is sure to have."""

    name: str
    seed: NonNegativeInt
    columns: list[str] = Field(min_length=1)
    cells: list[_Row] = Field(min_length=1)
    views: list[dict[str, Any]]
    published: list[str]
    correctness_metrics: list[str]
    notes: list[str]
    repeated: list[Any]
    results: str


class _Factors(BaseModel):
    cells: list[Cell]


@dataclass(frozen=True)
class Finished:
    """A finished run, whose folder is open, with the summary that `summarise` made."""

    folder: RunFolder
    summary: Mapping[str, Any]

    @classmethod
    def of(cls, folder: RunFolder) -> Finished:
        """Return the run of an open folder; RunError where it has not finished, or its summary is damaged, or another
        version of ragbed made it."""
        summary = folder.summary()
        try:
            _Summary.model_validate(summary)
            _Factors.model_validate(summary)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
            what = f"without {at}" if first["type"] == "missing" else f"{at}: {first['msg']}"
            raise RunError(f"{folder.path / 'summary.json'}: damaged, {what}; {_AGAIN}") from error
        run = cls(folder, summary)
        for row, cell in zip(run.rows, run.cells, strict=True):
            if row["id"] != cell.id:
                raise RunError(f"{folder.path / 'summary.json'}: damaged, {row['id']} is not the id of a cell with "
                               f"these factors; {_AGAIN}")
        return run

    def refuse_race(self) -> None:
        """Raise RunError where it is a race: no test of a fixed number of questions holds for it."""
        if (self.summary.get("comparisons") or {}).get("said"):
            raise RunError(f"{self.path} is a race, whose number of questions its answers decided: tests of a fixed "
                           "number do not hold for it. Its report has its own verdicts; run it without --race to "
                           "compare it")

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
        return cluster_questions(self.questions.values())

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
            content = yaml.safe_load(config_of(self.path) or "")
        except (yaml.YAMLError, RecursionError):
            content = None
        return content if isinstance(content, dict) else {}


@contextmanager
def open_finished(path: Path) -> Iterator[Finished]:
    """Yield the finished run of a folder, closed in the end; RunError where there is none, or as `Finished.of`."""
    with closing(RunFolder.existing(path)) as folder:
        yield Finished.of(folder)


@contextmanager
def no_collections() -> Iterator[None]:
    """Read what is kept to the end: walking it again and again in search of cycles takes a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def start_up_kept() -> Iterator[None]:
    """Leave what exists by now (libraries, the benchmark) out of garbage collections, and walk the rest seldom: it took
    a sixth of a question's processor time, and a third in the middle of a million."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # as the command line has it from its start
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def question_named(ids: Sequence[str], name: str) -> int:
    """Return the place, from 0, of the question with this id, else number (1 or `#1`), else unique beginning of an id;
    RunError where there is none, or several begin so; it names the nearest."""
    if name in ids:
        return ids.index(name)
    if numbered := re.fullmatch(r"(#?)(\d{1,9})", name):
        if 1 <= int(numbered[2]) <= len(ids):
            return int(numbered[2]) - 1
        if numbered[1]:
            raise RunError(f"no question {name}: the run has {len(ids)}, from 1 to {len(ids)}")
    found = [place for place, id in enumerate(ids) if name and id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise RunError(f"{len(found)} questions begin with {name!r}, such as {_listed([ids[one] for one in found])}; "
                       "give more of the id, or a number as in 1")
    near = get_close_matches(name, ids, _NEAREST, cutoff=0.3)
    such = f"the nearest: {_listed(near)}" if near else f"the first: {_listed(ids)}"
    raise RunError(f"no question {name!r} among the {len(ids)} of the run; {such}; or give a number, from 1 to "
                   f"{len(ids)}")


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NEAREST])


def cells_in(folder: RunFolder) -> Sequence[Mapping[str, Any]]:
    """Return the id and factors of each cell of a run, in order; RunError where summary or manifest is damaged."""
    return Finished.of(folder).rows if (folder.path / "summary.json").is_file() else manifest_of(folder.path).cells


def cells_named(cells: Sequence[Mapping[str, Any]], name: str | None) -> dict[str, str]:
    """Return what the cells that a name fits are called, by id, in the run's order; all without a name. Raises RunError
    where there is none."""
    known = dict(zip(labels(cells), cells, strict=True))
    found = known if name is None else fitting(known, name)
    if not found:
        raise no_cell(str(name), known)
    return {known[label]["id"]: label for label in found}


def fitting(known: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """Of cells by label, the labels of those that a name fits: a label or id, else parts of a label and values of
    factors, such as `direct · given`, all of which a cell has."""
    parts = {part.strip() for part in name.split(PART.strip())}
    return [label for label, row in known.items() if name in (label, row["id"])] or [
        label for label, row in known.items() if parts <= {*label.split(PART), *(
            called(row, [factor]) for factor in FACTORS if row.get(factor) is not None)}]


def no_cell(name: str, known: Iterable[str]) -> RunError:
    """Return that no cell of those labels has the name."""
    return RunError(f"no cell {name!r}; there are: {', '.join(known)}")
