"""Read a run, finished or with the answers it has so far, and find questions and cells by a name that a user types."""
from __future__ import annotations

import contextlib
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
from ragbed.documents.json import loads
from ragbed.experiments.cells import FACTORS, SEPARATOR, Cell, describe_factors, label_rows
from ragbed.experiments.metrics import Metric, Scoring, declare_metrics
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.runs.run_manifest import Made, parse_config, read_config, read_manifest
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.statistics import Clusters, cluster_questions
from ragbed.guests import loaded

_NEAREST = 3
_AGAIN = "rerun the `ragbed run` command to write it again"


_Figure = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]  # bounded, so that sums stay finite


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
    own_metrics: list[Metric] = []


class _Factors(BaseModel):
    cells: list[Cell]


@dataclass(frozen=True)
class Finished:
    """A run with its open folder and its summary. Unless it is `complete`, the summary covers the answers so far."""

    folder: RunFolder
    summary: Mapping[str, Any]

    @classmethod
    def of(cls, folder: RunFolder, partial: bool = False) -> Finished:
        """Return the run of an open folder. With `partial`, the run may be unfinished. Raises RunError if the run is
        unfinished, damaged, altered or of another version; alterations pass if the folder is not `checked`."""
        unfinished = partial and not (folder.path / "summary.json").is_file()
        found = [make(folder) for make in loaded("partial").values()] if unfinished else []
        summary = next(filter(None, found), None) or folder.summary()
        try:
            declare_metrics(_Summary.model_validate(summary).own_metrics)
            _Factors.model_validate(summary)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            at = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
            what = f"without {at}" if first["type"] == "missing" else f"{at}: {first['msg']}"
            raise RunError(f"{folder.path / 'summary.json'}: damaged, {what}; {_AGAIN}") from error
        if folder.checked and not found and (altered := folder.alterations()):
            raise RunError(f"{folder.path}: {'; '.join(altered.values())}; `ragbed verify` shows what differs; restore "
                           "it, or run it again, with --fresh")
        run = cls(folder, summary)
        for row, cell in zip(run.rows, run.cells, strict=True):
            if row["id"] != cell.id:
                raise RunError(f"{folder.path / 'summary.json'}: damaged, {row['id']} is not the id of a cell with "
                               f"these factors; {_AGAIN}")
        return run

    def refuse_race(self) -> None:
        """Raise RunError if the run was a race, because tests for a fixed number of questions are not valid for it."""
        if (self.summary.get("comparisons") or {}).get("said"):
            raise RunError(f"{self.path} used --race, so its answers decided how many questions were asked, and the "
                           "usual tests are not valid; see the verdicts in its report, or run it without --race")

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def name(self) -> str:
        return str(self.summary["name"])

    @property
    def progress(self) -> Mapping[str, Any]:
        """Return as JSON whether the run is `complete`, and the `progress` of one that is not: answers by cell."""
        return {"complete": True} | {name: self.summary[name] for name in ("complete", "progress")
                                     if name in self.summary}

    @property
    def unfinished(self) -> Sequence[str]:
        """Return sentences on how much of the run is there; none if it is complete."""
        return self.summary["progress"]["said"] if "progress" in self.summary else ()

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the cells as in the summary, with their figures."""
        return list(self.summary["cells"])

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(map(Cell.of, self.rows))

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """Return the labels of the cells by id, in the run's order."""
        return dict(zip((row["id"] for row in self.rows), label_rows(self.rows), strict=True))

    @cached_property
    def questions(self) -> Mapping[str, Question]:
        """Return the questions by id, in order, without their chunks."""
        return self.folder.questions()

    @cached_property
    def grouped(self) -> Clusters:
        """Return the clusters of the questions."""
        return cluster_questions(self.questions.values(), self.scheme.unit)

    @cached_property
    def made(self) -> Made:
        """Return the manifest. Raises RunError if it cannot be read."""
        return read_manifest(self.path)

    @property
    def scheme(self) -> Scheme:
        """Return the scheme: what this run measures."""
        return self.made.scheme

    @property
    def scoring(self) -> Scoring:
        return self.made.scoring

    @property
    def judge(self) -> str:
        """Return the name of the judge, if answers were graded."""
        return self.made.judge

    @property
    def seed(self) -> int:
        """Return the seed of the intervals."""
        return int(self.summary["seed"])

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """Return the resolved settings as stored; empty if they are damaged."""
        try:
            content = parse_config(read_config(self.path) or "")
        except (yaml.YAMLError, RecursionError):
            content = None
        return content if isinstance(content, dict) else {}


