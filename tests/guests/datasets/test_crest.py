"""The CReSt loader: field quirks, splits, files, the hub, and errors that say where."""
import json
import os
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest
from loaded import loaded
from patience import SECONDS

from ragbed.documents import BenchmarkError
from ragbed.experiments import check_settings
from ragbed.experiments.guests.datasets.crest import Crest

DOCUMENTS = [
    {"docid": 40, "content": "<table><tr><td>2021</td><td>1,577</td></tr></table>", "type": "html",
     "source_path": "aster/report.html", "ground": True, "citation_idx": None},
    {"docid": 12, "content": "The Aster depot opened in 1998.", "type": "text", "source_path": "aster/history.txt",
     "ground": False, "citation_idx": None},
]
ROW = {
    "id": 7, "query": "How many parcels left the Aster depot in 2021?", "answer": "1,577 parcels",
    "documents": json.dumps(DOCUMENTS), "citation_ids": "[40]",
    "meta": json.dumps({"language": "en", "difficulty_type": "SimpleQA"}),
    "reasoning_type": ["numerical reasoning", "tabular reasoning"],
}


def lines(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def one(tmp_path):
    return lambda split="non_refusal", **changes: loaded(Crest, tmp_path / f"{split}.jsonl",
                                                         {**ROW, **changes}).questions[0]


def test_a_row_becomes_a_question_with_its_chunks_in_order(tmp_path):
    benchmark = loaded(Crest, tmp_path / "non_refusal.jsonl", ROW)
    question = benchmark.questions[0]
    assert (question.id, question.text, question.answers, question.answerable) == \
        ("non_refusal-7", ROW["query"], ("1,577 parcels",), True)
    assert [(chunk.document, chunk.format, chunk.content) for chunk in question.provided] == [
        ("non_refusal-7/40", "html", DOCUMENTS[0]["content"]), ("non_refusal-7/12", "plain", DOCUMENTS[1]["content"])]
    assert [gold.chunk for gold in question.gold] == [question.provided[0].id]
    assert benchmark.documents["non_refusal-7/40"].source == "aster/report.html"
    assert question.tags == {
        "split": ("non_refusal",), "language": ("en",), "difficulty_type": ("SimpleQA",),
        "reasoning_type": ("numerical reasoning", "tabular reasoning"), "ground": ("agrees",),
        "format": ("html",)}


def test_reasoning_types_may_be_nested_and_unknown_ones_are_kept(one):
    question = one(reasoning_type=[["numerical reasoning", "others"], ["legal reasoning"], ["others"]])
    assert question.tags["reasoning_type"] == ("numerical reasoning", "others", "legal reasoning")


def test_fields_may_be_decoded_already_and_optional_ones_present_or_null(one):
    question = one(documents=DOCUMENTS, citation_ids=[40], meta={"language": "ko", "difficulty_type": "ComplexQA"},
                   options=["one", "two"], question_type="open", explanation=None, selected_chunk_ids=None,
                   reasoning_type=None)
    assert question.options == (("A", "one"), ("B", "two"))
    assert question.tags["question_type"] == ("open",)
    assert "reasoning_type" not in question.tags


def test_ids_that_repeat_within_a_split_stay_apart(tmp_path):
    benchmark = loaded(Crest, tmp_path / "non_refusal.jsonl", ROW, ROW | {"query": "Wie viele?"})
    assert [question.id for question in benchmark.questions] == ["non_refusal-7", "non_refusal-7~2"]
    assert len(benchmark.documents) == 4


def test_repeated_citations_merge_and_are_counted(one):
    question = one(citation_ids="[40, 12, 40]")
    assert [gold.document for gold in question.gold] == ["non_refusal-7/40", "non_refusal-7/12"]
    assert question.gold_repeats == 1
    assert question.tags["ground"] == ("differs",)


def test_a_docid_that_repeats_is_kept_and_the_last_of_it_is_the_gold_as_published(one):
    other = {**DOCUMENTS[1], "docid": 40}
    question = one(documents=[DOCUMENTS[0], other, DOCUMENTS[0]])
    assert [chunk.document for chunk in question.provided] == [
        "non_refusal-7/40", "non_refusal-7/40~2", "non_refusal-7/40~3"]
    assert [gold.chunk for gold in question.gold] == [question.provided[2].id]


def test_the_refusal_split_is_unanswerable_and_may_cite_what_was_left_out(one):
    question = one("refusal", citation_ids="[99]", answer=None)
    assert not question.answerable
    assert question.answers == ()
    assert question.gold[0].document == "refusal-7/99"
    assert question.gold[0].chunk is None


def test_unless_told_otherwise_it_is_run_as_the_paper_ran_it():
    settings = check_settings({"name": "x", "benchmark": {"kind": "crest"}}, "here")
    assert ([one.spec for one in settings.reasoning], settings.layout, settings.rules, settings.conditions) == (
        ["chain_of_thought"], "as_published", ["grounded"], ["provided"])
    named = check_settings({"name": "x", "benchmark": {"kind": "crest"}, "reasoning": "direct"}, "here")
    assert [one.spec for one in named.reasoning] == ["direct"]


def test_a_folder_alternates_the_splits_whatever_the_files_are(tmp_path):
    lines(tmp_path / "data" / "refusal-00000-of-00001.jsonl", *({**ROW, "id": id} for id in (1, 2)))
    rows = [{**ROW, "id": str(id)} for id in (1, 2, 3)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "data" / "non_refusal-00000.parquet")
    ids = [question.id for question in Crest(path=str(tmp_path)).load().questions]
    assert ids == ["non_refusal-1", "refusal-1", "non_refusal-2", "refusal-2", "non_refusal-3"]
    assert [question.id for question in Crest(path=str(tmp_path), limit=2).load().questions] == ids[:2]


@pytest.mark.parametrize(("changes", "complaint"), [
    ({"documents": "[{"}, r"field documents: expected JSON text of a list of documents \(Expecting .*\), found '\[\{'"),
    ({"documents": "[" * 100_000}, r"field documents: expected JSON .* \(nested too deeply\), found '\[\["),
    ({"documents": '["\\ud83d"]'}, r"field documents: expected JSON .* surrogates not allowed\), found"),
    ({"meta": '{"language": "en", "language": "ko"}'}, "field meta: expected JSON .*the key 'language' is given twice"),
    ({"documents": "{}"}, "field documents: expected a list of documents, found \\{\\}"),
    ({"documents": [3]}, r"field documents\[0\]: expected a record"),
    ({"documents": [{**DOCUMENTS[0], "type": "pdf"}]}, r"field documents\[0\].type: expected 'html' or 'text', found"),
    ({"documents": [{**DOCUMENTS[0], "docid": "40"}]}, r"field documents\[0\].docid: expected a whole number"),
    ({"documents": [{**DOCUMENTS[0], "content": None}]}, r"documents\[0\].content: expected text, found nothing"),
    ({"citation_ids": "[41]"}, r"field citation_ids: expected docids out of \[40, 12\], found 41"),
    ({"meta": "{}"}, "field meta.language: expected text, found nothing"),
    ({"reasoning_type": [3]}, "field reasoning_type: expected a list of texts"),
    ({"reasoning_type": json.loads("[" * 900 + "]" * 900)}, "line 1: .*nested too deeply"),
    ({"id": 1.5}, "field id: expected text, a whole number or null, found 1.5"),
    ({"options": [1]}, "field options: expected 2 to 26 texts"),
    ({"options": [str(place) for place in range(27)]}, "field options: expected 2 to 26 texts, in a list or"),
])
def test_a_record_that_does_not_fit_says_where(one, changes, complaint):
    with pytest.raises(BenchmarkError, match=rf"non_refusal\.jsonl.*{complaint}"):
        one(**changes)


def test_files_that_are_missing_unnamed_or_broken_say_so(tmp_path):
    lines(tmp_path / "non_refusal.jsonl", ROW)
    lines(tmp_path / "questions.jsonl", ROW)
    (tmp_path / "refusal.parquet").write_bytes(b"no parquet")
    for path, complaint in (
            (tmp_path / "absent", "no such file or folder"), (tmp_path / "questions.jsonl", "refusal or non_refusal"),
            (tmp_path / "refusal.parquet", "cannot be read as Parquet")):
        with pytest.raises(BenchmarkError, match=complaint):
            Crest(path=str(path)).load()
    (tmp_path / "refusal.parquet").unlink()
    with pytest.raises(BenchmarkError, match=r"no \.parquet or \.jsonl file has refusal in its name"):
        Crest(path=str(tmp_path)).load()


LOAD = ("from ragbed.experiments.guests.datasets.crest import Crest\n"
        "from ragbed.documents.errors import BenchmarkError\n"
        "try:\n    print(len(Crest(path='hub:upstage/CReSt').load().questions))\n"
        "except BenchmarkError as error:\n    print(error)\n")


def load_from_hub(tmp_path, **environment):
    """In a process of its own, since the hub's client reads its settings when it is imported."""
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_DISABLE_TELEMETRY": "1",
                   "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1", **environment}
    done = subprocess.run([sys.executable, "-c", LOAD], env=environment, capture_output=True, text=True, check=False,
                          timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_hub_offline_is_one_clear_line(tmp_path):
    said = load_from_hub(tmp_path, HF_HUB_OFFLINE="1")
    assert said.startswith("hub:upstage/CReSt: not in the hub's cache and could not be fetched (")
    assert said.endswith("give the path of a folder with the files")
    assert "\n" not in said


def test_what_is_in_the_hubs_cache_is_read_without_a_connection(tmp_path):
    place, commit = tmp_path / "hub" / "hub" / "datasets--upstage--CReSt", "0123456789abcdef" * 2 + "01234567"
    for split in ("non_refusal", "refusal"):
        lines(place / "snapshots" / commit / f"{split}.jsonl", ROW)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    assert load_from_hub(tmp_path, HF_HUB_OFFLINE="1") == "2"
