"""The two sides of a gate: BASE, the main branch's run, and HEAD, the run of this branch."""
from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragbed.agents.cassette import is_cassette
from ragbed.documents.types import digest
from ragbed.experiments.analysis.causes import find_causes
from ragbed.experiments.analysis.replicates import ReplicateGroup, group_replicates, label_groups, split_replicates
from ragbed.experiments.guests.exports.cassettes import export_cassette
from ragbed.experiments.question import Question
from ragbed.experiments.report.page import report_run
from ragbed.experiments.running.cell_matrix import list_strategies
from ragbed.experiments.running.hooks import Schedule
from ragbed.experiments.running.jobs import group_results
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.replay import Replay, check_named, list_misses, portable_settings
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.experiments.runs.finished import Finished, open_finished
from ragbed.experiments.runs.run_manifest import Made
from ragbed.experiments.runs.store import RunFolder, lock_run
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.file import check_settings
from ragbed.guests import locate_run
from ragbed.strategies.prompting import prompts_hash

_SILENT = RunCallbacks(lambda *stage: None, lambda begun: None, lambda record: None)


@dataclass(frozen=True)
class Side:
    """A finished run as the gate compares it.

    Attributes:
        groups: cells by label; each combines all repeats and seeds. Their answers lack the questions of `missing`.
        members: ids of the cells of each group.
        missing: for each label, the questions for which a replay lacked a call or search.
        failures: for each label, the kinds of failure with their number.
        causes: name of the cause of each answer, by cell id and question.
        calls: keys of all calls in the journal.
    """

    path: Path
    name: str
    groups: Mapping[str, ReplicateGroup]
    members: Mapping[str, list[str]]
    missing: Mapping[str, set[str]]
    failures: Mapping[str, Counter[str]]
    causes: Mapping[str, Mapping[str, str]]
    questions: Mapping[str, Question]
    calls: frozenset[str]
    made: Made
    columns: tuple[str, ...]
    metrics: tuple[str, ...]
    seed: int


def read_side(run: Finished) -> Side:
    """Read a finished run."""
    together = [[row["id"] for row in rows] for rows in split_replicates(run.rows)]
    missed = {(result.cell, result.question) for result, _ in list_misses(run.folder)}
    missing = [{question for cell, question in missed if cell in ids} for ids in together]
    lacking = {cell: names for ids, names in zip(together, missing, strict=True) for cell in ids}
    failed = Counter((result.cell, f"{result.outcome}, {result.failure.kind}") for result in run.folder.results()
                     if result.failure is not None and (result.cell, result.question) not in missed)
    groups = group_replicates(run.rows, {
        cell: {name: row for name, row in own.items() if name not in lacking[cell]}
        for cell, own in group_results(run.folder.results()).items()})
    labels = label_groups(groups)
    return Side(
        run.path, run.name, dict(zip(labels, groups, strict=True)), dict(zip(labels, together, strict=True)),
        dict(zip(labels, missing, strict=True)),
        {label: Counter({kind: count for (cell, kind), count in failed.items() if cell in ids})
         for label, ids in zip(labels, together, strict=True)},
        find_causes(run.cells, run.folder.results(), run.questions, run.scheme.correctness_metrics, run.scoring),
        run.questions, frozenset(key for (key,) in run.folder.database.rows("SELECT key FROM calls")), run.made,
        tuple(run.summary["columns"]), tuple(dict.fromkeys(name for row in run.rows for name in row["metrics"])),
        run.seed)


class _RecordedCalls(Replay):
    """The calls of BASE. Its questions may have changed since: what was not recorded is found missing."""

    def check(self, plan: Plan) -> None:
        """Accept other questions."""


@contextmanager
def open_base(path: Path, head: RunSettings | None) -> Iterator[tuple[Side, Replay]]:
    """Read BASE, a run's folder or a cassette, which is replayed. Also yield its calls.

    Raises:
        RunError: there is no finished run or cassette, or the run was a race.
        SettingsError: the cassette would execute code that the settings `head` do not name.
    """
    with TemporaryDirectory(prefix="ragbed-gate-") as folder:
        if is_cassette(path):
            yield _replay(path, Path(folder), head), _calls_of(path)
            return
        with open_finished(locate_run(path)) as base:
            base.refuse_race()
            file, _ = export_cassette(base, Path(folder) / "base.cassette.jsonl.gz")
            side = read_side(base)
        yield side, _calls_of(file)


def _calls_of(path: Path) -> Replay:
    opened = Replay.open(path)
    return _RecordedCalls(opened.cassette, opened.about)


def _replay(path: Path, out: Path, head: RunSettings | None) -> Side:
    """Replay a cassette into a folder. Code runs only if the user's own settings name it."""
    calls = _calls_of(path)
    content = {**portable_settings(calls.about.settings), "out": str(out)}
    trusted = [file for family in (list_strategies(head) if head else {}).values()
               for one in family.values() for file in one.files]
    check_named(check_settings(content, str(path), checked=True), calls, trusted)
    return _carry_out(check_settings(content, str(path)), calls, None, _SILENT, "replay")


def read_head(path: Path) -> Side:
    """Read HEAD from a run's folder or a cassette."""
    with TemporaryDirectory(prefix="ragbed-gate-") as folder:
        if is_cassette(path):
            return _replay(path, Path(folder), None)
        with open_finished(locate_run(path)) as head:
            head.refuse_race()
            return read_side(head)


def ask_head(settings: RunSettings, calls: Replay, race: Schedule,
             callbacks: RunCallbacks, replay_only: bool) -> Side:
    """Run HEAD in a folder of its own. Calls that BASE made are replayed; others are made unless `replay_only`."""
    plan = Plan.of(settings)
    made_from = digest(calls.cassette.hash, settings.to_yaml(), plan.questions_hash, prompts_hash(), str(replay_only),
                       *sorted(map(str, plan.sources.items())))
    settings = settings.model_copy(update={"name": f"{settings.name[:60]}-gate-{made_from[:8]}"})
    if replay_only:
        return _carry_out(settings, calls, race, callbacks, "replay")
    with closing(RunFolder(settings.folder, lock_run(settings.folder))) as folder:
        if folder.is_empty():
            with folder.database.transaction():
                calls.cassette.read_into(folder.database)
    return _carry_out(settings, None, race, callbacks, "record")


def _carry_out(settings: RunSettings, replay: Replay | None, race: Schedule | None,
               callbacks: RunCallbacks, mode: Any) -> Side:
    made = asyncio.run(run(settings, callbacks, mode, again=True, fresh=mode == "replay", replay=replay,
                           scheduler=None if race is None else lambda plan: race))
    with closing(made) as folder:
        finished = Finished.of(folder)
        if race is not None:
            report_run(finished)
        return read_side(finished)
