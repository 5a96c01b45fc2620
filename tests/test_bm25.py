"""BM25: scores computed by hand, what is found and what is not, and in which order."""
from math import log

import numpy as np
import pytest
from each_case import each

from ragbed.documents import Chunk, Document
from ragbed.retrieval import Bm25, RerankerDeps


class Few:
    """Texts as a collection, as far as BM25 asks for it."""

    wording = "few"

    def __init__(self, *texts, among=None):
        self.chunks = [Chunk.of(Document(str(row), "s", "t", "", text), "plain", 0, len(text))
                       for row, text in enumerate(texts)]
        self.among = None if among is None else np.array(among)

    def texts(self):
        return (chunk.content for chunk in self.chunks)


def found(texts, query, k=10, among=None, **settings):
    """Row and score of what a query finds."""
    (hits,) = Bm25(**settings).open(Few(*texts, among=among), RerankerDeps()).search([query], k)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert {hit.found_by for hit in hits} <= {"bm25"}
    return [(int(hit.chunk.document), pytest.approx(hit.score, abs=1e-5)) for hit in hits]


def rows(*args, **settings):
    return [row for row, _ in found(*args, **settings)]


TEXTS = ("reef coral reef", "coral", "harbour lighthouse harbour pier")  # 3, 1 and 4 words; 8 / 3 on average


def test_the_score_is_lucenes():
    # reef: in 1 of 3 chunks, twice in the first; coral: in 2 of 3, once each. k1 is 1.2 and b is 0.75.
    reef, coral = log(1 + 2.5 / 1.5), log(1 + 1.5 / 2.5)
    first, second = 1.2 * (0.25 + 0.75 * 3 / (8 / 3)), 1.2 * (0.25 + 0.75 * 1 / (8 / 3))
    assert found(TEXTS, "Coral reefs") == [(0, reef * 2 / (2 + first) + coral / (1 + first)),
                                           (1, coral / (1 + second))]


def test_a_word_asked_for_twice_counts_twice():
    ((_, once), *_), ((_, twice), *_) = found(TEXTS, "pier"), found(TEXTS, "pier pier")
    assert twice == 2 * once.expected


def test_k1_and_b_are_the_formulas():
    # Without either, a word that is there gives its weight, however often it stands there and however long the chunk.
    assert found(TEXTS, "reef", k1=0, b=0) == [(0, log(1 + 2.5 / 1.5))]


@pytest.mark.parametrize(("method", "score"), [
    ("lucene", log(1 + 2.5 / 1.5) * 2 / (2 + 1.3125)),
    ("robertson", log(2.5 / 1.5) * 2 / (2 + 1.3125)),
    ("atire", log(3) * 2 * 2.2 / (2 + 1.3125)),
    ("bm25l", log(4 / 1.5) * 2.2 * (2 / 1.09375 + 0.5) / (1.2 + 2 / 1.09375 + 0.5)),
    ("bm25+", log(4) * (2 * 2.2 / (2 + 1.3125) + 0.5))])
def test_every_method_finds_only_what_holds_a_word(method, score):
    assert found(TEXTS, "reef", method=method) == [(0, score)]


GENERALS, HOUSES = ("The generals were running", "a general election"), ("Die Häuser am Hafen", "Das Haus", "Le port")
STOPS = ("to be or not to be", "The reef")


@each(("texts", "query", "settings", "expected"), [
    (GENERALS, "run", {}, [0]), (GENERALS, "run", {"stemming": False}, []), (GENERALS, "general", {}, [1, 0]),
    (GENERALS, "general", {"stemming": False}, [1]), (HOUSES, "Häusern", {"language": "german"}, [1, 0]),
    (HOUSES, "die das", {"language": "german"}, [1, 0]), (HOUSES, "die", {"language": "french"}, [0]),
    (STOPS, STOPS[0], {}, [0]), (STOPS, STOPS[0], {"stopwords": False}, [0]),
    (STOPS, "reef to", {"stopwords": ("to",)}, [1]), (STOPS, "the reef", {"stopwords": ("reef",)}, [1])])
def test_stems_and_stop_words_are_those_of_the_language_unless_it_is_said_otherwise(texts, query, settings, expected):
    assert rows(texts, query, **settings) == expected


@pytest.mark.parametrize(("k", "expected"), [(10, [0, 2, 3, 5]), (3, [0, 2, 3]), (1, [0])])
def test_ties_go_to_the_earlier_chunk(k, expected):
    assert rows(["pier", "reef", "pier", "pier", "reef", "pier"], "pier", k=k) == expected


def test_only_chunks_of_the_mask_are_found_and_weigh_as_before():
    assert found(TEXTS, "coral", among=[False, True, True]) == found(TEXTS, "coral")[:1]
    assert rows(TEXTS, "coral", among=[True, False, True]) == [0]
    assert rows(TEXTS, "coral", among=[False] * 3) == []
    assert rows(TEXTS, "coral", among=[False, False, True], method="bm25+") == []
    assert rows(["pier"] * 9 + ["pier reef"], "pier reef", k=2, among=[False] * 8 + [True] * 2) == [9, 8]


@pytest.mark.parametrize("query", ["", " \n", "volcano", "the", "?!", "\0", "\ud800"])
def test_a_query_without_a_known_word_finds_nothing(query):
    assert found(TEXTS, query) == []


@pytest.mark.parametrize("texts", [[], [""], ["", "...", "the"]])
def test_chunks_without_a_word_are_searched_in_vain(texts):
    assert found(texts, "reef") == []


@pytest.mark.slow
def test_hostile_text_is_searched_like_any_other():
    texts = ["x" * 1_000_000, "a\0reef\ud800", "\u0301" * 100_000 + " pier", "1," * 100_000, "가" * 300]
    for query, row in (("reef", 1), ("pier", 2), ("x" * 255, 0)):
        assert rows(texts, query, language="english") == [row]


PHRASES = ("To be, or not to be: that is the question", "The Who are a band", "The IT department", "a reef")


@each(("query", "expected"), [
    ("to be or not to be", [0]), ("The Who", [1]), ("IT", [2]), ("the", [2, 1, 0]), ("The reef", [3]),
    ("what is this, and where was it?", [2, 0]), ("the pier", []), ("what pier", [])])
def test_a_query_of_stop_words_alone_is_searched_with_them(query, expected):
    assert rows(PHRASES, query) == expected


def test_a_list_of_stop_words_is_searched_as_well_if_there_is_nothing_else():
    assert rows(STOPS, "reef", stopwords=("Reef",)) == [1]
    assert rows(STOPS, "reef be", stopwords=("Reef",)) == [0]
