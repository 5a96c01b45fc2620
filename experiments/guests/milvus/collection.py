"""Vectors in a collection of Milvus, through its Python client, and their settings.

The index folder keeps everything else, and a key per vector, which is its hash. Unchanged vectors are not sent again.
"""
from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from ragbed.documents.errors import IndexFolderError, MissingExtra
from ragbed.documents.http import sanitize_line
from ragbed.documents.types import digest
from ragbed.retrieval.tagged_union import tagged_union
from ragbed.retrieval.types import Matrix, Vectors
from ragbed.retrieval.vector_index import FLAT_LIMIT, Auto, Flat, Hnsw
from ragbed.retrieval.vectors import BuiltVectors, ChosenVectors, VectorKind, VectorTask

if TYPE_CHECKING:
    Search: TypeAlias = Auto | Flat | Hnsw
else:
    Search = tagged_union((Auto, Flat, Hnsw))


def _check_uri(uri: str) -> str:
    """Return the URI as it is recorded: a file with its absolute path."""
    parts = urlsplit(uri)
    if parts.username or parts.password or parts.query:
        raise ValueError("must not contain a user, password or query; put the token into MILVUS_TOKEN")
    if parts.scheme in ("http", "https") and parts.hostname:
        return uri.rstrip("/")
    if not parts.scheme and uri.endswith(".db"):
        return str(Path(uri).absolute())
    raise ValueError("expected FILE.db or http://host:19530")


def _check_search(search: Search) -> Search:
    if getattr(search, "codes", "float32") != "float32":
        raise ValueError("Milvus stores float32 vectors only; remove `codes`")
    return search


class Milvus(VectorKind):
    """Keeps vectors in Milvus instead of the index folder. The token is read from MILVUS_TOKEN.

    Attributes:
        uri: `FILE.db` for the embedded engine, or the URL of a server.
        search: `auto`, `flat` or `hnsw` and its settings, without codes. `auto` compares all vectors if there are few.
            Otherwise it uses a graph with twice the candidates of faiss, because with the same number Milvus found only
            0.979 of the ten nearest of 200,000 vectors.
        collection: name of the collection; set by the build.
        sample: hash of some vectors, compared when the index is opened; set by the build.
    """

    in_folder: ClassVar[bool] = False

    kind: Literal["milvus"] = "milvus"
    uri: Annotated[str, AfterValidator(_check_uri)]
    search: Annotated[Search, AfterValidator(_check_search)] = Auto()
    collection: str = ""
    sample: str = ""

    def choose(self, count: int, dimension: int) -> ChosenVectors:
        if not isinstance(self.search, Auto):
            return ChosenVectors(self, "as set")
        few = count <= FLAT_LIMIT
        search = Flat() if few else Hnsw(ef_search=2 * Hnsw().ef_search)
        return ChosenVectors(self.model_copy(update={"search": search}),
                             f"chosen {'up to' if few else 'above'} {FLAT_LIMIT:,} vectors")

    def matches(self, built: VectorKind) -> bool:
        return self == built.model_copy(update={"collection": "", "sample": ""})

    def size(self, count: int, dimension: int) -> int:
        return self.search.size(count, dimension)

    def build_seconds(self, count: int, dimension: int) -> float:
        return self.search.build_seconds(count, dimension)

    def phrase(self) -> str:
        return f"{self.search.phrase()} by Milvus"

    def build(self, task: VectorTask) -> BuiltVectors:
        return MilvusVectors.build(self, task)

    def open(self, folder: Path, dimension: int) -> Vectors:
        from ragbed.retrieval.embedders.opening import check_allowed

        check_allowed(self.uri, folder, "keeps its vectors on", "MILVUS_TOKEN")
        return MilvusVectors.open(self, dimension, folder / KEYS)

    def content_key(self) -> str:
        return "" if self.search == Flat() else f"milvus {self.search.model_dump_json()}"

    def allow_server(self) -> None:
        from ragbed.retrieval.embedders.opening import allow_server

        allow_server(self.uri)

    def check_server(self) -> None:
        call_milvus(self.uri, self.collection or "ragbed", "has_collection")


Keys = NDArray[np.int64]

