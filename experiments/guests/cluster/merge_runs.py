"""Merge the shards of a run: collect their records, calls and searches in one folder, and compute the summary.

The benchmark's files, models and indexes are not needed.
"""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragbed.documents.errors import RunError
from ragbed.experiments.cells import Cell
from ragbed.experiments.guests.cluster.merge_indexes import find_gap
from ragbed.experiments.running.fingerprint import describe_changes
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.preflight import OWN_FILES, can_continue
from ragbed.experiments.running.summary import summarise
from ragbed.experiments.runs.manifest import Made, read_config, read_manifest
from ragbed.experiments.runs.store import RunFolder, lock_run, read_run_file, remove


@dataclass(frozen=True, slots=True)
class _Part:
    """A shard of a run. Its folder is locked, so that no process writes to it."""

    folder: RunFolder
    made: Made
    config: str


@contextmanager
def merged_run(paths: Sequence[Path], out: Path, fresh: bool = False) -> Iterator[RunFolder]:
    """Merge all shards of a run into the folder `out` and yield the finished run, which is closed at the end.

    The summary is byte for byte that of an undivided run.

    Args:
        fresh: remove an earlier run in `out`.

    Raises:
        RunError: a shard is missing, in use, incomplete, from another run, or searched other content.
    """
    with ExitStack() as opened:
        parts = [_open(path, opened) for path in paths]
        if problem := find_gap({part.folder.path: one.part if (one := part.made.shard) else None for part in parts}):
            raise RunError(f"the run cannot be merged: {problem}")
        first, about = parts[0], parts[0].made.shard
        assert about is not None
        for part in parts:
            _check(part, first)
        manifest: dict[str, Any] = json.loads(read_run_file(first.folder.path / "manifest.json"))
        del manifest["shard"]
        lock = lock_run(out)
        opened.callback(lock.release)
        for name in OWN_FILES if fresh else ():
            remove(out / name)
        folder = RunFolder(out, lock)
        opened.callback(folder.close)
        can_continue(folder, first.config, manifest)
        for name, content in first.folder.pins().items():
            folder.pin(name, content)
        folder.reopen()
        folder.begin(first.config, manifest, {})
        for part in parts:
            folder.database.copy_from(part.folder.database.path)
        if folder.stored_questions() != first.made.benchmark["stored"]:
            raise RunError("the shards lack questions of the run, because one is unfinished or damaged; rerun the "
                           "command of each shard")
        questions, cells = folder.questions(), map(Cell.of, first.made.cells)
        plan = replace(Plan.of_records(out, first.made.scheme, questions.values(), cells), notes=about.notes)
        folder.keep_records({(cell.id, question) for cell in plan.cells for question in questions})
        folder.finish(summarise(plan, folder, about.exemplars))
        yield folder


def _open(path: Path, opened: ExitStack) -> _Part:
    folder = RunFolder.existing(path)
    opened.callback(folder.close)
    opened.callback(lock_run(path).release)
    return _Part(folder, read_manifest(path), read_config(path) or "")


def _check(part: _Part, first: _Part) -> None:
    """Raise RunError if `part` belongs to another run than `first`, or is incomplete."""
    there, other = first.folder.path, part.folder.path
    anew = "rerun one of them with --fresh"
    if changes := describe_changes(there, first.config, part.config, part.made.model_dump(mode="json")):
        raise RunError(f"{other} belongs to a different run from {there}: {changes}; {anew}")
    if (part.folder.pins(), part.folder.origin()) != (first.folder.pins(), first.folder.origin()):
        raise RunError(f"{other} searched a different index or different chunks from {there}; {anew}")
    questions = part.folder.questions()
    wanted = {(str(cell["id"]), id) for cell in part.made.cells for id in questions}
    if missing := wanted - part.folder.done():
        raise RunError(f"{other} lacks {len(missing):,} of its {len(wanted):,} records; rerun its command")
