"""Searches that many questions share, of their own chunks, those that all share, or all of them."""
import asyncio
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ragbed.retrieval.pool
from ragbed.agents import Database
from ragbed.agents.search import SCHEMA, Searcher, SearchStore, StoredRetriever
from ragbed.documents import CallError, Chunk, ReplayMiss
from ragbed.experiments import read_settings
from ragbed.retrieval import Dense, Hit, Pool, open_embedder
from ragbed.retrieval.pool import RetrieverChoice, ScopedQuery, ScopedSearch, WholeSearch
from ragbed.retrieval.storage.cache import CachedEmbedder
from ragbed.strategies import Search

DATA = Path(__file__).parent / "data"
TEXTS = ["Oslo is the capital of Norway.", "Rome is the capital of Italy.", "Crabs live on the northern reef.",
         "Bells that are cast in winter ring lower.", "The lamp was lit in 1871."]


def chunk(name, text):
    return Chunk(name, name, "plain", 0, len(text), text)


CHUNKS = [chunk(f"c{at}", text) for at, text in enumerate(TEXTS)]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory):
    return CachedEmbedder(open_embedder("all-MiniLM-L6-v2"), tmp_path_factory.mktemp("vectors"))


def searched(pool, *asked, k):
    return ScopedSearch(pool, RetrieverChoice(Dense())).search([ScopedQuery(*one) for one in asked], k)


def found(pool, scope, query, k=10):
    return [hit.chunk.id for hit in searched(pool, (scope, query), k=k)[0]]


@pytest.fixture(scope="module")
def pool(embedder):
    made = Pool({"own:a": [CHUNKS[4], CHUNKS[0], CHUNKS[2]], "own:b": [CHUNKS[1], CHUNKS[2]], "shared": [],
                 "all": CHUNKS}, embedder)
    made.embed()
    return made


def test_only_the_chunks_of_the_scope_are_found_best_first(pool):
    query = "What is the capital of Norway?"
    assert found(pool, "own:a", query)[0] == "c0"
    assert set(found(pool, "own:a", query)) == {"c0", "c2", "c4"}
    assert found(pool, "own:b", query)[0] == "c1"
    assert found(pool, "all", query, 2) == ["c0", "c1"]
    assert found(pool, "shared", query) == []
    (hits,) = searched(pool, ("all", query), k=3)
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert hits[0].score > hits[1].score > hits[2].score
    assert {hit.found_by for hit in hits} == {"dense"}


def test_the_score_is_the_cosine_of_the_nearest_window(embedder):
    long = chunk("long", "The ledger lists sacks of flour. " * 120 + "Oslo is the capital of Norway.")
    made = Pool({"all": [CHUNKS[2], long, CHUNKS[3]]}, embedder)
    made.embed()
    (best, *_), = searched(made, ("all", "capital of Norway"), k=3)
    assert best.chunk is long
    windows = [long.content[start:end] for start, end in embedder.windows([long.content])[0]]
    assert len(windows) > 2
    cosines = embedder.embed_passages(windows) @ embedder.embed_queries(["capital of Norway"])[0]
    assert best.score == pytest.approx(float(np.max(cosines)), abs=1e-5)


def test_no_text_is_embedded_twice(embedder, pool):
    before = embedder.embedded
    again = Pool({"all": [*CHUNKS, chunk("new", "Ferries are slow.")]}, embedder)
    told = []
    again.embed(lambda stage, done, total: told.append((stage, done, total)))
    assert embedder.embedded == before + 1
    assert told[-1] == ("embed", 6, 6)
    assert again.content != pool.content
    assert Pool({"all": CHUNKS[::-1]}, embedder).content == pool.content


# Whole runs.

def hotpot(town, **settings):
    return {"benchmark": {"kind": "hotpotqa", "path": str(DATA / "hotpotqa/hotpot_dev_distractor_v1.json")},
            "conditions": "retrieved", **settings}


def test_threads_that_search_at_once_open_one_retriever_and_lose_none(pool, monkeypatch):
    opened = []

    class Slow(Dense):
        def open(self, collection, deps):
            opened.append(collection)
            time.sleep(0.05)
            return super().open(collection, deps)

    whole, query = WholeSearch(pool.scope("all"), RetrieverChoice(Slow())), "What is the capital of Norway?"
    with ThreadPoolExecutor(8) as threads:
        first = [threads.submit(whole.search, [query], 1) for _ in range(8)]
        assert {one.result()[0][0].chunk.id for one in first} == {"c0"}
        assert len(opened) == 1
        monkeypatch.setattr(ragbed.retrieval.pool, "_MAX_OPEN", 1)
        scoped = ScopedSearch(pool, RetrieverChoice(Dense()))
        asked = [threads.submit(scoped.search, [ScopedQuery(f"own:{'ab'[place % 2]}", query)], 1)
                 for place in range(200)]
        assert [one.result()[0][0].chunk.id for one in asked] == ["c0", "c1"] * 100


