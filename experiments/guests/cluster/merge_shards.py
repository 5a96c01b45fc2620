"""Merge shards.

Of a run: collect the records, calls and searches in one folder, and compute the summary, without benchmark files,
models or indexes. Of an index: without parsing, chunking or embedding again. Documents are written in the order of a
single build, and the kind of vector index is chosen for the merged index.
"""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragbed.documents.errors import DocumentError, IndexFolderError, RunError, UserError
from ragbed.documents.shards import Shard
from ragbed.documents.types import digest
from ragbed.experiments.cells import Cell
from ragbed.experiments.guests.rescoring.verify import check_stored
from ragbed.experiments.running.fingerprint import describe_settings
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.preflight import OWN_FILES
from ragbed.experiments.running.summary import summarise
from ragbed.experiments.runs.run_manifest import Made, changed_inputs, read_config, read_manifest
from ragbed.experiments.runs.store import RunFolder, lock_run, read_run_file, remove
from ragbed.retrieval.building.chunked_documents import BuildJob, ChunkedDocument, LazyEmbedder
from ragbed.retrieval.building.index_writer import BuildReport, write_index
from ragbed.retrieval.building.previous_index import Incoming, PreviousIndex
from ragbed.retrieval.building.source_plan import DocumentStream, check_place
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.storage.folder import current_folder, exclusive
from ragbed.retrieval.storage.manifest import SourceEntry
from ragbed.retrieval.types import Progress, silent


def merge_indexes(folders: Sequence[Path], out: Path, progress: Progress = silent) -> BuildReport:
    """Merge all shards of an index into the folder `out`, replacing an index there. Raises IndexFolderError if a folder
    is not a complete shard, a shard is missing, their sources or settings differ, or `out` cannot be written.
    """
    place = out.absolute()
    with exclusive(place):
        check_place(place)
        shards = {folder: PreviousIndex.open(current_folder(folder.absolute())) for folder in folders}
        names = {folder: index.manifest.shard.part if index.manifest.shard else None
                 for folder, index in shards.items()}
        if problem := find_gap(names) or _find_difference(shards):
            raise IndexFolderError(f"the index cannot be merged: {problem}")
        made = next(iter(shards.values())).manifest
        embedder = LazyEmbedder(lambda: open_embedder(made.settings.embedder, place), made, place)
        job = BuildJob(place, made.settings, None, embedder, {},
                       total=sum(index.manifest.documents for index in shards.values()))
        return write_index(job, _read_documents(list(shards.values())), progress)


def find_gap(shards: Mapping[Path, str | None]) -> str | None:
    """Return why the folders are not the complete shards of one run or index; None if they are.

    Args:
        shards: the shard that each folder claims to be, such as "3/16"; None if it is not a shard.
    """
    seen: dict[Shard, Path] = {}
    for path, name in shards.items():
        if name is None:
            return f"{path} is not a shard; make one with --shard, as in --shard 3/16"
        shard = Shard.parse(name)
        first = next(iter(seen), shard)
        if shard.of != first.of:
            return f"{path} is shard {shard}, but {seen[first]} is {first}; give shards with the same total"
        if shard in seen:
            return f"{seen[shard]} and {path} are both shard {shard}; give one of them"
        seen[shard] = path
    lost = [str(one) for number in range(shard.of) if (one := Shard(number + 1, shard.of)) not in seen]
    return f"{'shard' if len(lost) == 1 else 'shards'} {', '.join(lost)} missing" if lost else None


def _find_difference(shards: Mapping[Path, PreviousIndex]) -> str | None:
    """Return the first difference in how the shards were built; None if all belong to one build."""
    first, *others = shards
    for other in others:
        one, made = shards[first].manifest, shards[other].manifest
        for name, differs in (("settings", one.settings != made.settings),
                              ("embedders", one.embedder != made.embedder),
                              ("parser versions", one.parser != made.parser),
                              ("sources", one.shard and made.shard and one.shard.sources != made.shard.sources)):
            if differs:
                return f"{other} and {first} were made with different {name}; rebuild one of them"
    return None


def _read_documents(shards: Sequence[PreviousIndex]) -> DocumentStream:
    entries: dict[str, tuple[PreviousIndex, SourceEntry | str]] = {}
    for index in shards:
        entries |= {one.source: (index, one.reason) for one in index.manifest.skipped}
        entries |= {source: (index, entry) for source, entry in index.manifest.sources.items()}
    for source in sorted(entries):  # same order as `find_sources`
        index, entry = entries[source]
        if isinstance(entry, str):
            yield DocumentError(source, entry)
            continue
        id, table = entry.document, index.documents
        yield ChunkedDocument(Incoming(table[id], entry.sha256, index.parser(source)), table.headers[id],
                              table.given.get(id, {}), index.chunks(id), index.windows(id), [],
                              index.vectors(id, index.manifest.kind))


