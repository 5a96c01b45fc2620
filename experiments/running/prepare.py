"""Preparing a session of a run: whether its folder can take it, what it is made of, what of an earlier one stays."""
from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ragbed.documents.errors import RunError, UserError
from ragbed.documents.shards import Shard
from ragbed.experiments.running.budget import check_prices
from ragbed.experiments.running.checks import check_divisible
from ragbed.experiments.running.identity import identities, manifest_for, what_changed
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.runs.manifest import config_of, known_models
from ragbed.experiments.runs.store import RunFolder, hold, remove
from ragbed.guests import entries
from ragbed.retrieval.index import Index

if TYPE_CHECKING:
    from ragbed.experiments.running.cassette import Replay
    from ragbed.experiments.settings import RunSettings

# In the order of their removal: a kill in between leaves settings without records, never records without settings.
OWN_FILES = ("summary.json", "report.html", "times.jsonl", "records.sqlite-wal", "records.sqlite-shm",
              "records.sqlite", "manifest.json", "config.yaml")


@dataclass(slots=True)
class Session:
    """A session of a run that can begin: one process that works on its folder, from start to end.

    The folder is held, and what an earlier run left there is untouched until `begin`.
    """

    plan: Plan
    manifest: dict[str, Any]  # what the run is made of, as it is written
    lock: FileLock
    folder: RunFolder | None = None  # None until `begin` where the run is to begin anew: the earlier one may be damaged
    continues: bool = False  # whether the folder holds calls or records of this run
    replay: Replay | None = None  # the cassette that its calls are from; None where it makes them

    def done(self) -> set[tuple[str, str]]:
        """Return the (cell, question) pairs whose records stay."""
        return self.folder.done() if self.folder and self.continues else set()

    def check_whole(self) -> None:
        """Refuse to replay what was stopped: each question that was not asked yet would have the record of a miss;
        RunError where a run was begun here, and some of its records are missing."""
        finished = (self.plan.folder / "summary.json").is_file()
        if self.continues and not (finished if self.plan.schedule else len(self.done()) >= self.plan.expected):
            raise RunError(f"{self.plan.folder}: the run has not finished, so its journal cannot answer all "
                           "of it; give the same command without --journal replay to continue it")

    def kept(self) -> Mapping[str, str] | None:
        """Return the contents of what was searched, by name, where all that was found is kept; else None."""
        if self.replay is not None:
            return self.replay.pins(self.plan)
        return self.folder.pins() if self.folder else None

    def begin(self, searched: Mapping[str, str]) -> RunFolder:
        """Remove what does not belong to the run, and write what it is; whatever is `searched` has a hash of its
        content, by what it is called. Raises RunError where what was made came from an index with another content, or
        the folder cannot be written."""
        if self.folder is None:
            for name in OWN_FILES:  # its index and anything else stays
                remove(self.plan.folder / name)
            self.folder = RunFolder(self.plan.folder, self.lock)
        if self.replay is not None and self.folder.is_empty():
            with self.folder.database.transaction():  # all that the cassette holds, or nothing
                self.replay.cassette.read_into(self.folder.database)
                self.folder.set_origin(self.replay.cassette.hash)
        for name, content in searched.items():
            self.folder.pin(name, content)
        if not self.continues:
            self.folder.clear_records()
        self.folder.begin(self.plan.settings.resolved(), self.manifest, self.plan.asked)
        return self.folder

    def close(self) -> None:
        """Let go of the folder."""
        if self.folder is None:
            self.lock.release()
        else:
            self.folder.close()


def prepare_run(plan: Plan, fresh: bool = False, replay: Replay | None = None) -> Session:
    """Prepare a new run, or one with equal settings and questions that can be continued; where it is `fresh`, `begin`
    removes what an earlier run left. Its calls may be from a cassette, to replay. Raises RunError where the folder
    holds another run, or one of another origin, or another process works on it; BenchmarkError where two questions have
    one id, or they are not those that were recorded; ModelError where a model is unknown; and SettingsError where two
    models are one."""
    folder = plan.folder
    if any((folder.parent / name).is_file() for name in entries("opener")):
        raise RunError(f"{folder} holds what a server answered; give this run another place, as in --set out=runs")
    known = {} if fresh else known_models(folder)
    if replay is not None:
        known |= replay.about.models
    manifest = manifest_for(plan, known)
    if replay is not None:
        replay.check(plan)
    with contextlib.ExitStack() as opened:
        lock = hold(folder)
        opened.callback(lock.release)
        session = Session(plan, manifest, lock, replay=replay)
        if not fresh:
            session.folder = RunFolder(folder, lock)
            opened.callback(session.folder.close)
            session.continues = continues(session.folder, plan.settings.resolved(), manifest)
            if session.continues and replay is not None and session.folder.origin() != replay.cassette.hash:
                raise RunError(f"{folder} holds a run that is not from {replay.path}; give this one another name, as "
                               "in --name replayed, or use --fresh to begin anew")  # else replies of two origins
        opened.pop_all()
    return session


def continues(folder: RunFolder, config: str, manifest: Mapping[str, Any]) -> bool:
    """Say whether the folder holds calls or records of the run of these settings; RunError where they are of another.
    Settings under which nothing was made yet may still be mended."""
    known = config_of(folder.path)
    if known is None or folder.is_empty():
        return False
    if apart := what_changed(folder.path, known, config, manifest):
        raise RunError(f"{folder.path} holds a run with {apart}; give this one another name, or use --fresh to begin "
                       "anew")
    return True


def check_all(runs: Sequence[RunSettings], fresh: bool = False, replay: bool = False,
              shard: Shard | None = None) -> None:
    """Make sure, before the first call of any, that each of several runs, or of their shards, could begin; else
    RunError names the run."""
    for settings in runs:
        try:
            _check(replace(Plan.of(settings), shard=shard), fresh, replay)
        except UserError as error:
            raise RunError(f"{settings.name}: {error}; so none of the runs was begun") from error


def _check(plan: Plan, fresh: bool, replay: bool) -> None:
    check_divisible(plan)
    if not replay:
        check_prices(plan.settings, plan.models)
    searched = {str(cell.finder) for cell in plan.cells if cell.format is not None and not replay}
    for folder in {plan.finders[name].retriever.index for name in searched} - {None}:
        Index.open(str(folder))
    if fresh or not (plan.folder / "records.sqlite").exists():
        identities(plan, {})
    else:
        prepare_run(plan).close()
