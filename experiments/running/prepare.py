"""Beginning a run: whether its folder can take it, and what of an earlier one stays.

What a run starts from, checked as far as it can be before anything is opened, asked or written.
"""
from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from sqlite3 import Connection
from typing import Any

from documents.errors import RunError, UserError
from experiments.question import Benchmark, Question
from experiments.running.budget import check_prices
from experiments.running.cassette import Replay
from experiments.running.checks import check_conditions
from experiments.running.exemplars import check_exemplars, read_exemplars
from experiments.runs.lock import hold
from experiments.runs.manifest import check_ids, identities, known_models, manifest_for, manifest_of, what_differs
from experiments.runs.store import RunFolder, remove
from experiments.settings import RunSettings
from experiments.settings.cells import Cell, cells_of
from experiments.settings.matrix import retrievers_of
from experiments.settings.strategies import exemplars_of
from retrieval.index import Index
from strategies.types import Exemplar

# In the order of their removal: a kill in between leaves settings without records, never records without settings.
_OWN_FILES = ("summary.json", "report.html", "records.sqlite-wal", "records.sqlite-shm", "records.sqlite",
              "manifest.json", "config.yaml")


@dataclass(slots=True)
class Beginning:
    """A run that can begin. Its folder is held, and what an earlier run left there is untouched until `begin`.

    Attributes:
        folder: None until `begin` where the run is to begin anew: the earlier one may be damaged.
        continues: whether the folder holds calls or records of this run.
        replay: the cassette that its calls are from; None where it makes them.
    """

    settings: RunSettings
    manifest: dict[str, Any]
    questions: tuple[Question, ...]
    lock: Connection
    folder: RunFolder | None = None
    continues: bool = False
    replay: Replay | None = None

    def done(self) -> set[tuple[str, str]]:
        """The (cell, question) pairs whose records stay."""
        return self.folder.done() if self.folder and self.continues else set()

    def check_whole(self, expected: int) -> None:
        """Refuse to replay what was stopped: each question that was not asked yet would have the record of a miss.

        Raises:
            RunError: a run was begun here, and some of the expected records are missing.
        """
        if self.continues and len(self.done()) < expected:
            raise RunError(f"{self.settings.folder}: the run has not finished, so its journal cannot answer all of it; "
                           "give the same command without --journal replay to continue it")

    def kept(self) -> Mapping[str, str] | None:
        """The contents of what was searched, by what it is called, where all that was found is kept; else None."""
        if self.replay is not None:
            return self.replay.pins(self.settings)
        return self.folder.pins() if self.folder and self.folder.marked("searches") else None

    def keeps_searches(self) -> None:
        """Note that whatever was found is kept by now."""
        if self.folder is not None:
            self.folder.mark("searches", "kept")
            self.folder.database.flush()

    def begin(self, searched: Mapping[str, str]) -> RunFolder:
        """Remove what does not belong to the run, and write what it is.

        Args:
            searched: a hash of the content of whatever is searched, by what it is called.

        Raises:
            RunError: what was made came from an index with another content, or the folder cannot be written.
        """
        if self.folder is None:
            remove_run(self.settings.folder)
            self.folder = RunFolder(self.settings.folder, self.lock)
        if self.folder.is_empty():
            self.keeps_searches()
            if self.replay is not None:
                self._take(self.replay, self.folder)
        for name, content in searched.items():
            self.folder.pin(name, content)
        if not self.continues:
            self.folder.clear_records()
        self.folder.begin(self.settings.resolved(), self.manifest, self.questions)
        return self.folder

    def _take(self, replay: Replay, folder: RunFolder) -> None:
        """Take all that a cassette holds into an empty folder, or nothing."""
        with folder.database.at_once():
            replay.cassette.read_into(folder.database)
            folder.mark("cassette", replay.cassette.hash)

    def close(self) -> None:
        """Let go of the folder."""
        (self.folder or self.lock).close()