def test_a_question_searches_its_own_chunks_or_those_of_all(ragbed, serve, town):
    server = serve(lambda _: "<Answer>Oslo [1]</Answer>")
    path = town.config(server.url, **hotpot(town, retriever=[{"k": 4}, {"k": 4, "over": "all", "name": "all@4"}]))
    cells = {cell["retriever"]: cell for cell in ragbed.json("run", path)["cells"]}
    assert {name: (cell["format"], cell["retrieval"]) for name, cell in cells.items()} == {
        "dense@4": (None, "once"), "all@4": (None, "once")}
    own = {question.id: {chunk.id for chunk in question.own}
           for question in read_settings(path).benchmark.load().questions}
    for record in town.records():
        result = record["result"]
        assert len(result["evidence"]) == 4
        inside = {passage["chunk"] for passage in result["evidence"]} <= own[result["question"]]
        assert inside or result["cell"] == cells["all@4"]["id"]
        assert result["scores"]["recall@5"] is not None
    before = town.hashes()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert town.hashes() == before


def test_questions_without_chunks_search_the_shared_ones(ragbed, serve, town):
    path = town.config(serve(lambda _: "<Answer>So it is [1]</Answer>").url,
                       benchmark={"kind": "beir", "path": str(DATA / "beir")}, conditions=["retrieved", "gold"],
                       retriever={"k": 2})
    cells = {cell["id"]: cell["condition"] for cell in ragbed.json("run", path)["cells"]}
    shown = {}
    for record in town.records():
        result = record["result"]
        shown[cells[result["cell"]], result["question"]] = [passage["gold"] for passage in result["evidence"]]
        assert result["scores"].get("recall@5") is None or cells[result["cell"]] == "retrieved"
    assert shown["retrieved", "1"][0] == "document"
    assert {question: levels for (condition, question), levels in shown.items() if condition == "gold"} == {
        "1": ["document", "document"], "2": ["document"]}


def test_what_was_found_is_perturbed(ragbed, serve, town):
    names = ["none", "drop_gold", "negatives@3", "gold_at@4"]
    path = town.config(serve(lambda _: "<Answer>Oslo [1]</Answer>").url,
                       **hotpot(town, perturbations=names, retriever={"k": 5}))
    cells = {cell["id"]: cell["perturbation"] or "none" for cell in ragbed.json("run", path)["cells"]}
    by = {}
    for record in town.records():
        result = record["result"]
        by.setdefault(result["question"], {})[cells[result["cell"]]] = result
    for found_of in by.values():
        plain = [passage["chunk"] for passage in found_of["none"]["evidence"]]
        gold = [passage["chunk"] for passage in found_of["none"]["evidence"] if passage["gold"]]
        assert gold
        assert [passage["chunk"] for passage in found_of["drop_gold"]["evidence"]] == [
            one for one in plain if one not in gold]
        assert found_of["drop_gold"]["gold_in_view"] is False
        assert not found_of["drop_gold"]["answerable"]
        padded = found_of["negatives@3"]["evidence"]
        assert [passage["chunk"] for passage in padded][:5] == plain
        assert len(padded) == 8
        assert not any(passage["gold"] for passage in padded[5:])
        others = [one for one in plain if one not in gold]
        assert [passage["chunk"] for passage in found_of["gold_at@4"]["evidence"]] == [
            *others[:3], *gold, *others[3:]]


def test_a_corpus_that_changed_is_searched_again_in_an_unfinished_run(ragbed, serve, town):
    folder = town.folder / "beir"
    (folder / "qrels").mkdir(parents=True)
    for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (folder / file).write_text((DATA / "beir" / file).read_text())
    server = serve(lambda _: {"status": 401} if len(server.requests) == 2 else "<Answer>So</Answer>")
    path = town.config(server.url, benchmark={"kind": "beir", "path": str(folder)}, conditions="retrieved",
                       retriever={"k": 2}, concurrency=1, reasoning=["direct", "chain_of_thought"])
    status, _, err = ragbed("run", path)
    assert (status, "HTTP 401" in err.splitlines()[-1]) == (2, True)
    with (folder / "corpus.jsonl").open("a") as corpus:
        corpus.write(json.dumps({"_id": "77", "title": "", "text": "Reefs grow."}) + "\n")
    status, _, err = ragbed("run", path)
    assert (status, "the chunks that dense@2 searches has changed" in err) == (0, True)


