"""Merge the shards of an index, without parsing, chunking or embedding again.

Documents are written in the order of a single build. The kind of vector index is chosen for all of them together."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragbed.documents.errors import DocumentError, IndexFolderError
from ragbed.documents.shards import Shard
from ragbed.retrieval.building.chunked_documents import BuildJob, ChunkedDocument, LazyEmbedder
from ragbed.retrieval.building.index_writer import BuildReport, write_index
from ragbed.retrieval.building.plan import DocumentStream, check_place
from ragbed.retrieval.building.previous_index import Incoming, PreviousIndex
from ragbed.retrieval.embedders.opening import open_embedder
from ragbed.retrieval.storage.folder import current_folder, exclusive
from ragbed.retrieval.storage.manifest import SourceEntry
from ragbed.retrieval.types import Progress, silent


def merge_indexes(folders: Sequence[Path], out: Path, progress: Progress = silent) -> BuildReport:
    """Merge all shards of an index into the folder `out`, replacing an index there. Raises IndexFolderError: a folder
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
            return f"{path} is shard {shard}, but {seen[first]} is {first}; give shards of one division"
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
        for name, differs in (("other settings", one.settings != made.settings),
                              ("another embedder", one.embedder != made.embedder),
                              ("other parser versions", one.parser != made.parser),
                              ("other sources", one.shard and made.shard and one.shard.sources != made.shard.sources)):
            if differs:
                return f"{other} was made with {name} than {first}; rebuild one of them"
    return None


def _read_documents(shards: Sequence[PreviousIndex]) -> DocumentStream:
    entries: dict[str, tuple[PreviousIndex, SourceEntry | str]] = {}
    for index in shards:
        entries |= {one.source: (index, one.reason) for one in index.manifest.skipped}
        entries |= {source: (index, entry) for source, entry in index.manifest.sources.items()}
    for source in sorted(entries):  # the order of `find_sources`
        index, entry = entries[source]
        if isinstance(entry, str):
            yield DocumentError(source, entry)
            continue
        id, table = entry.document, index.documents
        yield ChunkedDocument(Incoming(table[id], entry.sha256, index.parser(source)), table.headers[id],
                    table.metadata.get(id, {}), index.chunks(id), index.windows(id), [], index.vectors(id))
