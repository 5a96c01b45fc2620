"""Chunkers and embedders as factors: what questions bring is cut and embedded anew, and searched by each retriever."""
import contextlib
import json
from pathlib import Path

from ragbed.documents import Chunk
from ragbed.experiments import Gold, Plan, check_settings
from ragbed.experiments.running.gold import gold_by_span
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings.retrievers import label

BEIR = str(Path(__file__).parent / "data" / "beir")
CHUNKERS = [{"kind": "fixed", "size": 40}, {"kind": "sections", "target": 60, "largest": 90}]
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


def settings_of(**more):
    return check_settings({"name": "cut", "benchmark": {"kind": "beir", "path": BEIR}, "reasoning": "direct",
                           "conditions": "retrieved", "retriever": "dense", **more}, "cut.yaml")


def test_each_chunker_embedder_and_retriever_is_a_cell():
    settings = settings_of(chunkers=CHUNKERS, embedders=[MINILM, "all-MiniLM-L12-v2"], retriever=[{"k": 3}, {"k": 7}])
    plan = Plan.of(settings)
    cells = plan.cells
    assert len(cells) == 2 * 2 * 2
    assert {(cell.chunker, cell.embedder, cell.retriever) for cell in cells} == {
        (chunker, embedder, retriever) for chunker in ("fixed (size 40)", "sections (target 60, largest 90)")
        for embedder in ("all-MiniLM-L6-v2", "all-MiniLM-L12-v2") for retriever in ("dense@3", "dense@7")}
    assert {cell.finder for cell in cells} <= plan.finders.keys()


def test_what_places_no_search_has_no_chunker():
    settings = settings_of(chunkers=CHUNKERS, conditions=["retrieved", "closed-book"])
    cells = Plan.of(settings).cells
    assert [(cell.condition, cell.chunker) for cell in cells] == [
        ("retrieved", "fixed (size 40)"), ("retrieved", "sections (target 60, largest 90)"), ("closed-book", None)]


def test_a_retriever_that_embeds_nothing_is_one_cell_whatever_embeds():
    settings = settings_of(embedders=[MINILM, "all-MiniLM-L12-v2"], retriever=["bm25", "dense"])
    cells = Plan.of(settings).cells
    assert [(cell.retriever, cell.embedder) for cell in cells] == [
        ("bm25@5", None), ("dense@5", "all-MiniLM-L6-v2"), ("dense@5", "all-MiniLM-L12-v2")]


def test_without_these_factors_a_cell_has_none_of_them():
    settings = settings_of()
    (cell,) = Plan.of(settings).cells
    assert cell.finder == "dense@5"
    assert (cell.chunker, cell.embedder) == (None, None)


def test_parts_of_documents_are_found_and_gold_by_their_document(ragbed, serve, town):
    server = serve(lambda _: "<Answer>So it is [1]</Answer>")
    path = town.config(server.url, benchmark={"kind": "beir", "path": BEIR}, conditions="retrieved", reasoning="direct",
                       retriever=[{"kind": "dense", "k": 3}, {"kind": "bm25", "k": 3}], chunkers=CHUNKERS)
    cells = {cell["id"]: cell for cell in ragbed.json("run", path)["cells"]}
    assert {cell["chunker"] for cell in cells.values()} == {"fixed (size 40)", "sections (target 60, largest 90)"}
    fixed = [result for record in town.records() if "fixed" in cells[(result := record["result"])["cell"]]["chunker"]]
    for result in fixed:
        assert all(passage["end"] - passage["start"] <= 40 for passage in result["evidence"])
    assert any(passage["gold"] == "document" for result in fixed for passage in result["evidence"])
    before = town.hashes()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert town.hashes() == before


def test_settings_are_called_by_what_is_not_usual():
    (fixed, sections) = settings_of(chunkers=["fixed", {"kind": "sections", "target": 500}]).chunkers
    assert label(fixed) == "fixed"
    assert label(sections) == "sections (target 500)"
    (named, cut) = settings_of(embedders=["org/model-v2", {"model": "org/model-v2", "long": "truncated"}]).embedders
    assert label(named) == "model-v2"
    assert label(cut) == "model-v2 (long truncated)"


def test_gold_follows_into_the_chunks_of_a_retrievers_own_chunker(ragbed, tmp_path):
    path = tmp_path / "cut.yaml"
    path.write_text(json.dumps({
        "out": str(tmp_path), "benchmark": {"kind": "hotpotqa", "path": str(Path(BEIR).parent / "hotpotqa")},
        "reasoning": "search_only", "retriever": [
            {"kind": "bm25", "k": 20, "name": "cut", "build": {"chunker": {"kind": "fixed", "size": 40}}}]}))
    made = ragbed.json("evaluate-retrieval", path)
    with contextlib.closing(RunFolder.existing(Path(made["run"]))) as folder:
        found = [passage for result in folder.results() for passage in result.in_view]
    assert max(passage.end - passage.start for passage in found) <= 40
    assert {passage.gold for passage in found} == {None, "span"}


def test_a_gold_chunk_becomes_its_span():
    chunk = Chunk("c1", "d1", "plain", 5, 25, "the bridge was built")
    known, unknown, page = gold_by_span([Gold("", chunk="c1"), Gold("", chunk="c2"), Gold("d1", page=3)], {"c1": chunk})
    assert known == Gold("d1", "c1", "plain", 5, 25)
    assert (unknown, page) == (Gold("", chunk="c2"), Gold("d1", page=3))
