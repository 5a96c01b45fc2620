"""Merging the shards of a run: their records, calls and searches in one folder, and the summary that the run has which
was never divided. What they are of, data, models and indexes, is not needed for it."""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragbed.documents.errors import RunError
from ragbed.documents.shards import lacking
from ragbed.experiments.cells import Cell
from ragbed.experiments.running.identity import what_changed
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.prepare import OWN_FILES, continues
from ragbed.experiments.running.summary import summarise
from ragbed.experiments.runs.manifest import Made, config_of, manifest_of
from ragbed.experiments.runs.store import RunFolder, content_of, hold, remove


@dataclass(frozen=True, slots=True)
class _Part:
    """A shard of a run, whose folder is held: nobody is working on it."""

    folder: RunFolder
    made: Made
    config: str


@contextmanager
def merged_run(paths: Sequence[Path], out: Path, fresh: bool = False) -> Iterator[RunFolder]:
    """Join all shards of a run, and yield the folder `out` of the finished run, closed in the end. Its summary has the
    bytes of the run that was never divided. Where it is `fresh`, what an earlier run left there is removed. Raises
    RunError where a folder is no shard, or is being worked on, one is missing, holds another run or lacks records, or
    what was searched differs."""
    with ExitStack() as opened:
        parts = [_opened(path, opened) for path in paths]
        if apart := lacking({part.folder.path: one.part if (one := part.made.shard) else None for part in parts}):
            raise RunError(f"the run cannot be merged: {apart}")
        first, about = parts[0], parts[0].made.shard
        assert about is not None
        for part in parts:
            _check(part, first)
        manifest: dict[str, Any] = json.loads(content_of(first.folder.path / "manifest.json"))
        del manifest["shard"]
        lock = hold(out)
        opened.callback(lock.release)
        for name in OWN_FILES if fresh else ():
            remove(out / name)
        folder = RunFolder(out, lock)
        opened.callback(folder.close)
        continues(folder, first.config, manifest)
        for name, content in first.folder.pins().items():
            folder.pin(name, content)
        folder.reopen()
        folder.begin(first.config, manifest, {})
        for part in parts:
            folder.database.take_from(part.folder.database.path)
        if folder.stored_questions() != first.made.benchmark["stored"]:
            raise RunError("the shards' questions are not those of the whole run: one of the folders was begun and not "
                           "carried out, or is damaged; give the command of each shard once more")
        questions, cells = folder.questions(), map(Cell.of, first.made.cells)
        plan = replace(Plan.of_records(out, first.made.scheme, questions.values(), cells), notes=about.notes)
        folder.keep_records({(cell.id, question) for cell in plan.cells for question in questions})
        folder.finish(summarise(plan, folder, about.exemplars))
        yield folder


def _opened(path: Path, opened: ExitStack) -> _Part:
    folder = RunFolder.existing(path)
    opened.callback(folder.close)
    opened.callback(hold(path).release)
    return _Part(folder, manifest_of(path), config_of(path) or "")


def _check(part: _Part, first: _Part) -> None:
    """Raise RunError where two shards are not of one run, or the one lacks records."""
    there, other = first.folder.path, part.folder.path
    anew = "make the one of them anew that is not wanted, with --fresh"
    if apart := what_changed(there, first.config, part.config, part.made.model_dump(mode="json")):
        raise RunError(f"{other} holds another run than {there}, with {apart}; {anew}")
    if (part.folder.pins(), part.folder.origin()) != (first.folder.pins(), first.folder.origin()):
        raise RunError(f"{other} searched an index or chunks of other content than {there}; {anew}")
    questions = part.folder.questions()
    wanted = {(str(cell["id"]), id) for cell in part.made.cells for id in questions}
    if missing := wanted - part.folder.done():
        raise RunError(f"{other} lacks {len(missing):,} of its {len(wanted):,} records; give its command again")
