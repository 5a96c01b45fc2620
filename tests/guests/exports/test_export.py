"""A finished run as a file for other tools: CSV, Parquet, JSON Lines."""
import csv
import json
import os
import shutil

import pytest

HOSTILE = "=cmd|' /C calc'!A0 <b>\x00\x1b[31m\u202e ]]>"


@pytest.fixture
def finished(serve, town, ragbed, kept):
    """The folder of a finished run with two cells and six questions."""
    if not kept.exists():
        config = town.config(serve(town.reply).url, reasoning=["direct", "chain_of_thought"])
        assert ragbed("run", config)[0] == 0
        shutil.copytree(town.run, kept)
    return shutil.copytree(kept, town.run, dirs_exist_ok=True)


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
        ("town", rows[0]["model"], "provided")}
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


def test_an_unknown_ending_is_refused_before_anything_is_written(finished, ragbed, tmp_path):
    ragbed.refuses("export", finished, tmp_path / "rows.xlsx", says=["rows.xlsx", "use .jsonl, .csv, .parquet"])
    ragbed.refuses("export", finished, tmp_path / "no" / "rows.csv",
                   says=["No such file or directory; make the folder first"])
    assert [path.name for path in tmp_path.iterdir() if "rows" in path.name] == []


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_an_export_replaces_an_earlier_one_and_nothing_else(finished, ragbed, tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    for content in (b"", None):  # an empty file, then the first export
        if content is not None:
            path.write_bytes(content)
        exported(ragbed, finished, path)
    others = {"csv": b"question,answer\n1,2\n", "parquet": b"PAR1 no table PAR1",
              "jsonl": b'{"run": "base", "question": "Who?"}\n'}
    path.write_bytes(others[ending])
    ragbed.refuses("export", finished, path, says=[f"rows.{ending} exists", "name another file"])
    assert path.read_bytes() == others[ending]


def test_an_export_never_replaces_questions_folders_or_devices(finished, town, ragbed, tmp_path):
    questions = town.crest / "refusal.jsonl"
    before = questions.read_bytes()
    ragbed.refuses("export", finished, questions, says=["refusal.jsonl exists", "name another file"])
    assert questions.read_bytes() == before
    (tmp_path / "folder.csv").mkdir()
    ragbed.refuses("export", finished, tmp_path / "folder.csv", says=["is a folder; name a file"])
    os.mkfifo(tmp_path / "pipe.csv")
    ragbed.refuses("export", finished, tmp_path / "pipe.csv", says=["is a device or a pipe; name a file"])


def test_hostile_answers_do_nothing_in_a_spreadsheet(serve, town, ragbed, tmp_path):
    server = serve(lambda body: f"<Answer>{HOSTILE}</Answer>")
    assert ragbed("run", town.config(server.url))[0] == 0
    assert ragbed("export", town.run, tmp_path / "rows.csv")[0] == 0
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        answers = {row["answer"] for row in csv.DictReader(file)}
    assert all(answer.startswith("'=cmd") and r"\x00\x1b[31m" in answer for answer in answers)
    assert not {*map(chr, range(32)), "\x7f"} - set("\t\r\n") & set((tmp_path / "rows.csv").read_text(encoding="utf-8"))
