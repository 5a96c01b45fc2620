"""Answers of other tools, scored as a run, and a run's answers for them. `tests/data/predictions` was written by the
tools themselves, see `bench/foreign_predictions.py`: eight answers to the first twelve demo questions."""
import json
import re
import sys
from pathlib import Path

import pytest

from ragbed.experiments import open_run
from ragbed.experiments.guests.pipelines.predictions import read_predictions

FILES = Path("tests/data/predictions")
WRITTEN = [("trec_rag", "trec_rag.jsonl"), ("ragas", "ragas.jsonl"), ("ragas", "ragas.csv"),
           ("ragchecker", "ragchecker.json")]
# By hand. Of the eight answerable questions four are answered rightly, one wrongly (1950), one is refused (-1), and two
# have no row: (4 - 1) / 8. Of the four others one is refused: 1/4. Unified is the mean of the two halves. Cited: both
# gold documents, one of two, one of two, and nothing or nothing of gold in five: precision 3/8, recall 2/8.
BY_HAND = {"unified": (3 / 8 + 1 / 4) / 2, "refusal_accuracy": 1 / 4, "citation_precision": 3 / 8,
           "citation_recall": 2 / 8, "citation_f1": 2 * (3 / 8) * (2 / 8) / (5 / 8)}
TWELVE = ("demo", "--set", "benchmark.limit=12")
OUTCOMES = {"answered": 6, "refused": 2, "error": 4}


@pytest.fixture
def imported(ragbed, tmp_path):
    """Imports a file under a name, and returns its cells."""
    def give(format, file, *options, name="theirs", benchmark=TWELVE):
        return ragbed.json("import", format, file, "--benchmark", *benchmark, "--out", tmp_path / "runs",
                           "--name", name, *options)["cells"]
    return give


def figures(cell):
    return {name: cell["metrics"][name]["mean"] for name in BY_HAND}


def outcomes(cell):
    return {name: count for name, count in cell["outcomes"].items() if count}


@pytest.mark.parametrize(("format", "file"), WRITTEN)
def test_a_file_as_its_tool_writes_it_gives_the_figures_counted_by_hand(imported, format, file):
    cell, = imported(format, FILES / file)
    assert figures(cell) == pytest.approx(BY_HAND)
    assert outcomes(cell) == OUTCOMES
    assert cell["model"] == f"pipeline:{Path(file).stem}"


@pytest.mark.parametrize(("format", "ending"), [
    ("trec_rag", "jsonl"), ("ragas", "jsonl"), ("ragchecker", "json"), ("jsonl", "jsonl")])
def test_an_export_is_imported_unchanged(imported, ragbed, tmp_path, format, ending):
    imported("trec_rag", FILES / "trec_rag.jsonl")
    file = tmp_path / f"theirs.{ending}"
    status, out, _ = ragbed("export", tmp_path / "runs" / "theirs", file, "--as", format)
    assert (status, out.strip()) == (0, f"{file}: 12 answers")
    cell, = imported(format, file, name="again")
    assert figures(cell) == pytest.approx(BY_HAND)
    assert outcomes(cell) == OUTCOMES
    ragbed.refuses("export", tmp_path / "runs" / "theirs", file, "--as", format, says=["exists; name another file"])


def test_a_run_of_trec_rag_is_exported_with_its_sentences_and_places(imported, ragbed, tmp_path):
    imported("trec_rag", FILES / "trec_rag.jsonl")
    ragbed("export", tmp_path / "runs" / "theirs", tmp_path / "run.jsonl", "--as", "trec_rag")
    written, ours = ({row["topic_id"]: (row["topic"], row["references"], row["answer"]) for row in map(
        json.loads, file.read_text().splitlines())} for file in (FILES / "trec_rag.jsonl", tmp_path / "run.jsonl"))
    assert {id: row for id, row in ours.items() if id in written} == written
    assert {row[2] == [] for id, row in ours.items() if id not in written} == {True}


@pytest.mark.slow
def test_a_live_run_and_its_import_have_the_same_scores(imported, ragbed, serve, tmp_path):
    """Over documents that questions bring, which are matched by their sources."""
    server = serve(lambda body: f"<Answer>{['Summer Wars [6, 9]', 'John Ford [1]'][len(str(body)) % 2]}</Answer>")
    hotpot = ("hotpotqa", "tests/data/hotpotqa_195", "--limit", "9")
    live, = ragbed.json("run", *hotpot, "--model", f"{server.url}#m", "--rules", "grounded", "--name", "live", "--out",
                        tmp_path / "runs")["cells"]
    assert live["metrics"]["support_f1"]["mean"] > 0
    for format in ("jsonl", "trec_rag", "ragas"):
        ragbed("export", tmp_path / "runs" / "live", tmp_path / f"{format}.jsonl", "--as", format)
        cell, = imported(format, tmp_path / f"{format}.jsonl", name=format, benchmark=hotpot)
        assert {name: value["mean"] for name, value in cell["metrics"].items() if name in (
            "em", "f1", "support_f1", "support_joint_f1", "citation_f1", "unified")} == {
            name: live["metrics"][name]["mean"] for name in (
                "em", "f1", "support_f1", "support_joint_f1", "citation_f1", "unified")}, format


