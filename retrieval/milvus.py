"""Vectors in Milvus: a file of its embedded engine, a server, a cluster or Zilliz, by one client. The index folder has
everything else, and the key of each vector's row, a hash of the vector: what stays the same is not sent again."""
from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbed.documents.errors import IndexFolderError, MissingExtra
from ragbed.documents.http import sanitize_line
from ragbed.documents.types import digest
from ragbed.retrieval.storage.manifest import StoreEntry
from ragbed.retrieval.types import Matrix
from ragbed.retrieval.vector_settings import Decided, Flat, Hnsw, VectorSettings, choose_stored

Keys = NDArray[np.int64]

SECONDS = 60.0  # for one call, the client's own attempts included
LINKING = 3_600.0  # for a call that may wait for a graph
MOST = 16_384  # rows that Milvus gives for one query
BLOCK = 2_048  # rows that are sent together: 3 MB at 384 dimensions
LISTED = 20_000  # keys that one filter names: 0.4 MB
SAMPLE = 16  # rows whose vectors are compared when an index is opened


class MilvusVectors:
    """Unit vectors in a collection of Milvus. Searching is thread-safe. A call that fails raises IndexFolderError, one
    line that names the store; it is made again by the client, for a minute at most."""

    def __init__(self, entry: StoreEntry, settings: Decided, dimension: int, keys: Keys) -> None:
        self.entry, self.settings, self.dimension = entry, settings, dimension
        self._keys, self._order = keys, np.argsort(keys)
        self._gone: Keys = keys[:0]
        self._why = ""

    @classmethod
    def open(cls, entry: StoreEntry, settings: Decided, dimension: int, path: Path) -> MilvusVectors:
        """Return the vectors of an index whose keys are in the file `path`. Raises IndexFolderError where the store
        does not answer, or its rows are not those of the index."""
        opened = cls(entry, settings, dimension, np.load(path, allow_pickle=False))
        if not entry.uri.startswith("http") and not Path(entry.uri).exists():  # it would be made
            raise opened._other("is missing")
        if not opened._call("has_collection"):
            raise opened._other(f"has no collection {entry.collection}")
        opened._call("load_collection")
        if (found := opened._count()) < len(opened):
            raise opened._other(f"holds {found:,} of {len(opened):,} rows")
        if opened._sample() != entry.sample:
            raise opened._other("holds other vectors")
        return opened

    @classmethod
    def build(cls, uri: str, place: Path, embedder: str, vectors: Matrix, settings: VectorSettings,
              before: MilvusVectors | None, advance: Callable[[int], None]) -> MilvusVectors:
        """Bring the rows of `vectors`, float32 of shape (n, d), into the store `uri`, in the collection of the index
        folder `place`. Rows that it holds by the vectors `before` are not sent again. What is no longer needed stays
        until `tidy`, so that the index which stands there finds what it found. `advance` is told of rows."""
        choice = choose_stored(settings, len(vectors))
        name = f"ragbed_{digest(str(place), embedder, choice.settings.model_dump_json())}"
        self = cls(StoreEntry(uri=uri, collection=name, sample=""), choice.settings, vectors.shape[1], _keys(vectors))
        self._why = choice.why
        if before is not None and before.entry.collection == name and before.entry.uri == uri:
            held = before._keys if before._count() == len(before) else self._held()
        else:
            self._create()
            held = self._keys[:0]
        new = ~np.isin(self._keys, held)
        for start in range(0, len(vectors), BLOCK):
            rows = start + np.flatnonzero(new[start:start + BLOCK])
            if len(rows):
                block = vectors[start:start + BLOCK][rows - start]
                self._call("insert", data=[{"key": key, "vector": vector} for key, vector in
                                           zip(self._keys[rows].tolist(), block, strict=True)])
            advance(min(BLOCK, len(vectors) - start))
        self._call("flush")
        if (found := self._count()) < len(self):
            raise self._other(f"took {found:,} of {len(self):,} rows")
        self._gone = np.setdiff1d(held, self._keys)
        self.entry = self.entry.model_copy(update={"sample": self._sample()})
        return self

    def __len__(self) -> int:
        return len(self._keys)

    def describe(self) -> str:
        """Return one sentence on how the vectors are searched, and why so."""
        exact = isinstance(self.settings, Flat)
        which = f"{'all ' * exact}{len(self):,} vectors {self.settings.phrase()}"
        return f"{self.settings.kind}: {which} by Milvus ({'exact' if exact else 'approximate'}; {self._why})"

    def write(self, path: Path) -> None:
        """Write the rows' keys."""
        with path.open("wb") as file:
            np.save(file, self._keys, allow_pickle=False)

    def tidy(self, before: MilvusVectors | None) -> None:
        """Remove rows that the index does not hold any more, and the collection that it had `before` this one."""
        for start in range(0, len(self._gone), BLOCK):
            self._call("delete", ids=self._gone[start:start + BLOCK].tolist())
        if before is not None and (before.entry.uri, before.entry.collection) != (
                self.entry.uri, self.entry.collection):
            before._call("drop_collection")

    def search(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None,
               ) -> tuple[Matrix, NDArray[np.int64]]:
        """Search as `VectorIndex.search` does, for at most 16,384 vectors a query. Milvus is told which rows the mask
        `among` lets through, in several searches where they are many."""
        shape = len(queries), k
        scores, rows = np.full(shape, np.finfo(np.float32).min, np.float32), np.full(shape, -1, np.int64)
        limit = min(k, MOST, len(self) if among is None else int(np.count_nonzero(among)))
        if not limit:
            return scores, rows
        ef = {"ef": max(self.settings.ef_search, 2 * limit)} if isinstance(self.settings, Hnsw) else {}
        step = max(1, min(1_000, 1_000_000 // limit))
        for first in range(0, len(queries), step):
            block = np.ascontiguousarray(queries[first:first + step], np.float32)
            found: list[list[Any]] = [[] for _ in block]
            for filter in self._filters(among):
                for place, hits in enumerate(self._call("search", data=list(block), filter=filter, limit=limit,
                                                        output_fields=["key"], search_params={"params": ef})):
                    found[place].append((hits.distances, hits.ids))
            for place, parts in enumerate(found, first):
                near = np.concatenate([np.asarray(one, np.float32) for one, _ in parts])
                own = self._rows(np.concatenate([np.asarray(one, np.int64) for _, one in parts]))
                best = [one for one in np.argsort(-near, kind="stable") if own[one] >= 0][:limit]
                scores[place, :len(best)], rows[place, :len(best)] = near[best], own[best]
        return scores, rows

    def stored(self, first: int, end: int) -> Matrix:
        """Return the vectors in rows `[first, end)`, float32 of shape (rows, d)."""
        return self._vectors(np.arange(first, end))

    def _vectors(self, rows: NDArray[np.intp]) -> Matrix:
        keys = self._keys[rows].tolist()
        found = {one["key"]: one["vector"] for start in range(0, len(keys), BLOCK)
                 for one in self._call("get", ids=keys[start:start + BLOCK], output_fields=["vector"])}
        if missing := sum(key not in found for key in keys):
            raise self._other(f"lacks {missing:,} rows")
        return np.asarray([found[key] for key in keys], np.float32).reshape(len(keys), self.dimension)

    def _rows(self, keys: Keys) -> NDArray[np.intp]:
        """The row of each key; -1 for one that another build is bringing in, or left."""
        places = np.searchsorted(self._keys, keys, sorter=self._order).clip(max=len(self) - 1)
        rows = self._order[places]
        return np.where(self._keys[rows] == keys, rows, -1)

    def _filters(self, among: NDArray[np.bool_] | None) -> Iterator[str]:
        keys, others = (self._keys, self._keys[:0]) if among is None else (self._keys[among], self._keys[~among])
        if not len(others):
            yield ""
        elif len(others) <= min(LISTED, len(keys)):
            yield f"key not in {others.tolist()}"
        else:
            yield from (f"key in {keys[start:start + LISTED].tolist()}" for start in range(0, len(keys), LISTED))

    def _create(self) -> None:
        milvus = _milvus()
        schema = milvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("key", milvus.DataType.INT64, is_primary=True)
        schema.add_field("vector", milvus.DataType.FLOAT_VECTOR, dim=self.dimension)
        made = self.settings
        # Below `params` once more, where servers look too: the embedded engine looks nowhere else.
        graph = {"params": {"M": made.neighbours, "efConstruction": made.ef_build}} if isinstance(made, Hnsw) else {}
        index = milvus.MilvusClient.prepare_index_params()
        index.add_index("vector", index_type="HNSW" if graph else "FLAT", metric_type="IP", params=graph)
        self._call("drop_collection")  # what a build left that was killed
        self._call("create_collection", schema=schema, index_params=index, consistency_level="Strong")

    def _held(self) -> Keys:
        """The keys of all rows of the collection, those too that a killed build left."""
        rows = self._call("query_iterator", batch_size=MOST, output_fields=["key"])
        try:
            held = [one["key"] for block in iter(rows.next, []) for one in block]
        finally:
            rows.close()
        return np.asarray(held, np.int64)

    def _count(self) -> int:
        return int(self._call("query", filter="", output_fields=["count(*)"])[0]["count(*)"])

    def _sample(self) -> str:
        rows = np.unique(np.linspace(0, len(self) - 1, SAMPLE).astype(np.intp))
        return hashlib.sha256(self._vectors(rows).astype("<f4").tobytes()).hexdigest()

    def _other(self, what: str) -> IndexFolderError:
        return IndexFolderError(f"the store of the index, {self.entry.uri}, {what}: build the index anew")

    def _call(self, name: str, **options: Any) -> Any:
        return _call(self.entry, name, **options)


def check_reachable(uri: str) -> None:
    """Raise IndexFolderError where no store answers there, and MissingExtra where its client is not installed."""
    _call(StoreEntry(uri=uri, collection="ragbed", sample=""), "has_collection")


_clients: dict[str, Any] = {}  # by URI: a process opens a file once


def _call(entry: StoreEntry, name: str, **options: Any) -> Any:
    """What the client's method says of the collection."""
    milvus = _milvus()
    try:
        if entry.uri not in _clients:
            token = os.environ.get("MILVUS_TOKEN", "")
            _clients[entry.uri] = milvus.MilvusClient(entry.uri, token=token, timeout=SECONDS)
        seconds = LINKING if name in ("flush", "load_collection") else SECONDS
        return getattr(_clients[entry.uri], name)(entry.collection, timeout=seconds, **options)
    except (milvus.MilvusException, OSError) as error:
        if entry.uri in _clients:
            _clients.pop(entry.uri).close()  # it would not find a server that is back
        said = sanitize_line(str(getattr(error, "message", error)))
        alone = "" if entry.uri.startswith("http") else "; one process at a time has such a file open"
        raise IndexFolderError(f"Milvus, {entry.uri}: {said}{alone}") from None


def _milvus() -> Any:
    MissingExtra.check("milvus", "pymilvus")
    before = dict(os.environ)
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"  # it would take settings out of any .env around
    try:
        import pymilvus
    finally:
        os.environ.clear()
        os.environ.update(before)
    for name in ("pymilvus", "milvus_lite", "grpc"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is raised, too
    return pymilvus


def _keys(vectors: Matrix) -> Keys:
    """A key for each row: 63 bits of a hash of its vector, and of equal ones the next numbers."""
    keys = np.empty(len(vectors), np.int64)
    for start in range(0, len(vectors), BLOCK):
        for place, row in enumerate(vectors[start:start + BLOCK], start):
            keys[place] = int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest()) >> 1
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.searchsorted(ordered, ordered)
    keys[order] = ordered + np.arange(len(keys)) - first
    return keys
