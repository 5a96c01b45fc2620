"""The formats that a built set is written in: each reads back with its fields, and ours and BEIR's by our loaders."""
import json
from datetime import datetime

import pandas as pd
import pyarrow.parquet as pq
import pytest

from ragbed.documents import Chunk, Document
from ragbed.documents.errors import BenchmarkError
from ragbed.documents.types import Page
from ragbed.experiments.benchmarks.jsonl import OwnQuestions
from ragbed.experiments.guests.construct.export_formats import EXPORTS, collect_items, write_exports
from ragbed.experiments.guests.construct.stages import Library
from ragbed.experiments.guests.datasets.beir import Beir
from ragbed.experiments.guests.datasets.crest import Crest
from ragbed.experiments.guests.datasets.hotpotqa import HotpotQa
from ragbed.experiments.guests.review.items import Evidence, Item, question_line
from ragbed.experiments.running.gold import Places
from ragbed.strategies import REFUSAL

PLAIN = "Esk opened in 1911.\nIts crane lifts 12.5 tonnes."
HTML = "<p>Esk opened in 1911.</p><p>Its crane lifts 12.5 tonnes.</p>"
ESK = Document("d1", "esk.pdf", "Esk", HTML, PLAIN, (Page(1, 0, 0), Page(2, 26, 20)))
ROSK = Document("d2", "rosk.html", "Rosk", "<p>Rosk ground barley.</p>", "Rosk ground barley.")
FIRST, SECOND = Chunk.of(ESK, "plain", 0, 20), Chunk.of(ESK, "plain", 20, len(PLAIN))
WEB, MILL = Chunk.of(ESK, "html", 0, len(HTML)), Chunk.of(ROSK, "plain", 0, 19)
LIBRARY = Library({"d1": ESK, "d2": ROSK}, [FIRST, SECOND, WEB, MILL], 1, 0, 0, None, lambda: None)
CRANE = Evidence("d1", "plain", 20, len(PLAIN), "Its crane lifts 12.5 tonnes.")
GRIST = Evidence("d2", "plain", 0, 19, "Rosk ground barley.")
ITEMS = [
    Item("i1", "How much does the crane of Esk lift?", ("12.5 tonnes", "12.5 t"), evidence=(CRANE,), chunks=(SECOND,),
         tags={"reasoning": "numerical"}, measured={"solved": 1.0}),
    Item("i2", "What did Rosk grind while Esk lifted 12.5 tonnes?", ("barley",), evidence=(CRANE, GRIST),
         options=("wheat", "barley"), measured={"solved": 2 / 3}),
    Item("i3", "Who owned Rosk?", ("Holm",), answerable=False, evidence=(GRIST,))]


@pytest.fixture
def out(tmp_path):
    write_exports(collect_items(ITEMS, LIBRARY, "crest", "writer-1"), EXPORTS, tmp_path)
    return tmp_path