KEYS = "vectors.npy"  # file of the index folder
TIMEOUT = 60.0  # seconds for one call, including the client's own retries
GRAPH_TIMEOUT = 3_600.0  # seconds for a call that may wait until a graph is linked
MAX_ROWS = 16_384  # maximum rows that Milvus returns for one query
BLOCK = 2_048  # rows sent together: 3 MB at 384 dimensions
MAX_FILTER_KEYS = 20_000  # keys in one filter: 0.4 MB
SAMPLE = 16  # rows whose vectors are compared when an index is opened


class MilvusVectors:
    """Unit vectors in a collection of Milvus. Searching is thread-safe. Methods raise IndexFolderError if a call still
    fails after up to a minute of retries.
    """

    def __init__(self, settings: Milvus, dimension: int, keys: Keys, why: str = "") -> None:
        self.settings, self.dimension = settings, dimension
        self._keys, self._order = keys, np.argsort(keys)
        self._outdated: Keys = keys[:0]
        self._why = why

    @classmethod
    def open(cls, settings: Milvus, dimension: int, path: Path) -> MilvusVectors:
        """Open the vectors of an index whose keys are in the file `path`. Raises IndexFolderError if Milvus does not
        answer, or holds other rows."""
        opened = cls(settings, dimension, np.load(path, allow_pickle=False))
        if not settings.uri.startswith("http") and not Path(settings.uri).exists():  # the client would create it
            raise opened._other("is missing")
        if not opened._call("has_collection"):
            raise opened._other(f"has no collection {settings.collection}")
        opened._call("load_collection")
        if (found := opened._count()) < len(opened):
            raise opened._other(f"holds {found:,} of {len(opened):,} rows")
        if opened._sample() != settings.sample:
            raise opened._other("holds other vectors")
        return opened

    @classmethod
    def build(cls, settings: Milvus, task: VectorTask) -> MilvusVectors:
        """Insert vectors that the previous index does not have. Outdated rows stay until `remove_outdated`, so that
        searches of the previous index still work.
        """
        vectors = task.vectors
        name = f"ragbed_{digest(str(task.out), task.embedder, settings.search.model_dump_json())}"
        settings = settings.model_copy(update={"collection": name})
        self = cls(settings, vectors.shape[1], _hash_rows(vectors), task.why)
        before = task.previous
        if isinstance(before, MilvusVectors) and before._place == self._place:
            held = before._keys if before._count() == len(before) else self._held_keys()
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
            task.advance(min(BLOCK, len(vectors) - start))
        self._call("flush")
        if (found := self._count()) < len(self):
            raise self._other(f"accepted {found:,} of {len(self):,} rows")
        self._outdated = np.setdiff1d(held, self._keys)
        self.settings = settings.model_copy(update={"sample": self._sample()})
        return self

    def __len__(self) -> int:
        return len(self._keys)

    def describe(self) -> str:
        """Describe in one sentence how the vectors are searched, and why."""
        exact = isinstance(self.settings.search, Flat)
        which = f"{'all ' * exact}{len(self):,} vectors {self.settings.phrase()}"
        return f"{self.settings.search.kind}: {which} ({'exact' if exact else 'approximate'}; {self._why})"

    def write(self, folder: Path) -> None:
        """Write the keys of the rows into the folder."""
        with (folder / KEYS).open("wb") as file:
            np.save(file, self._keys, allow_pickle=False)

    def remove_outdated(self, previous: Vectors | None) -> None:
        """Delete rows that are no longer in the index, and the index's earlier collection."""
        for start in range(0, len(self._outdated), BLOCK):
            self._call("delete", ids=self._outdated[start:start + BLOCK].tolist())
        if isinstance(previous, MilvusVectors) and previous._place != self._place:
            previous._call("drop_collection")

    def search(self, queries: Matrix, k: int, among: NDArray[np.bool_] | None = None,
               ) -> tuple[Matrix, NDArray[np.int64]]:
        """Search as described in `retrieval.types.Vectors`, for at most 16,384 vectors per query. A mask becomes a
        filter on keys, in several searches if it lists many."""
        shape = len(queries), k
        scores, rows = np.full(shape, np.finfo(np.float32).min, np.float32), np.full(shape, -1, np.int64)
        limit = min(k, MAX_ROWS, len(self) if among is None else int(np.count_nonzero(among)))
        if not limit:
            return scores, rows
        graph = self.settings.search
        ef = {"ef": max(graph.ef_search, 2 * limit)} if isinstance(graph, Hnsw) else {}
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
        """Return the row of each key; -1 for a key that another build inserted."""
        places = np.searchsorted(self._keys, keys, sorter=self._order).clip(max=len(self) - 1)
        rows = self._order[places]
        return np.where(self._keys[rows] == keys, rows, -1)

    def _filters(self, among: NDArray[np.bool_] | None) -> Iterator[str]:
        keys, others = (self._keys, self._keys[:0]) if among is None else (self._keys[among], self._keys[~among])
        if not len(others):
            yield ""
        elif len(others) <= min(MAX_FILTER_KEYS, len(keys)):
            yield f"key not in {others.tolist()}"
        else:
            for start in range(0, len(keys), MAX_FILTER_KEYS):
                yield f"key in {keys[start:start + MAX_FILTER_KEYS].tolist()}"

    def _create(self) -> None:
        milvus = _milvus()
        schema = milvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("key", milvus.DataType.INT64, is_primary=True)
        schema.add_field("vector", milvus.DataType.FLOAT_VECTOR, dim=self.dimension)
        made = self.settings.search
        # Nested in `params`, because the embedded engine reads only that; servers read both places.
        graph = {"params": {"M": made.neighbours, "efConstruction": made.ef_build}} if isinstance(made, Hnsw) else {}
        index = milvus.MilvusClient.prepare_index_params()
        index.add_index("vector", index_type="HNSW" if graph else "FLAT", metric_type="IP", params=graph)
        self._call("drop_collection")  # rows left by a killed build
        self._call("create_collection", schema=schema, index_params=index, consistency_level="Strong")

    def _held_keys(self) -> Keys:
        """Return the keys of all rows of the collection, including those that a killed build left."""
        rows = self._call("query_iterator", batch_size=MAX_ROWS, output_fields=["key"])
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

    @property
    def _place(self) -> tuple[str, str]:
        return self.settings.uri, self.settings.collection

    def _other(self, what: str) -> IndexFolderError:
        return IndexFolderError(f"the Milvus store of the index, {self.settings.uri}, {what}: rebuild the index")

    def _call(self, name: str, **options: Any) -> Any:
        return call_milvus(*self._place, name, **options)


