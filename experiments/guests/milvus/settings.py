"""Settings of vectors that are kept in Milvus."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator

from ragbed.retrieval.tagged_union import tagged_union
from ragbed.retrieval.types import Vectors
from ragbed.retrieval.vector_settings import (
    FLAT_LIMIT,
    Auto,
    BuiltVectors,
    ChosenVectors,
    Flat,
    Hnsw,
    VectorKind,
    VectorTask,
)

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
        raise ValueError("Milvus keeps float32; leave codes out")
    return search


class Milvus(VectorKind):
    """Keeps vectors in Milvus instead of the index folder. The token is read from MILVUS_TOKEN.

    Attributes:
        uri: `FILE.db` for the embedded engine, or the URL of a server.
        search: `auto`, `flat` or `hnsw` and its settings, without codes. `auto` compares all of few vectors and
            otherwise uses a graph with twice as many candidates as faiss: Milvus links graphs in another order, and
            with as many candidates it found 0.979 of the ten nearest of 200,000 vectors.
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
        from ragbed.experiments.guests.milvus.vectors import MilvusVectors

        return MilvusVectors.build(self, task)

    def open(self, folder: Path, dimension: int) -> Vectors:
        from ragbed.experiments.guests.milvus.vectors import KEYS, MilvusVectors
        from ragbed.retrieval.embedders.opening import check_allowed

        check_allowed(self.uri, folder, "keeps its vectors on", "MILVUS_TOKEN")
        return MilvusVectors.open(self, dimension, folder / KEYS)

    def content_key(self) -> str:
        return "" if self.search == Flat() else f"milvus {self.search.model_dump_json()}"

    def allow_server(self) -> None:
        from ragbed.retrieval.embedders.opening import allow_server

        allow_server(self.uri)

    def check_server(self) -> None:
        from ragbed.experiments.guests.milvus.vectors import call_milvus

        call_milvus(self.uri, self.collection or "ragbed", "has_collection")
