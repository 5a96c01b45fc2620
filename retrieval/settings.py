"""Settings of an index."""
from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ragbed.documents.chunkers import ChunkerSettings, Sections
from ragbed.documents.types import Format
from ragbed.retrieval.embedders import EmbedderSettings, Sentence
from ragbed.retrieval.vector_settings import Auto, VectorSettings, checked_store


class IndexSettings(BaseModel):
    """Settings that an index is made with; stored in its manifest.

    Attributes:
        embedder: its settings, or the name that stands for them, such as that of a sentence-transformers model.
        formats: the renderings whose chunks are indexed.
        vectors: how vectors are searched: a kind or its settings; `auto` goes by their number and the memory.
        titled: whether the file's name and the document's title are embedded in front of each chunk (they
            are not shown): a page of a report seldom says whose report it is.
        store: where the vectors are kept, as in `milvus:http://host:19530`; if None, in the folder.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    embedder: EmbedderSettings = Sentence()
    chunker: ChunkerSettings = Sections(target=800, largest=1_000)
    formats: tuple[Format, ...] = Field(("plain",), min_length=1)
    vectors: VectorSettings = Auto()
    titled: bool = True
    store: Annotated[str, AfterValidator(checked_store)] | None = None
