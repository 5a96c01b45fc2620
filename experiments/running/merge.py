"""Merging the shards of a run: their records, calls and searches in one folder, and the summary that the run has which
was never divided. What they are of, data, models and indexes, is not needed for it."""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from documents.errors import RunError
from documents.shards import lacking
from experiments.cells import Cell
from experiments.running.identity import what_sets_apart
from experiments.running.plan import Plan
from experiments.running.prepare import OWN_FILES, continues
from experiments.running.summary import summarise
from experiments.runs.manifest import Made, manifest_of
from experiments.runs.store import RunFolder, config_of, content_of, hold, remove


@dataclass(frozen=True, slots=True)
class _Part:
    """A shard of a run, whose folder is held: nobody is working on it."""

    path: Path
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
        said = [part.made.shard for part in parts]
        if apart := lacking({part.path: one.part if one else None for part, one in zip(parts, said, strict=True)}):
            raise RunError(f"the run cannot be merged: {apart}")
        first, about = parts[0], said[0]
        assert about is not None
        for part in parts:
            _check(part, first)
        manifest: dict[str, Any] = json.loads(content_of(first.path / "manifest.json"))
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
    config = config_of(path)
    if config is None or not (path / "records.sqlite").is_file():
        raise RunError(f"{path} holds no shard of a run: it has no config.yaml or no records.sqlite")
    opened.callback(hold(path).release)
    folder = RunFolder.existing(path)
    opened.callback(folder.close)
    return _Part(path, folder, manifest_of(path), config)


def _check(part: _Part, first: _Part) -> None:
    """Raise RunError where two shards are not of one run, or the one lacks records."""
    manifests = [one.made.model_dump(mode="json") for one in (part, first)]
    apart = (what_sets_apart(first.path, first.config, part.config, manifests[0])
             or what_sets_apart(part.path, part.config, first.config, manifests[1]))
    if apart:
        raise RunError(f"{first.path} and {part.path} hold two runs, the one with {apart}; make the one of them anew "
                       "that is not wanted, with --fresh")
    if (part.folder.pins(), part.folder.origin()) != (first.folder.pins(), first.folder.origin()):
        raise RunError(f"{first.path} and {part.path} searched indexes or chunks of different content; make the one of "
                       "them anew that is not wanted, with --fresh")
    wanted = {(str(cell["id"]), id) for cell in part.made.cells for id in part.folder.questions()}
    if missing := wanted - part.folder.done():
        raise RunError(f"{part.path} lacks {len(missing):,} of its {len(wanted):,} records; give its command again")
