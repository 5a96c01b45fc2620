"""LangChain's retrievers as ours and ours as LangChain's, with LangChain's own classes."""
import math

import numpy as np
import pytest
from each_case import each
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from ragbed.documents import Chunk, SettingsError
from ragbed.documents.types import chunk_id
from ragbed.experiments.guests.external_retrievers import FromLangChain, as_documents, as_langchain
from ragbed.experiments.guests.external_retrievers.langchain import _MAX_NAME
from ragbed.retrieval import Hit

TEXTS = ["Oslo is the capital of Norway.", "Rome is the capital of Italy.", "Crabs live on the northern reef."]
CHUNKS = [Chunk(f"c{at}", f"d{at}", "plain", 10, 10 + len(text), text, pages=(at + 1, at + 2))
          for at, text in enumerate(TEXTS)]


class Shared:
    """Ours: finds chunks by the words that they share with the query, and keeps count of searches."""

    def __init__(self):
        self.searches = []

    def search(self, queries, k):
        self.searches.append(list(queries))
        return [self._hits(set(query.split()), k) for query in queries]

    def _hits(self, words, k):
        found = sorted(((-len(words & set(chunk.content.split())), at) for at, chunk in enumerate(CHUNKS)))
        return [Hit(CHUNKS[at], -score, rank, "shared") for rank, (score, at) in enumerate(found[:k], 1)]


class Given(BaseRetriever):
    """LangChain's: gives what it was given."""

    documents: list

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


def given(*documents, chunks=None, k=10):
    return FromLangChain(Given(documents=list(documents)), chunks).search(["?"], k)[0]


def store(documents):
    made = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    made.add_documents(documents)
    return made


def test_ours_gives_documents_with_everything_that_is_known_of_a_hit():
    first, second = as_langchain(Shared(), 2, {"d0": "oslo.pdf", "d1": "rome.pdf"}.__getitem__).invoke("the Norway. of")
    assert isinstance(first, Document)
    assert (first.page_content, first.id) == (TEXTS[0], "c0")
    assert first.metadata == {"chunk": "c0", "document": "d0", "source": "oslo.pdf", "format": "plain", "start": 10,
                              "end": 40, "pages": [1, 2], "score": 3, "rank": 1, "found_by": "shared"}
    assert (second.metadata["source"], second.metadata["rank"]) == ("rome.pdf", 2)


async def test_ours_is_asked_alone_together_and_without_waiting():
    inner = Shared()
    retriever = as_langchain(inner, 1)
    expected = [["c0"], ["c2"]]
    queries = ["Norway.", "reef."]
    assert [[one.id for one in found] for found in retriever.batch(queries)] == expected
    assert [[one.id for one in found] for found in await retriever.abatch(queries)] == expected
    assert inner.searches == [queries, queries]
    assert [one.id for one in await retriever.ainvoke("reef.")] == ["c2"]
    assert [one.id for one in retriever.invoke("reef.", k=3)] == ["c2", "c0", "c1"]
    assert [len(found) for found in retriever.batch(queries, k=2)] == [2, 2]
    assert [one.id async for found in retriever.astream("reef.") for one in found] == ["c2"]
    assert (retriever | RunnableLambda(len)).invoke("reef.") == 1
    assert retriever.batch([]) == []


def test_theirs_finds_our_chunks_again_and_there_and_back_changes_nothing():
    hits, = FromLangChain(as_langchain(Shared(), 1), CHUNKS).search(["the Norway. of"], 3)
    assert [hit.chunk for hit in hits] == CHUNKS
    assert [(hit.score, hit.rank, hit.found_by) for hit in hits] == [
        (3.0, 1, "langchain"), (2.0, 2, "langchain"), (1.0, 3, "langchain")]


def test_a_vector_store_of_langchains_is_asked_for_as_many_as_are_wanted():
    many = [Chunk(f"{at}", "d", "plain", at, at + 1, f"text {at}") for at in range(30)]
    retriever = store(as_documents(many)).as_retriever()
    hits, again = FromLangChain(retriever, many).search(["text 7", "text 7"], 20)
    assert len(hits) == 20
    assert hits[0].chunk == many[7]
    assert [hit.score for hit in hits[:4]] == [1, 1 / 2, 1 / 3, 1 / 4]
    assert again == hits