def lines(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_beir_is_read_by_its_loader_with_the_chunks_that_hold_the_evidence_as_gold(out):
    benchmark = Beir(path=str(out / "beir")).load()
    assert {one.id: [gold.document for gold in one.gold] for one in benchmark.questions} == {
        "i1": [SECOND.id, WEB.id], "i2": [SECOND.id, WEB.id, MILL.id]}  # in either rendering of the document
    assert [chunk.document for chunk in benchmark.shared] == [FIRST.id, SECOND.id, WEB.id, MILL.id]
    assert lines(out / "beir" / "corpus.jsonl")[3] == {
        "_id": MILL.id, "title": "Rosk", "text": "Rosk ground barley.", "metadata": {}}
    qrels = (out / "beir" / "qrels" / "test.tsv").read_text()
    assert qrels.startswith(f"query-id\tcorpus-id\tscore\ni1\t{SECOND.id}\t1\n")


def test_ragas_has_a_row_of_a_testset_for_each_question(out):
    rows = lines(out / "ragas" / "testset.jsonl")
    assert rows[0] == {"user_input": ITEMS[0].question, "reference_contexts": [SECOND.content],
                       "reference": "12.5 tonnes", "synthesizer_name": "ragbed_crest"}
    assert (rows[2]["reference"], rows[2]["reference_contexts"]) == (REFUSAL, [])


def test_autorag_has_gold_as_lists_of_lists_and_a_time_in_the_metadata(out):
    schema = pq.read_schema(out / "autorag" / "qa.parquet")
    assert {name: str(schema.field(name).type) for name in schema.names} == {
        "qid": "string", "query": "string", "retrieval_gt": "list<element: list<element: string>>",
        "generation_gt": "list<element: string>"}
    asked = pd.read_parquet(out / "autorag" / "qa.parquet")
    assert [[list(group) for group in gold] for gold in asked.retrieval_gt] == [
        [[SECOND.id, WEB.id]], [[SECOND.id, WEB.id], [MILL.id]], [[]]]
    assert [list(gold) for gold in asked.generation_gt] == [["12.5 tonnes", "12.5 t"], ["barley"], [REFUSAL]]
    corpus = pd.read_parquet(out / "autorag" / "corpus.parquet")
    assert list(corpus.columns) == ["doc_id", "contents", "metadata"]
    assert {id for gold in asked.retrieval_gt for group in gold for id in group} <= set(corpus.doc_id)
    assert corpus.metadata[0] == {"last_modified_datetime": datetime(1970, 1, 1), "prev_id": None,
                                  "next_id": SECOND.id}


def test_yourbench_has_choices_their_gold_place_and_the_sources(out):
    one, other, none = lines(out / "yourbench" / "prepared_lighteval.jsonl")
    assert (one["choices"], one["gold"], one["ground_truth_answer"], one["question_mode"]) == (
        ["12.5 tonnes"], [0], "12.5 tonnes", "open-ended")
    assert (other["choices"], other["gold"], other["ground_truth_answer"], other["question_mode"]) == (
        ["wheat", "barley"], [1], "B", "multi-choice")
    assert (one["kind"], other["kind"], other["document_ids"]) == ("single_hop", "cross_document", ["d1", "d2"])
    assert [row["estimated_difficulty"] for row in (one, other, none)] == [1, 4, None]  # of solvers, 1 to 10
    assert one["sources"] == [{"document_id": "d1", "chunk_id": SECOND.id}]
    assert (one["citations"], one["question_generating_model"], none["sources"]) == ([CRANE.text], "writer-1", [])


def test_questions_of_ones_own_name_spans_that_any_chunks_of_the_documents_are_matched_with(tmp_path):
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(question_line(item, LIBRARY.documents))}\n" for item in ITEMS),
                    encoding="utf-8")
    one, other, none = OwnQuestions(path=str(file)).load().questions
    cut = [Chunk.of(ESK, "plain", 0, 30), Chunk.of(ESK, "plain", 30, len(PLAIN)), MILL]  # otherwise than the set's
    places = Places(cut, lambda id: LIBRARY.documents[id].source)
    assert (places.gold(one.gold), places.gold(other.gold)) == (tuple(cut[:2]), tuple(cut))
    assert (one.gold[0].page, one.answers, other.answers[0]) == (2, ("12.5 tonnes", "12.5 t"), "B")
    assert (none.answerable, none.gold) == (False, ())


def test_a_folder_that_was_built_is_loaded_from_the_papers_own_format_in_it(tmp_path):
    row = {"id": "1", "query": "How?", "answer": "So.", "citation_ids": [], "meta": {"language": "en",
           "difficulty_type": "simple", "reasoning_type": ["form"]},
           "documents": [{"docid": 1, "content": "So.", "type": "text", "source_path": "a.txt"}]}
    (tmp_path / "crest").mkdir()
    for split in ("non_refusal", "refusal"):
        (tmp_path / "crest" / f"{split}.jsonl").write_text(json.dumps(row))
    (tmp_path / "questions.jsonl").write_text('{"question": "none of the loader\'s"}')
    (tmp_path / "card.json").write_text('{"kind": "crest"}')
    assert [one.text for one in Crest(path=str(tmp_path)).load().questions] == ["How?", "How?"]
    (tmp_path / "card.json").write_text('{"kind": "another"}')  # a card of something else
    with pytest.raises(BenchmarkError, match=r"card\.json"):
        HotpotQa(path=str(tmp_path)).load()
