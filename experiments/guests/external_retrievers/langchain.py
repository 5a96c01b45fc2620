"""Use LangChain's retrievers in ragbed, and ragbed's retrievers in LangChain.

Documents made by this module have their chunk's id in their metadata. LangChain's documents have no offsets and often
no stable id, so a document is matched to a chunk by this id, or by its text."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import Chunk, chunk_id, digest
from ragbed.retrieval.types import Hit, Retriever, distinct, number

if TYPE_CHECKING:
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.retrievers import BaseRetriever

_MAX_NAME = 500  # maximum characters of a document's name from metadata; a longer one is replaced by its hash
_MAX_START = 2 ** 40  # maximum start, in characters; a larger one is invalid


def as_langchain(retriever: Retriever, k: int = 5, source_of: Callable[[str], str] | None = None) -> BaseRetriever:
    """Return a LangChain retriever. Its `batch` is one search for all queries.

    The metadata of its documents are `chunk` (also the document's id), `document`, `source`, `format`, `start`, `end`,
    `pages` (first and last, or None), `score`, `rank` and `found_by`.

    Args:
        k: documents per query; `invoke(query, k=10)` overrides it.
        source_of: returns the source of a document id, such as `Index.source_of`. Default: the id.
    """
    made: BaseRetriever = _adapter()(k=k, retriever=retriever, source_of=source_of or str)
    return made


def as_documents(chunks: Iterable[Chunk], source_of: Callable[[str], str] = str) -> list[LangChainDocument]:
    """Return chunks as LangChain documents, which `FromLangChain` can match to the chunks again."""
    from langchain_core.documents import Document

    return [Document(chunk.content, id=chunk.id, metadata={
        "chunk": chunk.id, "document": chunk.document, "source": source_of(chunk.document), "format": chunk.format,
        "start": chunk.start, "end": chunk.end, "pages": list(chunk.pages) if chunk.pages else None})
        for chunk in chunks]


class FromLangChain:
    """Use a LangChain retriever as a ragbed retriever.

    A retriever of a vector store, or one with a field `k`, returns the requested number of documents. From any other
    retriever, the first `k` documents are used. A hit's score is the metadata `score` or `relevance_score` if all
    documents have one, in descending order. Otherwise it is 1 / rank.

    Args:
        chunks: all chunks that it may find. A LangChain document is matched by the chunk id in its metadata. Without
            one, it is matched by its text, preferably in the document that it names. If `chunks` is omitted, every
            LangChain document becomes a chunk of plain text that starts at `start_index` or 0.
        name: `found_by` of the hits.
    """

    def __init__(self, retriever: BaseRetriever, chunks: Iterable[Chunk] | None = None,
                 name: str = "langchain") -> None:
        self._retriever = retriever
        self._known = None if chunks is None else _ChunkLookup(chunks)
        self._name = name

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        if k < 1 or not queries:
            return [[] for _ in queries]
        from langchain_core.vectorstores import VectorStoreRetriever

        asked = self._retriever
        if isinstance(asked, VectorStoreRetriever):
            asked = asked.model_copy(update={"search_kwargs": {**asked.search_kwargs, "k": k}})
        elif "k" in type(asked).model_fields:
            asked = asked.model_copy(update={"k": k})
        # One at a time, because some retrievers are not thread-safe.
        return [self._hits(found, k) for found in asked.batch(list(queries), {"max_concurrency": 1})]

    def _hits(self, found: Any, k: int) -> list[Hit]:
        from langchain_core.documents import Document

        if not isinstance(found, list) or not all(isinstance(one, Document) for one in found):
            raise SettingsError(f"{self._name}: the retriever did not return a list of LangChain documents")
        hits = [Hit(self._chunk(one), score, 0, self._name) for one, score in zip(found, _scores(found), strict=True)]
        return [replace(hit, rank=rank) for rank, hit in enumerate(distinct(hits)[:k], 1)]

    def _chunk(self, document: LangChainDocument) -> Chunk:
        if self._known is None:
            return _chunk(document)
        chunk = self._known.find(document)
        if chunk is None:
            # without its text, which the client may not be allowed to read
            raise SettingsError(f"{self._name}: the retriever returned a document that is not one of the chunks it was "
                                "given; put the chunk's id into the metadata `chunk`, as ragbed's as_documents does")
        return chunk


class _ChunkLookup:
    """Finds chunks by their ids and texts."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks: dict[str, Chunk] = {}
        self._texts: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            self.chunks[chunk.id] = chunk
            self._texts.setdefault(chunk.content.strip(), []).append(chunk)

    def find(self, document: LangChainDocument) -> Chunk | None:
        """Return the chunk of a document; None if there is none."""
        for id in (document.metadata.get("chunk"), document.id):
            if isinstance(id, str) and id in self.chunks:
                return self.chunks[id]
        same = self._texts.get(document.page_content.strip(), [])
        named = [chunk for chunk in same if chunk.document == document.metadata.get("document")]
        return next(iter([*named, *same]), None)


def _chunk(document: LangChainDocument) -> Chunk:
    """Return a new chunk. The metadata is checked, because it may come from a stranger."""
    text, fields = document.page_content, document.metadata
    name = _name(fields.get("document")) or _name(fields.get("source")) or digest(text)
    begin = fields.get("start_index")
    start = begin if isinstance(begin, int) and not isinstance(begin, bool) and 0 <= begin < _MAX_START else 0
    end = start + len(text)
    return Chunk(chunk_id(name, "plain", start, end, text), name, "plain", start, end, text)


def _name(value: object) -> str | None:
    """Return a document's name from metadata; None if it is missing or not text."""
    if not isinstance(value, str | PurePath):
        return None
    text = str(value)
    return text if len(text) <= _MAX_NAME and text.isprintable() else digest(text)


def _scores(documents: Sequence[LangChainDocument]) -> list[float]:
    given = [[number(one.metadata.get(key)) for key in ("score", "relevance_score")] for one in documents]
    scores = [score for each in given for score in [one for one in each if one is not None][:1]]
    if len(scores) == len(given) and all(one >= other for one, other in pairwise(scores)):
        return scores
    return [1 / rank for rank in range(1, len(documents) + 1)]


@cache
def _adapter() -> Any:
    """Create the class at first use, because this imports LangChain."""
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables.config import run_in_executor

    class RagbedRetriever(BaseRetriever):
        """A LangChain retriever that searches with a ragbed retriever."""

        k: int
        retriever: Any
        source_of: Any

        def _get_relevant_documents(self, query: str, *, run_manager: Any,
                                    k: int | None = None) -> list[LangChainDocument]:
            return self._search_all([query], k)[0]

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any,
                                           k: int | None = None) -> list[LangChainDocument]:
            return (await run_in_executor(None, self._search_all, [query], k))[0]

        def batch(self, inputs: list[str], config: Any = None, *, return_exceptions: bool = False,
                  **kwargs: Any) -> list[list[LangChainDocument]]:
            found: Any = self._search_all
            return self._batch_with_config(found, inputs, config, return_exceptions=return_exceptions,
                                           run_type="retriever", **kwargs)

        async def abatch(self, inputs: list[str], config: Any = None, *, return_exceptions: bool = False,
                         **kwargs: Any) -> list[list[LangChainDocument]]:
            async def found(queries: list[str], k: int | None = None) -> Any:
                return await run_in_executor(None, self._search_all, queries, k)

            return await self._abatch_with_config(found, inputs, config, return_exceptions=return_exceptions,
                                                  run_type="retriever", **kwargs)

        def _search_all(self, queries: list[str], k: int | None = None) -> list[list[LangChainDocument]]:
            found: list[list[Hit]] = self.retriever.search(queries, self.k if k is None else k)
            made = [as_documents((hit.chunk for hit in hits), self.source_of) for hits in found]
            for document, hit in zip(chain(*made), chain(*found), strict=True):
                document.metadata |= {"score": hit.score, "rank": hit.rank, "found_by": hit.found_by}
            return made

    return RagbedRetriever
