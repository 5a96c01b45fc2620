"""A finished run in the forms of other tools: tables, JSON Lines, JUnit, MLflow."""
import csv
import json
import os
from xml.etree import ElementTree

import pytest

HOSTILE = "=cmd|' /C calc'!A0 <b>\x00\x1b[31m\u202e ]]>"


@pytest.fixture
def finished(serve, town, ragbed):
    """The folder of a finished run of two cells over six questions."""
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url, reasoning=["direct", "chain_of_thought"]))[0] == 0
    return town.run


def exported(ragbed, run, path):
    status, out, err = ragbed("export", run, path)
    assert (status, err) == (0, "")
    assert out == f"{path}: 12 records\n"
    return path


def test_a_csv_has_a_row_for_each_question_in_each_cell(finished, town, ragbed, tmp_path):
    with exported(ragbed, finished, tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    recorded = [record["result"] for record in town.records()]
    assert [(row["cell"], row["question"], row["outcome"]) for row in rows] == [
        (result["cell"], result["question"], result["outcome"]) for result in recorded]
    assert [row["score.unified"] for row in rows] == [
        "" if (value := result["scores"]["unified"]) is None else str(value) for result in recorded]
    assert {(row["run"], row["model"], row["condition"]) for row in rows} == {
        ("town", rows[0]["model"], "given")}
    assert {row["cell_name"] for row in rows} == {"direct", "chain_of_thought"}
    assert all(int(row["calls"]) == 1 and float(row["seconds"]) >= 0 for row in rows)


def test_parquet_has_the_same_rows_with_types(finished, town, ragbed, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(exported(ragbed, finished, tmp_path / "rows.parquet"))
    recorded = [record["result"] for record in town.records()]
    assert table.num_rows == 12
    assert table.schema.field("score.unified").type == pa.float64()
    assert table.schema.field("refused").type == pa.bool_()
    assert table.column("score.unified").to_pylist() == [result["scores"]["unified"] for result in recorded]
    assert table.column("prompt_tokens").to_pylist() == [result["usage"]["prompt_tokens"] for result in recorded]
    assert [json.loads(cited) for cited in table.column("cited").to_pylist()] == [
        list(result["cited"]) for result in recorded]


def test_json_lines_hold_the_prompts_and_the_evidence(finished, town, ragbed, tmp_path):
    path = exported(ragbed, finished, tmp_path / "all.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    first = lines[0]
    assert first["cell"]["reasoning"] == "direct"
    prompt = first["trace"][-1]["messages"][-1]["content"]
    assert first["question"]["text"] in prompt
    assert all(passage["text"] in prompt for passage in first["evidence"])
    assert first["timing"]["attempts"] == 1


def test_an_ending_that_is_none_is_refused_before_anything_is_written(finished, ragbed, tmp_path):
    ragbed.refuses("export", finished, tmp_path / "rows.xlsx", says=["rows.xlsx", ".csv", ".parquet", "mlflow:URI"])
    ragbed.refuses("export", finished, tmp_path / "no" / "rows.csv",
                   says=["No such file or directory; make the folder first"])
    assert [path.name for path in tmp_path.iterdir() if "rows" in path.name] == []


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "xml"])
def test_an_export_replaces_an_earlier_one_and_nothing_else(finished, ragbed, tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    for content in (b"", None):  # an empty file, then the first export
        if content is not None:
            path.write_bytes(content)
        exported(ragbed, finished, path)
    others = {"csv": b"question,answer\n1,2\n", "parquet": b"PAR1 no table PAR1", "xml":
              b'<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"/>',
              "jsonl": b'{"run": "base", "question": "Who?"}\n'}
    path.write_bytes(others[ending])
    ragbed.refuses("export", finished, path, says=[f"rows.{ending} is there", "name another file"])
    assert path.read_bytes() == others[ending]


def test_questions_folders_and_devices_are_not_exported_over(finished, town, ragbed, tmp_path):
    questions = town.crest / "refusal.jsonl"
    before = questions.read_bytes()
    ragbed.refuses("export", finished, questions, says=["refusal.jsonl is there", "name another file"])
    assert questions.read_bytes() == before
    (tmp_path / "folder.csv").mkdir()
    ragbed.refuses("export", finished, tmp_path / "folder.csv", says=["that is a folder; name a file"])
    os.mkfifo(tmp_path / "pipe.csv")
    ragbed.refuses("export", finished, tmp_path / "pipe.csv", says=["that is a device or a pipe; name a file"])


def test_junit_fails_wrong_answers_and_says_why(finished, town, ragbed, tmp_path):
    root = ElementTree.parse(exported(ragbed, finished, tmp_path / "tests.xml")).getroot()
    recorded = [record["result"] for record in town.records()]
    wrong = [result for result in recorded if result["scores"]["unified"] != 1]
    assert [suite.get("name") for suite in root] == ["direct", "chain_of_thought"]
    assert root.get("tests") == "12"
    assert int(root.get("failures")) + int(root.get("errors")) == len(wrong)


def test_junit_skips_what_has_no_gold_and_an_answer_that_never_came_is_an_error(serve, town, ragbed, tmp_path):
    own = town.own({"id": "open", "question": "What now?"}, {"id": "gone", "question": "Who?", "answer": "Ada"})
    server = serve(lambda body: {"status": 400, "error": {"message": "no"}} if "Who?" in str(body) else "Nothing.")
    assert ragbed("run", town.config(server.url, benchmark=own, conditions="closed-book"))[0] == 0
    assert ragbed("export", town.run, tmp_path / "tests.xml")[0] == 0
    root = ElementTree.parse(tmp_path / "tests.xml").getroot()
    assert {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")} == {
        "open": ["skipped"], "gone": ["error"]}
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["2", "0", "1", "1"]


def test_hostile_answers_do_nothing_in_a_spreadsheet_or_in_xml(serve, town, ragbed, tmp_path):
    server = serve(lambda body: f"<Answer>{HOSTILE}</Answer>")
    assert ragbed("run", town.config(server.url))[0] == 0
    assert ragbed("export", town.run, tmp_path / "rows.csv")[0] == 0
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        answers = {row["answer"] for row in csv.DictReader(file)}
    assert all(answer.startswith("'=cmd") and r"\x00\x1b[31m" in answer for answer in answers)
    assert not {*map(chr, range(32)), "\x7f"} - set("\t\r\n") & set((tmp_path / "rows.csv").read_text(encoding="utf-8"))
    assert ragbed("export", town.run, tmp_path / "tests.xml")[0] == 0
    said = [case.get("message") for case in ElementTree.parse(tmp_path / "tests.xml").iter("failure")]
    assert any("=cmd" in message and "\x1b" not in message for message in said)


def test_mlflow_has_a_run_for_each_cell_and_none_twice(finished, ragbed, tmp_path, monkeypatch):
    pytest.importorskip("mlflow")
    from mlflow import MlflowClient

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "")  # so that it is restored
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE")
    uri = (tmp_path / "mlruns").as_uri()
    assert ragbed("export", finished, f"mlflow:{uri}")[0] == 0
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("town").experiment_id
    runs = {run.info.run_name: run for run in client.search_runs([experiment])}
    assert set(runs) == {"town", "direct", "chain_of_thought"}
    cells = {cell["reasoning"]: cell for cell in json.loads((finished / "summary.json").read_text())["cells"]}
    for name in ("direct", "chain_of_thought"):
        unified = cells[name]["metrics"]["unified"]
        assert runs[name].data.metrics["unified"] == unified["mean"]
        assert runs[name].data.metrics["unified.n"] == unified["n"] == 6
        assert runs[name].data.params["reasoning"] == name
        assert runs[name].data.tags["mlflow.parentRunId"] == runs["town"].info.run_id
    status, out, _ = ragbed("export", finished, f"mlflow:{uri}")
    assert status == 0
    assert "has these results already" in out
    assert len(client.search_runs([experiment])) == 3


@pytest.mark.parametrize("variable", [False, True])
def test_the_password_of_mlflows_server_is_not_shown(finished, ragbed, monkeypatch, variable):
    pytest.importorskip("mlflow")
    uri = "http://user:secretpw@127.0.0.1:9"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    status, out, err = ragbed("export", finished, "mlflow" if variable else f"mlflow:{uri}")
    assert (status, "secretpw" in out + err, "MLflow at http://127.0.0.1:9: " in err) == (2, False, True)


def test_mlflow_without_a_place_is_one_line(finished, ragbed, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    ragbed.refuses("export", finished, "mlflow", says=["mlflow:URI", "MLFLOW_TRACKING_URI"])
    ragbed.refuses("export", finished, "mlflow:http://127.0.0.1:9", says=["127.0.0.1:9"])
