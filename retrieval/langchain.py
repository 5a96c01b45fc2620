"""LangChain's retrievers as ours, and ours as LangChain's.

LangChain's documents have no offsets and often no lasting id. One that is made here carries the id of its chunk in its
metadata, and is known again by that, or by its text.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import Chunk, chunk_id, digest
from ragbed.retrieval.hits import distinct, number
from ragbed.retrieval.types import Hit, Retriever

if TYPE_CHECKING:
    from langchain_core.documents import Document as LangChainDocument
    from langchain_core.retrievers import BaseRetriever

LONGEST = 500  # characters of a document's name that come from metadata; a longer one is named by its hash
_START = 2 ** 40  # no text is as long: what says that it begins beyond says nothing


def as_langchain(retriever: Retriever, k: int = 5, source_of: Callable[[str], str] | None = None) -> BaseRetriever:
    """Return a retriever for LangChain: `invoke`, `ainvoke`, `batch` (one search for all queries), and streams.

    Metadata of its documents: `chunk` (also the document's id), `document`, `source`, `format`, `start`, `end`, `pages`
    (first and last, or None), `score`, `rank` and `found_by`. Each query has `k` documents; `invoke(query, k=10)` asks
    for others. `source_of` gives the source of a document, as `Index.source_of` does; None gives its id.
    """
    made: BaseRetriever = _adapter()(k=k, retriever=retriever, source_of=source_of or str)
    return made


def as_documents(chunks: Iterable[Chunk], source_of: Callable[[str], str] = str) -> list[LangChainDocument]:
    """Return chunks as LangChain's documents, by which `FromLangChain` knows them again."""
    from langchain_core.documents import Document

    return [Document(chunk.content, id=chunk.id, metadata={
        "chunk": chunk.id, "document": chunk.document, "source": source_of(chunk.document), "format": chunk.format,
        "start": chunk.start, "end": chunk.end, "pages": list(chunk.pages) if chunk.pages else None})
        for chunk in chunks]


class FromLangChain:
    """A retriever of LangChain as one of ours.

    Where it is known how (a vector store's, or one with a field `k`), it is asked for as many as are wanted, whatever
    its own number; else it gives what it gives, and the first `k` are taken. A hit has the number that all documents
    have as `score` or `relevance_score`, if it falls from one to the next, and else 1 / rank.

    Args:
        chunks: all that it may find. A document is the chunk whose id it carries, else one with its text: in the
            document that it names, else the first. Without chunks every document becomes a chunk of its own, in plain
            text from 0 or `start_index` on, with an id by its text and by the document or source that it names.
        name: what hits say that they were found by.
    """

    def __init__(self, retriever: BaseRetriever, chunks: Iterable[Chunk] | None = None,
                 name: str = "langchain") -> None:
        self._retriever = retriever
        self._known = None if chunks is None else Known(chunks)
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
        # One at a time: not every retriever can be asked from several threads.
        return [self._hits(found, k) for found in asked.batch(list(queries), {"max_concurrency": 1})]

    def _hits(self, found: Any, k: int) -> list[Hit]:
        from langchain_core.documents import Document

        if not isinstance(found, list) or not all(isinstance(one, Document) for one in found):
            raise SettingsError(f"{self._name}: the retriever returned what is no list of LangChain documents")
        hits = [Hit(self._chunk(one), score, 0, self._name) for one, score in zip(found, _scores(found), strict=True)]
        return [replace(hit, rank=rank) for rank, hit in enumerate(distinct(hits)[:k], 1)]

    def _chunk(self, document: LangChainDocument) -> Chunk:
        if self._known is None:
            return _chunk(document)
        chunk = self._known.of(document)
        if chunk is None:
            raise SettingsError(f"{self._name}: the retriever returned what is none of the chunks, "
                                f"{document.page_content[:40]!r}: let documents carry their chunk's id as metadata "
                                "`chunk`, as those of retrieval.langchain.as_documents do")
        return chunk


class Known:
    """Chunks by their ids and texts."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks: dict[str, Chunk] = {}
        self._texts: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            self.chunks[chunk.id] = chunk
            self._texts.setdefault(chunk.content.strip(), []).append(chunk)

    def of(self, document: LangChainDocument) -> Chunk | None:
        """Return the chunk that a document is; None if it is none of these."""
        for id in (document.metadata.get("chunk"), document.id):
            if isinstance(id, str) and id in self.chunks:
                return self.chunks[id]
        same = self._texts.get(document.page_content.strip(), [])
        named = [chunk for chunk in same if chunk.document == document.metadata.get("document")]
        return next(iter([*named, *same]), None)


def _chunk(document: LangChainDocument) -> Chunk:
    """A chunk of its own. Its metadata is a stranger's: nothing of it is taken as it is."""
    text, said = document.page_content, document.metadata
    name = _name(said.get("document")) or _name(said.get("source")) or digest(text)
    begin = said.get("start_index")
    start = begin if isinstance(begin, int) and not isinstance(begin, bool) and 0 <= begin < _START else 0
    end = start + len(text)
    return Chunk(chunk_id(name, "plain", start, end, text), name, "plain", start, end, text)


def _name(value: object) -> str | None:
    """The name that metadata gives a document; None where it gives none, or one that is no text."""
    if not isinstance(value, str | PurePath):
        return None
    text = str(value)
    return text if len(text) <= LONGEST and text.isprintable() else digest(text)


def _scores(documents: Sequence[LangChainDocument]) -> list[float]:
    given = [[number(one.metadata.get(key)) for key in ("score", "relevance_score")] for one in documents]
    scores = [score for each in given for score in [one for one in each if one is not None][:1]]
    if len(scores) == len(given) and all(one >= other for one, other in pairwise(scores)):
        return scores
    return [1 / rank for rank in range(1, len(documents) + 1)]


@cache
def _adapter() -> Any:
    """The class that LangChain is given: made when first needed, as its base is imported only then."""
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables.config import run_in_executor

    class RagbedRetriever(BaseRetriever):
        """A retriever of ragbed."""

        k: int
        retriever: Any
        source_of: Any

        def _get_relevant_documents(self, query: str, *, run_manager: Any,
                                    k: int | None = None) -> list[LangChainDocument]:
            return self._found([query], k)[0]

        async def _aget_relevant_documents(self, query: str, *, run_manager: Any,
                                           k: int | None = None) -> list[LangChainDocument]:
            return (await run_in_executor(None, self._found, [query], k))[0]

        def batch(self, inputs: list[str], config: Any = None, *, return_exceptions: bool = False,
                  **kwargs: Any) -> list[list[LangChainDocument]]:
            found: Any = self._found
            return self._batch_with_config(found, inputs, config, return_exceptions=return_exceptions,
                                           run_type="retriever", **kwargs)

        async def abatch(self, inputs: list[str], config: Any = None, *, return_exceptions: bool = False,
                         **kwargs: Any) -> list[list[LangChainDocument]]:
            async def found(queries: list[str], k: int | None = None) -> Any:
                return await run_in_executor(None, self._found, queries, k)

            return await self._abatch_with_config(found, inputs, config, return_exceptions=return_exceptions,
                                                  run_type="retriever", **kwargs)

        def _found(self, queries: list[str], k: int | None = None) -> list[list[LangChainDocument]]:
            found: list[list[Hit]] = self.retriever.search(queries, self.k if k is None else k)
            made = [as_documents((hit.chunk for hit in hits), self.source_of) for hits in found]
            for document, hit in zip(chain(*made), chain(*found), strict=True):
                document.metadata |= {"score": hit.score, "rank": hit.rank, "found_by": hit.found_by}
            return made

    return RagbedRetriever
