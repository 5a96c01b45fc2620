"""Miners: what each finds for a query, past what is left out, whoever asks."""
import numpy as np
import pytest

from ragbed.documents import Chunk, Document, SettingsError
from ragbed.experiments.guests.hard_negatives.miners import MiningQuery, Rows, miner_names, open_miner
from ragbed.experiments.guests.hard_negatives.names import extract_names, extract_subject

TEXTS = {
    "esk-1": "Esk\nThe Esk depot handled 1,577 parcels in 2021.",
    "esk-2": "Esk\nThe Esk depot handled 1,204 parcels in 2020.",
    "esk-3": "Esk\nThe Esk depot stands by the river.",
    "lund-1": "Lund\nThe town of Lund took 1,577 parcels in 2021.",
    "oslo-1": "Oslo\nA port in the north, it froze in 1871."}


VECTORS = {"esk?": (1.0, 0.0), "esk-1": (0.8, 0.6), "esk-2": (0.6, 0.8), "esk-3": (1.0, 0.0), "lund-1": (0.0, 1.0),
           "oslo-1": (-1.0, 0.0)}


class Axes:
    """Texts on axes that the test chose: the cosine of two is plain to see."""

    identity = "axes"

    def embed_queries(self, texts):
        return np.asarray([VECTORS[text] for text in texts], np.float32)

    def windows(self, texts, header=""):
        return [[(0, len(text))] for text in texts]

    def embed_passages(self, texts):
        return self.embed_queries([next(id for id, own in TEXTS.items() if own == text) for text in texts])


class Shelf:
    """A collection of the texts above."""

    content, among, embedder = "shelf", None, Axes()

    def __init__(self):
        self.chunks = [Chunk(id, id[:-2], "plain", 0, len(text), text) for id, text in TEXTS.items()]

    def texts(self):
        return (chunk.content for chunk in self.chunks)

    def document(self, id):
        return Document(id, id, id, "", "")

    def vectors(self, chunks):
        return self.embedder.embed_queries([chunk.id for chunk in chunks]), np.arange(len(chunks))

    def nearest(self, queries, k, among=None):
        vectors = self.embedder.embed_queries([chunk.id for chunk in self.chunks])
        ranked = [np.argsort(-(vectors @ query), kind="stable") for query in queries]
        return [[(int(row), float(vectors[row] @ query)) for row in rows if among is None or among[row]][:k]
                for rows, query in zip(ranked, queries, strict=True)]


@pytest.fixture
def shelf():
    return Shelf()


def chunk(shelf, id):
    return next(one for one in shelf.chunks if one.id == id)


def mined(shelf, name, *asked, k=9):
    miner, _ = open_miner(name, Rows(shelf), seed=1)
    return [[(hit.chunk.id, hit.rank) for hit in hits] for hits in miner.mine(asked, k)]


def test_neighbours_are_ranked_among_what_is_not_left_out(shelf):
    without = MiningQuery("b", "esk?", exclude=frozenset({"esk-3", "esk-2", "gone"}))
    assert mined(shelf, "dense", MiningQuery("a", "esk?"), without, k=2) == [
        [("esk-3", 1), ("esk-1", 2)], [("esk-1", 1), ("lund-1", 2)]]


def test_a_larger_k_finds_the_same_and_more(shelf):
    for name in ("dense", "entity", "random", "same_document"):
        asked = MiningQuery("a", "esk?", (chunk(shelf, "esk-1"),), frozenset({"esk-1"}))
        assert mined(shelf, name, asked, k=1)[0] == mined(shelf, name, asked, k=9)[0][:1]


def test_the_same_document_is_searched_nearest_first_and_no_other(shelf):
    asked = MiningQuery("a", "esk?", (chunk(shelf, "esk-1"),), frozenset({"esk-1"}))
    assert mined(shelf, "same_document", asked, MiningQuery("b", "esk?")) == [[("esk-3", 1), ("esk-2", 2)], []]


def test_an_entity_with_other_numbers_is_found_and_one_with_the_same_or_none_is_not(shelf):
    asked = MiningQuery("a", "How many parcels did Esk handle in 2021?", (chunk(shelf, "esk-1"),), frozenset({"esk-1"}))
    assert mined(shelf, "entity", asked) == [[("esk-2", 1)]]


def test_what_is_drawn_is_drawn_by_seed_and_query(shelf):
    asked = [MiningQuery(key, "esk?", exclude=frozenset({"oslo-1"})) for key in "abcdefgh"]
    orders = mined(shelf, "random", *asked)
    assert orders == mined(shelf, "random", *asked)
    assert len({tuple(order) for order in orders}) > 1
    assert all(sorted(id for id, _ in order) == ["esk-1", "esk-2", "esk-3", "lund-1"] for order in orders)


def test_every_kind_of_retriever_that_needs_no_settings_is_a_miner(shelf):
    assert {"dense", "bm25", "fused", "same_document", "entity", "random"} <= set(miner_names())
    with pytest.raises(SettingsError, match="unknown miner 'nearest'; choose from: bm25, dense, "):
        open_miner("nearest", Rows(shelf), 0)


def test_names_are_capitalised_spans_without_what_only_begins_a_sentence():
    assert extract_names("Which film by Chris Evans was in The Hague? It is the Bank of England's.") == {
        "chris evans", "hague", "bank of england"}


def test_korean_names_lose_their_particles():
    assert {"삼성전자", "매출", "kb금융지주"} <= extract_names("삼성전자의 2023년 매출은 KB금융지주보다 높다")
    assert extract_subject("삼성전자는 2023년 매출을 밝혔다") == "삼성전자"