def test_one_that_has_a_number_of_its_own_gives_what_it_gives():
    assert [hit.chunk.id for hit in given(*as_documents(CHUNKS), chunks=CHUNKS, k=2)] == ["c0", "c1"]
    assert len(given(*as_documents(CHUNKS), chunks=CHUNKS, k=9)) == 3
    assert FromLangChain(Given(documents=[])).search(["?"], 0) == [[]]
    assert FromLangChain(Given(documents=[])).search([], 5) == []


def test_a_document_without_an_id_is_known_by_its_text():
    twins = [*CHUNKS, Chunk("c9", "d9", "plain", 0, 30, TEXTS[0] + " ")]
    found = given(Document(TEXTS[0]), Document(TEXTS[0] + "\n", metadata={"document": "d9"}), chunks=twins)
    assert [hit.chunk.id for hit in found] == ["c0", "c9"]
    again = given(Document(TEXTS[1], id="other"), Document(TEXTS[1]), chunks=CHUNKS)
    assert [(hit.chunk.id, hit.rank) for hit in again] == [("c1", 1)]


def test_what_is_none_of_the_chunks_is_refused():
    with pytest.raises(SettingsError, match="not one of the chunks it was given; put the chunk's id") as refused:
        given(Document("Bells ring."), chunks=CHUNKS)
    assert "Bells" not in str(refused.value)  # the reader of the error may not be allowed to read the document


def test_without_chunks_a_document_becomes_one_with_a_lasting_id():
    one, other = given(Document("Bells ring.", id="random", metadata={"source": "bells.txt", "start_index": 7}),
                       Document("Bells ring."))
    assert one.chunk == Chunk(chunk_id("bells.txt", "plain", 7, 18, "Bells ring."), "bells.txt", "plain", 7, 18,
                              "Bells ring.")
    assert (other.chunk.start, other.chunk.end, len(other.chunk.document)) == (0, 11, 32)
    assert given(Document("Bells ring."))[0].chunk == other.chunk


@each("metadata", [
    {"source": "x" * 10_000}, {"source": 10 ** 5_000}, {"source": True}, {"source": np.zeros(2)},
    {"source": "a\nb\x1b[31m"}, {"source": {"a": 1}}, {"source": object()},
    {"start_index": -1}, {"start_index": True}, {"start_index": 2 ** 70}, {"start_index": "7"}, {"document": ["d"]},
    {"chunk": ["c"]}, {1: 2}, {"score": "high"}, {"pages": "all"}])
def test_hostile_metadata_stays_outside(metadata):
    for chunks in (None, [*CHUNKS]):
        hit, = given(Document(TEXTS[0], metadata=metadata), chunks=chunks)
        chunk = hit.chunk
        assert chunk.content == TEXTS[0]
        assert chunk.end - chunk.start == len(TEXTS[0])
        assert 0 < len(chunk.document) <= _MAX_NAME
        assert chunk.document.isprintable()
        assert hit.score == 1


@each(("scores", "expected"), [
    ([0.9, 0.5, 0.5], [0.9, 0.5, 0.5]), ([0, -1, -2], [0, -1, -2]), ([0.2, 0.5, 0.9], [1, 1 / 2, 1 / 3]),
    ([0.9, None, 0.1], [1, 1 / 2, 1 / 3]), ([1, math.nan, 0], [1, 1 / 2, 1 / 3]), ([math.inf, 1, 0], [1, 1 / 2, 1 / 3]),
    ([True, 0.5, 0.1], [1, 1 / 2, 1 / 3]), ([10 ** 400, 1, 0], [1, 1 / 2, 1 / 3])])
def test_scores_are_taken_where_all_have_them_and_they_fall(scores, expected):
    for key in ("score", "relevance_score"):
        found = given(*(Document(text, metadata={} if score is None else {key: score})
                        for text, score in zip(TEXTS, scores, strict=True)))
        assert [hit.score for hit in found] == expected


@pytest.mark.parametrize("found", [None, "text", ["text"], [None], [{"page_content": "x"}]])
def test_what_is_no_list_of_documents_is_refused(found):
    class Odd(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return found

    with pytest.raises(SettingsError, match="did not return a list of LangChain documents"):
        FromLangChain(Odd()).search(["?"], 3)