_SAME = ("benchmark", "scheme", "scoring", "judge", "sweeps", "cells")  # parts of the manifest that settings determine


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
        RunError: a shard is missing, in use or incomplete, comes from another run, or searched different content.
    """
    with ExitStack() as opened:
        parts = [_open(path, opened) for path in paths]
        if problem := find_gap({part.folder.path: one.part if (one := part.made.shard) else None for part in parts}):
            raise RunError(f"the run cannot be merged: {problem}")
        first, about = parts[0], parts[0].made.shard
        assert about is not None
        for part in parts:
            _check(part, first)
        _check_questions(parts)
        manifest: dict[str, Any] = json.loads(read_run_file(first.folder.path / "manifest.json"))
        del manifest["shard"]
        lock = lock_run(out)
        opened.callback(lock.release)
        for name in OWN_FILES if fresh else ():
            remove(out / name)
        folder = RunFolder(out, lock)
        opened.callback(folder.close)
        known = None if folder.is_empty() else read_config(out)
        if known and (changes := _describe_changes(out, known, first.config, manifest)):
            raise RunError(f"{out} holds a run with {changes}; merge into another folder, or start again with --fresh")
        for name, content in first.folder.pins().items():
            folder.pin(name, content)
        folder.reopen()
        try:
            folder.begin(first.config, manifest, {})
            for part in parts:
                folder.database.copy_from(part.folder.database.path)
            questions, cells = folder.questions(), map(Cell.of, first.made.cells)
            plan = replace(Plan.of_records(out, first.made.scheme, questions.values(), cells), notes=about.notes)
            folder.keep_records({(cell.id, question) for cell in plan.cells for question in questions})
            folder.finish(summarise(plan, folder, about.exemplars))
        except UserError:
            if known is None:  # leave nothing behind
                for name in OWN_FILES:
                    remove(out / name)
            raise
        yield folder


def _open(path: Path, opened: ExitStack) -> _Part:
    folder = RunFolder.existing(path)
    opened.callback(folder.close)
    opened.callback(lock_run(path).release)
    return _Part(folder, read_manifest(path), read_config(path) or "")


def _check_questions(parts: Sequence[_Part]) -> None:
    """Raise RunError unless the parts have the questions of the run."""
    stored = sorted(row for part in parts for row in part.folder.database.rows("SELECT place, content FROM questions"))
    if digest(*(content for _, content in stored)) != parts[0].made.benchmark["stored"]:
        raise RunError("the shards lack questions of the run or have others, because one is unfinished or damaged; "
                       "rerun the command of each shard")


def _check(part: _Part, first: _Part) -> None:
    """Raise RunError if `part` belongs to another run than `first`, or is incomplete."""
    there, other = first.folder.path, part.folder.path
    anew = "rerun one of them with --fresh"
    if changes := _describe_changes(there, first.config, part.config, part.made.model_dump(mode="json")):
        raise RunError(f"{other} belongs to a different run from {there}: {changes}; {anew}")
    if [getattr(part.made, name) for name in _SAME] != [getattr(first.made, name) for name in _SAME]:
        raise RunError(f"{other} and {there} have different manifests, although their settings are the same; {anew}")
    if (part.folder.pins(), part.folder.origin()) != (first.folder.pins(), first.folder.origin()):
        raise RunError(f"{other} searched a different index or different chunks from {there}; {anew}")
    questions = part.folder.questions()
    wanted, done = {(str(cell["id"]), id) for cell in part.made.cells for id in questions}, part.folder.done()
    if missing := wanted - done:
        raise RunError(f"{other} lacks {len(missing):,} of its {len(wanted):,} records; rerun its command")
    if digest(part.config) != part.made.settings or not part.made.cells or done - wanted:
        raise RunError(f"{other}: manifest.json does not belong to its settings and records; {anew}")
    damage = [f"{check.name}: {text}" for check in check_stored(part.folder) for text in check.differences[:1]]
    if found := next(filter(None, (part.folder.find_damage(), *part.folder.alterations(times=True).values(), *damage)),
                     None):
        raise RunError(f"{other} is damaged: {found}; rerun its command with --fresh")


def _describe_changes(path: Path, known: str, config: str, manifest: Mapping[str, Any]) -> str | None:
    """Describe the first difference between the run in a folder and a new run; return None if they are the same. For
    `known`, `config` and `manifest` see `list_changes`."""
    made, now = read_manifest(path), Made.model_validate(manifest)
    if difference := describe_settings(path, known, config, manifest["benchmark"]["hash"]):
        return difference
    return next(changed_inputs(made, now), None)