def test_an_embedder_that_is_not_here_is_one_line_before_any_call(ragbed, serve, town):
    server = serve(lambda _: "x")
    ragbed.refuses("run", town.config(server.url, **hotpot(town, retriever={"build": {"embedder": "no/such"}})),
                   says=["embedding model no/such was not found"])
    assert server.requests == []


OSLO = Chunk("c1", "oslo", "plain", 0, 30, "Oslo is the capital of Norway.")


class Pages:
    """A retriever that keeps count."""

    def __init__(self) -> None:
        self.batches: list[tuple[tuple[str, ...], int]] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.batches.append((tuple(queries), k))
        time.sleep(0.05)
        return [[Hit(OSLO, 1.0, 1, "toy")] for _ in queries]


async def test_searches_of_many_questions_go_together_and_equal_ones_once():
    pages = Pages()
    searcher = Searcher(pages, 5)
    queries = ["a", "b", "c", "a", "b", "d"] * 20
    found = await asyncio.gather(*(searcher(Search(query)) for query in queries))
    assert found == [[OSLO]] * 120
    await searcher(Search("a"))
    await searcher(Search("a", k=2))
    searcher.close()
    asked = [query for queries, k in pages.batches if k == 5 for query in queries]
    assert sorted(asked) == ["a", "b", "c", "d"]
    assert len(pages.batches) <= 3


async def test_long_queries_are_searched_a_few_at_a_time_and_short_ones_do_not_wait_for_them():
    pages = Pages()
    searcher = Searcher(pages, 5)
    long = [asyncio.create_task(searcher(Search(letter * 3_000))) for letter in "vwxyz"]
    await asyncio.gather(*(searcher(Search(query)) for query in "ab"))
    assert not long[-1].done()
    await asyncio.gather(*long)
    searcher.close()
    (first, *rest) = [[query[0] for query in queries] for queries, _ in pages.batches]
    assert first == ["v", "a", "b", "w"]  # 6,002 characters
    assert rest == [["x", "y"], ["z"]]


class Failing(Pages):
    """A retriever that asks a model, which fails for one query."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        found = super().search(queries, k)
        if "broken" in queries:
            raise CallError("m: HTTP 500", "http_500")
        return found


async def test_a_call_that_fails_during_a_search_fails_the_question_that_asked_it_alone():
    pages = Failing()
    searcher = Searcher(pages, 5)
    found = await asyncio.gather(*(searcher(Search(query)) for query in ["a", "b", "broken", "c"]),
                                 return_exceptions=True)
    searcher.close()
    assert [found[0], found[1], found[3]] == [[OSLO]] * 3
    assert isinstance(found[2], CallError)


def kept(database: Database, mode: str = "record", of: str = "pages") -> StoredRetriever[str]:
    searches = SearchStore(lambda document: f"{document}.md")
    searches.begin(database, mode)
    return StoredRetriever(searches, "the index", lambda query, k: {"of": of, "query": query, "k": k})


async def test_what_was_found_is_given_again_without_a_retriever_and_nothing_else_is(tmp_path):
    database = Database(tmp_path / "d", SCHEMA)
    first = kept(database)
    searcher = Searcher(Pages(), 5, first)
    hits = await searcher.hits("a", 5)
    searcher.close()
    again = kept(database, "replay")
    replay = Searcher(None, 5, again)
    assert await replay.hits("a", 5) == hits
    assert again.searches.sources == {"oslo": "oslo.md"}
    for query, k in (("a", 4), ("b", 5)):
        with pytest.raises(ReplayMiss, match="no recorded result of the index for"):
            await replay.hits(query, k)
    replay.close()
    other = Searcher(None, 5, kept(database, "replay", of="other pages"))
    with pytest.raises(ReplayMiss):
        await other.hits("a", 5)
    other.close()
    database.close()


async def test_a_search_that_is_kept_is_not_made_again_but_in_mode_live(tmp_path):
    database = Database(tmp_path / "d", SCHEMA)
    for mode, searched in (("record", 1), ("record", 0), ("live", 1)):
        pages = Pages()
        searcher = Searcher(pages, 5, kept(database, mode))
        for _ in range(2):
            await searcher.hits("a", 5)
        searcher.close()
        assert len(pages.batches) == searched
    assert database.read("SELECT count(*) FROM searches") == [(1,)]
    database.close()