def prepare_run(settings: RunSettings, benchmark: Benchmark, exemplars: tuple[Exemplar, ...] = (),
                fresh: bool = False, replay: Replay | None = None) -> Beginning:
    """What begins a new run, or one with equal settings and questions that can be continued.

    Args:
        fresh: what an earlier run left is of no interest, and `begin` removes it.
        replay: the cassette that its calls are from.

    Raises:
        RunError: the folder holds another run, or one of another origin, or another process works on it.
        BenchmarkError: two questions have one id, or they are not those that were recorded.
        ModelError: a model is unknown.
        SettingsError: two models are one.
    """
    check_ids(benchmark)
    known = {} if fresh else known_models(settings.folder)
    if replay is not None:
        known |= replay.about.models
    config, manifest = settings.resolved(), manifest_for(settings, benchmark, exemplars, known)
    if replay is not None:
        replay.check(settings, manifest["benchmark"]["hash"])
    with contextlib.ExitStack() as opened:
        lock = hold(settings.folder)
        opened.callback(lock.close)
        beginning = Beginning(settings, manifest, benchmark.questions, lock, replay=replay)
        if not fresh:
            beginning.folder = RunFolder(settings.folder, lock)
            opened.callback(beginning.folder.close)
            beginning.continues = _continues(beginning.folder, config, manifest)
            if beginning.continues and replay is not None:
                _check_origin(beginning.folder, replay)
        opened.pop_all()
    return beginning


def remove_run(path: Path) -> None:
    """Remove the files of a run; its index and anything else stays."""
    for name in _OWN_FILES:
        remove(path / name)


def _continues(folder: RunFolder, config: str, manifest: Mapping[str, Any]) -> bool:
    """Refuse to mix two runs. Settings under which nothing was made yet may still be mended."""
    known = folder.config()
    if known is None or folder.is_empty():
        return False
    if apart := what_differs(folder.path, known, config, manifest["benchmark"]["hash"]):
        raise RunError(_other_run(folder.path, apart))
    made = manifest_of(folder.path)
    if (made.prompts, made.judge_prompt) != (manifest["prompts"], manifest["judge_prompt"]):
        raise RunError(_other_run(folder.path, "other prompts: those of ragbed have changed since"))
    if made.exemplars != manifest["exemplars"]:
        raise RunError(_other_run(folder.path, "other worked examples: the file of exemplars has changed"))
    for name, content in manifest["sources"].items():
        if made.sources.get(name) != content:
            raise RunError(_other_run(folder.path, f"another strategy under the name {name}: what that file or package "
                                                   "holds has changed"))
    for name, identity in manifest["models"].items():
        if made.models.get(name) != identity:
            raise RunError(_other_run(folder.path, f"another model under the name {name}: its weights have changed"))
    return True


def _check_origin(folder: RunFolder, replay: Replay) -> None:
    """Replies of two origins would stand beside each other."""
    if folder.marked("cassette") != replay.cassette.hash:
        raise RunError(f"{folder.path} holds a run that is not from {replay.path}; give this one another name, as in "
                       "--name replayed, or use --fresh to begin anew")


def _other_run(path: Path, why: str) -> str:
    return f"{path} holds a run with {why}; give this one another name, or use --fresh to begin anew"


@dataclass(frozen=True, slots=True)
class Outset:
    """The questions, the cells in which they are asked, and the worked examples that every prompt shows."""

    benchmark: Benchmark
    cells: list[Cell]
    exemplars: tuple[Exemplar, ...]


def outset_of(settings: RunSettings) -> Outset:
    """What the run starts from.

    Raises:
        UserError: a file is missing or does not fit, or the benchmark has not what the settings want of it.
    """
    benchmark = settings.benchmark.load()
    benchmark = replace(benchmark, scheme=settings.scheme_of(benchmark.questions))
    cells = cells_of(settings, benchmark)
    check_conditions(settings, cells, benchmark)
    exemplars = read_exemplars(settings.exemplars)
    check_exemplars(exemplars, benchmark)
    for file, shown in exemplars_of(settings).items():
        check_exemplars(shown, benchmark, f"few-shot examples: {file}")
    check_ids(benchmark)
    return Outset(benchmark, cells, exemplars)


def check_all(runs: Sequence[RunSettings], fresh: bool = False, replay: bool = False) -> None:
    """Make sure that each of several runs could begin, before the first call of any.

    Raises:
        RunError: one could not; it names the run.
    """
    for settings in runs:
        try:
            _check(settings, fresh, replay)
        except UserError as error:
            raise RunError(f"{settings.name}: {error}; so none of the runs was begun") from error


def _check(settings: RunSettings, fresh: bool, replay: bool) -> None:
    outset = outset_of(settings)
    if not replay:
        check_prices(settings, [cell.model for cell in outset.cells])
    searched = {cell.retriever for cell in outset.cells if cell.format is not None}
    for folder in {one.index for one in retrievers_of(settings) if one.name in searched and not replay} - {None}:
        Index.open(str(folder))
    if fresh or not (settings.folder / "records.sqlite").exists():
        identities(settings, {})
    else:
        prepare_run(settings, outset.benchmark, outset.exemplars).close()
