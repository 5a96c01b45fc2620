"""Merging the shards of an index: their chunks and vectors, in the order of one build, written as that writes them.
Nothing is parsed, cut or embedded, and how vectors are searched is decided for all of them together."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragbed.documents.errors import DocumentError, IndexFolderError
from ragbed.documents.shards import lacking
from ragbed.retrieval.building.before import Arrival, Before
from ragbed.retrieval.building.job import BuildReport, run
from ragbed.retrieval.building.pieces import BuildJob, LazyEmbedder, Piece
from ragbed.retrieval.building.plan import Arriving, check_place
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.storage.folder import alone, settled
from ragbed.retrieval.storage.manifest import SourceEntry
from ragbed.retrieval.types import Progress, silent


def merge_indexes(folders: Sequence[Path], out: Path, progress: Progress = silent) -> BuildReport:
    """Join all shards of an index into the folder `out`, replacing the index there, if any: equal to what one build of
    their sources writes. Raises IndexFolderError where a folder is no whole shard, one is missing, they differ in
    settings, embedder, parser or what was given to index, or `out` cannot be written."""
    place = out.absolute()
    with alone(place):
        check_place(place)
        parts = {folder: Before.checked(settled(folder.absolute())) for folder in folders}
        shards = {folder: part.manifest.shard for folder, part in parts.items()}
        said = {folder: shard.part if shard else None for folder, shard in shards.items()}
        if apart := lacking(said) or _differing(parts):
            raise IndexFolderError(f"the index cannot be merged: {apart}")
        made = next(iter(parts.values())).manifest
        embedder = LazyEmbedder(lambda: open_embedder(made.settings.embedder, place), made, place)
        job = BuildJob(place, made.settings, None, embedder, {},
                       total=sum(part.manifest.documents for part in parts.values()))
        return run(job, _arriving(list(parts.values())), progress)


def _differing(parts: Mapping[Path, Before]) -> str | None:
    """Say what one shard has other than the first; None where they are of one build."""
    first, *others = parts
    for other in others:
        one, made = parts[first].manifest, parts[other].manifest
        for name, differs in (("other settings", one.settings != made.settings),
                              ("another embedder", one.embedder != made.embedder),
                              ("other versions of what parses", one.parser != made.parser),
                              ("other sources", one.shard and made.shard and one.shard.sources != made.shard.sources)):
            if differs:
                return f"{other} was made with {name} than {first}; make the one again that is not as you want it"
    return None


def _arriving(parts: Sequence[Before]) -> Arriving:
    entries: dict[str, tuple[Before, SourceEntry | str]] = {}
    for part in parts:
        entries |= {one.source: (part, one.reason) for one in part.manifest.skipped}
        entries |= {source: (part, entry) for source, entry in part.manifest.sources.items()}
    for source in sorted(entries):  # as `find_sources` orders them
        part, entry = entries[source]
        if isinstance(entry, str):
            yield DocumentError(source, entry)
            continue
        id, table = entry.document, part.documents
        yield Piece(Arrival(table[id], entry.sha256, part.parser(source)), table.headers[id],
                    table.metadata.get(id, {}), part.chunks(id), part.windows(id), [], part.vectors(id))