def rows(tmp_path, *lines, name="answers.jsonl"):
    file = tmp_path / name
    file.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return file


SENTENCE = {"text": "Dated \n 1941.", "citations": [1, 0, 1, 9]}


@pytest.mark.parametrize(("row", "answer", "documents"), [
    ({"topic_id": 7, "topic": "t", "run_id": "r", "references": ["a", "b"], "answer": [SENTENCE, {
        "text": "So.", "citations": []}]}, "Dated 1941. [2, 1, 3]\nSo.", ["a", "b"]),
    ({"metadata": {"team_id": "x", "run_id": "r"}, "narrative_id": 7, "narrative": "t", "answer": [
        {"text": "One.", "citations": ["b", "a"]}, {"text": "Two.", "citations": ["a"]}]},
     "One. [1, 2]\nTwo. [2]", ["b", "a"]),
    ({"metadata": {"team_id": "x", "run_id": "r", "request_id": "7", "topic": "t"}, "references": ["a", "b"],
      "responses": [{"text": "One.", "citations": {"b": 0.9, "zz": 0.1}}]}, "One. [2, 3]", ["a", "b"])],
    ids=["2024 and 2025", "2025, ids", "RAGTIME"])
def test_each_form_of_a_trec_rag_run_is_read(tmp_path, row, answer, documents):
    one, = read_predictions("trec_rag", rows(tmp_path, row))
    assert (one.id, one.question, one.run, one.content) == (
        "7", "t", "r", {"answer": answer, "contexts": [{"document": name} for name in documents]})


ID = "sas-founded"


@pytest.mark.parametrize(("format", "content", "says"), [
    ("jsonl", [{"id": ID, "answer": "1941"}, "{"], ["answers.jsonl, line 2: expected one JSON object"]),
    ("jsonl", [{"answer": "1941"}], ["line 1, field id", "in `question`"]),
    ("jsonl", ["[" * 9_000], ["line 1", "nested too deeply"]),
    ("jsonl", [], ["the file has no answers"]),
    ("jsonl", [{"id": ID}, {"id": ID}], ["line 2: question sas-founded already has an answer in", "line 1; keep one"]),
    ("jsonl", [{"id": ID, "question": "what is the highest mountain peak in hawaii"}],
     ["line 1: the row has the id of question sas-founded and the text of question hawaii-peak"]),
    ("jsonl", [{"id": ID}, {"id": "nobody"}], ["1 of 2 answers in answers.jsonl match no question", "'nobody'"]),
    ("trec_rag", [{"topic_id": ID, "answer": "1941"}], ["line 1, field answer: expected a list of records"]),
    ("trec_rag", [{"topic_id": ID, "answer": [{"text": "1941", "citations": [-1]}]}], ["answer[0].citations"]),
    ("trec_rag", [{"topic_id": ID, "references": {}, "answer": []}], ["field references: expected a list"]),
    ("ragas", [{"user_input": [{"content": "q", "type": "human"}]}], ["samples of several turns are not supported"]),
    ("ragas", [{"user_input": "q", "retrieved_contexts": ["a"], "retrieved_context_ids": [1, 2]}], ["as long as"]),
    ("ragchecker", [{"results": 3}], ["field results: expected a list of records"]),
    ("ragchecker", ["[]"], ["field results"]),
    ("ragchecker", [{"results": [{"query_id": ID, "response": "", "retrieved_context": "x"}]}],
     ["line 1, field retrieved_context: expected a list of records"]),
    ("ragchecker", ["\xff"], ["answers.jsonl: cannot be read as JSON"])])
def test_a_damaged_file_is_a_one_line_error(ragbed, tmp_path, format, content, says):
    ragbed.refuses("import", format, rows(tmp_path, *content), "--benchmark", "demo", "--out", tmp_path, says=says)


@pytest.mark.parametrize("listed", ["[1, 2", "__import__('os').getcwd()", "(" * 5_000, "{}", "[" * 300 + "]" * 300])
def test_a_list_in_a_csv_file_is_read_and_never_executed(ragbed, tmp_path, listed):
    file = rows(tmp_path, f'user_input,retrieved_contexts,response\nq,"{listed}",a\n', name="r.csv")
    ragbed.refuses("import", "ragas", file, "--benchmark", "demo", says=["r.csv, line 2, field retrieved_contexts"])


def test_rows_of_other_questions_are_left_out_and_counted_on_request(ragbed, imported, tmp_path):
    file = rows(tmp_path, {"id": ID, "answer": "1941"}, {"id": "nobody", "answer": "?"})
    said = ragbed.json("import", "jsonl", file, "--benchmark", *TWELVE, "--out", tmp_path, "--with", "others=leave_out")
    assert [note for note in said["notes"] if "1 of 2 answers" in note and "left out" in note]
    assert outcomes(said["cells"][0]) == {"answered": 1, "error": 11}
    # a part of the questions says it
    part, = imported("trec_rag", FILES / "trec_rag.jsonl", "--limit", 3, benchmark=("demo",))
    assert outcomes(part) == {"answered": 3}


