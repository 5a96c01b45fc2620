"""Settings of an index."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ragbed.documents.chunkers import ChunkerSettings, Sections
from ragbed.documents.types import Format
from ragbed.guests import load_kinds
from ragbed.retrieval.embedders import EmbedderSettings, Sentence
from ragbed.retrieval.tagged_union import tagged_union
from ragbed.retrieval.vector_index import Auto, Flat, Hnsw, RaBitQ
from ragbed.retrieval.vectors import VectorKind

if TYPE_CHECKING:
    ResolvedVectors: TypeAlias = VectorKind
    VectorSettings: TypeAlias = VectorKind
else:
    _KINDS = (Flat, RaBitQ, Hnsw, *load_kinds("vectors", VectorKind, ("auto", "flat", "rabitq", "hnsw")).values())
    ResolvedVectors = tagged_union(_KINDS)
    VectorSettings = tagged_union((Auto, *_KINDS))


class IndexSettings(BaseModel):
    """Settings that an index is built with; stored in its manifest.

    Attributes:
        embedder: settings or short name of an embedder, such as the name of a sentence-transformers model.
        chunker: how documents are cut into chunks.
        formats: the renderings of documents to index.
        vectors: how vectors are searched: a kind, or its settings. `auto` chooses by number of vectors and free memory.
        titled: whether to embed the file's name and the document's title with each chunk, without showing them in
            prompts. This helps because a page of a report seldom names the company.
        ocr: whether to recognise the text of PDF pages that are pictures.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    embedder: EmbedderSettings = Sentence()
    chunker: ChunkerSettings = Sections(target=800, largest=1_000)
    formats: tuple[Format, ...] = Field(("plain",), min_length=1)
    vectors: VectorSettings = Auto()
    titled: bool = True
    ocr: bool = False

    @model_validator(mode="before")
    @classmethod
    def _read_store(cls, fields: Any) -> Any:
        """Read `store: milvus:URI`, which older indexes have in addition to `vectors`."""
        if not isinstance(fields, dict) or "store" not in fields:
            return fields
        kept = {name: value for name, value in fields.items() if name != "store"}
        if fields["store"] is None:
            return kept
        uri = str(fields["store"]).removeprefix("milvus:")
        return {**kept, "vectors": {"kind": "milvus", "uri": uri, "search": fields.get("vectors", "auto")}}
