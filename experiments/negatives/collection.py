"""Where negatives come from: an index, or the chunks that a benchmark brings."""
from __future__ import annotations

from dataclasses import dataclass

from documents.errors import BenchmarkError
from documents.types import Document
from experiments.negatives.settings import MiningSettings
from experiments.question import Benchmark
from retrieval.building.progress import Progress
from retrieval.embedders.opening import open_embedder
from retrieval.index import Index
from retrieval.pool import Pool
from retrieval.storage.cache import CachedEmbedder
from retrieval.types import Collection

_SCOPE = "all"


@dataclass(frozen=True, slots=True)
class Source:
    """The chunks among which negatives are found.

    Attributes:
        index: None where they are the benchmark's own.
    """

    benchmark: Benchmark
    collection: Collection
    index: Index | None

    def source_of(self, document: str) -> str:
        """The source path of a document id; the id itself where none is known."""
        if document in self.benchmark.documents:
            return self.benchmark.documents[document].source
        try:
            return document if self.index is None else self.index.source_of(document)
        except KeyError:
            return document

    def document(self, id: str) -> Document:
        """The document of a chunk of the benchmark or of the collection."""
        known = self.benchmark.documents
        return known[id] if id in known else self.collection.document(id)


def open_source(benchmark: Benchmark, settings: MiningSettings, progress: Progress) -> Source:
    """The index that the settings name, or the chunks of the benchmark: those that all its questions share, else those
    of all its questions.

    Raises:
        BenchmarkError: there is no index, and the benchmark brings no chunks.
        IndexFolderError, ModelError, SettingsError: the index or the embedder cannot be opened.
    """
    if settings.index is not None:
        index = Index.open(settings.index)
        index.check_embedder()
        return Source(benchmark, index, index)
    chunks = benchmark.shared or benchmark.every_chunk
    if not chunks:
        raise BenchmarkError(f"{benchmark.name}: its questions bring no chunks to find negatives among; index its "
                             "documents and give --index DIR")
    pool = Pool({_SCOPE: chunks}, CachedEmbedder(open_embedder(settings.embedder)), benchmark.documents)
    pool.embed(progress)
    return Source(benchmark, pool.scope(_SCOPE), None)