_clients: dict[str, Any] = {}  # clients by URI, because a process can open a file only once


def call_milvus(uri: str, collection: str, name: str, **options: Any) -> Any:
    """Call a method of the Milvus client for a collection. Raises IndexFolderError if the call fails, and MissingExtra
    if the client is not installed."""
    milvus = _milvus()
    try:
        if uri not in _clients:
            _clients[uri] = milvus.MilvusClient(uri, token=os.environ.get("MILVUS_TOKEN", ""), timeout=TIMEOUT)
        seconds = GRAPH_TIMEOUT if name in ("flush", "load_collection") else TIMEOUT
        return getattr(_clients[uri], name)(collection, timeout=seconds, **options)
    except (milvus.MilvusException, OSError) as error:
        if uri in _clients:
            _clients.pop(uri).close()  # the old client would not notice that a server is back
        message = sanitize_line(str(getattr(error, "message", error)))
        hint = "" if uri.startswith("http") else "; only one process at a time can open such a file"
        raise IndexFolderError(f"Milvus, {uri}: {message}{hint}") from None


def _milvus() -> Any:
    MissingExtra.check("milvus", "pymilvus")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # otherwise gRPC writes about its connections to stderr
    before = dict(os.environ)
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"  # otherwise the client reads a .env file of any parent folder
    try:
        import pymilvus
    finally:
        os.environ.clear()
        os.environ.update(before)
    for name in ("pymilvus", "milvus_lite", "grpc"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # silence the client's log; errors are also raised
    return pymilvus


def _hash_rows(vectors: Matrix) -> Keys:
    """Return a key per row: 63 bits of a hash of its vector; equal vectors get consecutive keys."""
    keys = np.empty(len(vectors), np.int64)
    for start in range(0, len(vectors), BLOCK):
        for place, row in enumerate(vectors[start:start + BLOCK], start):
            keys[place] = int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest()) >> 1
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.searchsorted(ordered, ordered)
    keys[order] = ordered + np.arange(len(keys)) - first
    return keys