@contextmanager
def open_finished(path: Path, partial: bool = False, checked: bool = True) -> Iterator[Finished]:
    """Yield the run of a folder and close it at the end. For `checked` see `RunFolder`. Raises RunError if there is
    none, and the same errors as `Finished.of`."""
    with closing(RunFolder.existing(path)) as folder:
        folder.checked = checked
        yield Finished.of(folder, partial)


@contextmanager
def pause_collection() -> Iterator[None]:
    """Turn off garbage collection while reading data that stays in memory. It would take a quarter of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def freeze_startup_objects() -> Iterator[None]:
    """Exclude existing objects (libraries, the benchmark) from garbage collection and collect the rest less often.

    Otherwise collection takes a sixth of a question's processor time, and a third in long runs of a million records.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # the command line uses the same thresholds
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def find_question(ids: Sequence[str], name: str) -> int:
    """Return the position, from 0, of the question with this id, number (1 or `#1`), or unique id prefix. Raises
    RunError with the nearest ids if no question, or several, match."""
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
        raise RunError(f"{len(found)} ids begin with {name!r}, such as {_quote_names([ids[one] for one in found])}; "
                       "give more of the id, or a number such as 1")
    near = get_close_matches(name, ids, _NEAREST, cutoff=0.3)
    such = f"the nearest: {_quote_names(near)}" if near else f"the first: {_quote_names(ids)}"
    raise RunError(f"no question {name!r} among the {len(ids)} of the run; {such}; or give a number, from 1 to "
                   f"{len(ids)}")


def _quote_names(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_NEAREST])


def cells_in(folder: RunFolder) -> Sequence[Mapping[str, Any]]:
    """Return the id and factors of each cell of a run, in order. Raises RunError if the summary or manifest is damaged.
    """
    return Finished.of(folder).rows if (folder.path / "summary.json").is_file() else read_manifest(folder.path).cells


def find_cells(cells: Sequence[Mapping[str, Any]], name: str | None) -> dict[str, str]:
    """Return the labels of the cells that match a name, by id, in the run's order; all cells if no name is given.
    Raises RunError if no cell matches."""
    known = dict(zip(label_rows(cells), cells, strict=True))
    found = known if name is None else match_cells(known, name)
    if not found:
        raise cell_not_found(str(name), known)
    return {known[label]["id"]: label for label in found}


def match_cells(known: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """Return the labels of the cells that match a name. A name is a label, an id, or parts joined by ` · `, as in
    `direct · provided`. Each is a part of the label or a factor's value."""
    parts = {part.strip() for part in name.split(SEPARATOR.strip())}
    return [label for label, row in known.items() if name in (label, row["id"])] or [
        label for label, row in known.items() if parts <= {*label.split(SEPARATOR), *(
            describe_factors(row, [factor]) for factor in FACTORS if row.get(factor) is not None)}]


def cell_not_found(name: str, known: Iterable[str]) -> RunError:
    """Return the error for a name that matches no cell. `known` are the labels of the cells."""
    return RunError(f"no cell {name!r}; choose one of: {', '.join(known)}")


TRIAL = "trial.json"


def read_trial(run: Path, judge: str | None) -> tuple[list[str], list[Any]]:
    """Return a sentence on the trial of the run's judge, and the trial's views as JSON. If a model is the judge and was
    not tried, the sentence says so."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # there is no such file, or it is damaged
        found = loads((run / TRIAL).read_text(encoding="utf-8"))
        if found["judge"] == judge:
            return [found["said"]], found["views"]
    return [] if judge in (None, "lexical") else [
        "The judge was not tried on answers with known grades; `ragbed judge RUN --trial` does that."], []