def test_each_run_of_a_file_is_a_cell_and_refusals_are_recognised_by_their_words(imported, tmp_path):
    asked = "In what state is the manufacturer of Bisquick headquartered?"
    file = rows(tmp_path, {"run": "a", "question": f" {asked}\n", "out": {"text": "No idea, sorry."}, "tokens": 5},
                {"run": "b", "question": asked, "out": {"text": "Texas"}})
    options = ("--with", "answer=$.out.text", "--with", "refusals=[no idea]", "--with", "prompt_tokens=$.tokens")
    first, second = imported("jsonl", file, *options)
    assert (first["model"], outcomes(first)["refused"], outcomes(second)["answered"]) == ("pipeline:a", 1, 1)
    assert first["usage"]["prompt_tokens"] == 5
    only, = imported("jsonl", file, "--run", "b", *options, name="only")
    assert outcomes(only) == outcomes(second)


@pytest.mark.slow
def test_a_changed_file_is_read_again_and_a_retry_keeps_the_run(ragbed, imported, tmp_path):
    file = rows(tmp_path, {"id": ID, "answer": "1941"})
    _, _, err = ragbed("import", "jsonl", file, "--benchmark", "demo", "--out", tmp_path / "runs", "--name", "theirs")
    again = re.search(r"`ragbed (run .*config\.yaml --retry)`", err)
    assert again is not None
    assert ragbed(*again[1].split())[0] == 0
    rows(tmp_path, {"id": ID, "answer": "1942"})
    _, _, err = ragbed("import", "jsonl", file, "--benchmark", "demo", "--out", tmp_path / "runs", "--name", "theirs")
    assert "another model under the name pipeline:answers" in err
    assert "1942" in ragbed("show", tmp_path / "runs" / "theirs", ID)[1]


def test_a_format_without_its_package_names_the_extra(ragbed, monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    ragbed.refuses("import", "inspect", FILES / "inspect.eval", "--benchmark", "demo",
                   says=["inspect-ai is not installed; run: pip install 'ragbed[inspect]'"])


def test_a_file_answers_questions_as_they_were_asked(imported):
    one, = imported("trec_rag", FILES / "trec_rag.jsonl", "--set", "questions=[as_asked, typos]")
    assert "variation" not in one or one["variation"] is None
    again = imported("trec_rag", FILES / "trec_rag.jsonl", "--set", "repeats=2", name="twice")
    assert [figures(cell) for cell in again] == [figures(one)] * 2


def test_an_import_is_replayed_from_a_cassette_without_its_file(imported, ragbed, tmp_path, monkeypatch):
    file = rows(tmp_path, {"id": ID, "answer": "1941 [1]", "contexts": [{"document": "special-air-service.html"}]})
    imported("jsonl", file)
    summary = (tmp_path / "runs" / "theirs" / "summary.json").read_bytes()
    ragbed("cassette", "export", tmp_path / "runs" / "theirs", "--out", tmp_path / "c.jsonl.gz")
    file.unlink()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").rename(tmp_path / "before")
    assert ragbed("run", "--replay", tmp_path / "c.jsonl.gz")[0] == 0
    again, = (path for path in tmp_path.rglob("summary.json") if "before" not in path.parts)
    assert again.read_bytes() == summary


def test_numbers_that_name_nothing_stay_invalid_and_are_not_exported(imported, ragbed, tmp_path):
    names = ["special-air-service.html", "special-air-service.html", "x.html"]
    file = rows(tmp_path, {"id": ID, "answer": "In [0] 1941 [3, 7].", "contexts": [{"document": one} for one in names]})
    cell, = imported("jsonl", file)
    assert cell["metrics"]["citation_precision"]["mean"] == 0
    assert cell["metrics"]["invalid_citations"]["mean"] * 12 == pytest.approx(2)
    ragbed("export", tmp_path / "runs" / "theirs", tmp_path / "run.jsonl", "--as", "trec_rag")
    told, = (row for row in map(json.loads, (tmp_path / "run.jsonl").read_text().splitlines()) if row["answer"])
    assert (told["references"], told["answer"][0]["citations"]) == (names[1:], [1])


def test_a_single_context_needs_no_list_and_notes_suggest_no_condition_for_a_file(imported, tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": "sas-founded", "answer": "1941", "contexts": "The airline is one of the oldest."}\n'
                    '{"id": "railway-edinburgh", "answer": "1946", "contexts": null}\n')
    (cell,) = imported("jsonl", path)
    assert (outcomes(cell)["answered"], cell["passages"]) == (2, 0.0833)
    assert "add `" not in (tmp_path / "runs" / "theirs" / "summary.json").read_text()
    with open_run(tmp_path / "runs" / "theirs") as run:
        assert list(run.cells) == ["one"]  # the file's name, and not what all pipelines are
