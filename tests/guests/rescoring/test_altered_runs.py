"""Whatever was altered in the folder of a run is named by `ragbed verify`, and refused where it would be used."""
import contextlib
import json
import shutil
import sqlite3

import pytest

from ragbed.documents.shards import Shard


def edit(run, statement):
    with contextlib.closing(sqlite3.connect(run / "records.sqlite")) as connection, connection:
        assert connection.execute(statement).rowcount > 0


def wrong(ragbed, run):
    status, out, _ = ragbed("verify", run, "--json")
    assert status == 1
    return [check["name"] for check in json.loads(out)["checks"] if check["agrees"] is False]


@pytest.mark.parametrize(("statement", "found"), [
    ("DELETE FROM texts WHERE hash = (SELECT min(hash) FROM texts)", ["seal", "texts"]),
    ("DELETE FROM calls WHERE key = (SELECT min(key) FROM calls)", ["seal", "calls"]),
    ("DELETE FROM pins WHERE name = 'seal'", []),
    ("UPDATE pins SET value = '{' WHERE name = 'seal'", ["seal"]),
    ("UPDATE records SET timing = '{' WHERE rowid = 1", ["seal", "times"]),
    ("UPDATE records SET timing = json_set(timing, '$.seconds', 9.9) WHERE rowid = 1", ["seal"]),
    ("UPDATE records SET place = 9 WHERE rowid = 1", ["seal"]),
    ("INSERT INTO spent VALUES ('a', 9, 9.9)", ["seal"])])
def test_rows_that_no_score_depends_on_are_checked_too(town, ragbed, statement, found):
    edit(town.run, statement)
    if found:
        assert wrong(ragbed, town.run) == found
    else:
        seal, = (one for one in ragbed.json("verify", town.run)["checks"] if one["name"] == "seal")
        assert (seal["agrees"], "or it was altered" in seal["detail"]) == (None, True)


@pytest.mark.parametrize("name", ["config.yaml", "manifest.json", "summary.json"])
def test_a_report_and_a_comparison_refuse_a_file_that_changed(town, ragbed, name):
    (town.run / name).write_bytes((town.run / name).read_bytes() + b"\n")
    for command in (("report", town.run), ("compare", town.run), ("export", town.run, "out.csv")):
        ragbed.refuses(*command, says=[f"its {name} changed since it finished", "ragbed verify"])
    assert "seal" in wrong(ragbed, town.run)


def test_an_altered_answer_is_neither_reported_nor_continued(town, ragbed):
    edit(town.run, "UPDATE records SET result = json_set(result, '$.text', 'x') WHERE question = 'refusal-0'")
    ragbed.refuses("report", town.run, says=["the record of refusal-0 in cell ", " is damaged"])
    ragbed.refuses("run", town.folder / "town.yaml", says=["the record of refusal-0 in cell ", "was altered"])


@pytest.fixture
def shards(serve, town, ragbed):
    path = town.config(serve(town.reply).url, name="divided")
    for number in (1, 2):
        assert ragbed("run", path, "--shard", f"{number}/2")[0] == 0
    whole = town.folder / "runs" / "divided"
    return [Shard(number, 2).folder(whole) for number in (1, 2)], whole


def test_altered_shards_are_not_merged_and_nothing_is_written(shards, ragbed, tmp_path):
    folders, whole = shards
    kept = tmp_path / "kept"
    shutil.copytree(folders[0], kept)
    manifest = json.loads((kept / "manifest.json").read_text())

    def change_manifest(**fields):
        (folders[0] / "manifest.json").write_text(json.dumps({**manifest, **fields}))

    for alter, says in (
            (lambda: edit(folders[0], "UPDATE records SET result = json_set(result, '$.text', 'x') WHERE rowid = 1"),
             "was altered"),
            (lambda: edit(folders[0], "UPDATE records SET timing = '{' WHERE rowid = 1"), "times changed"),
            (lambda: edit(folders[0], "DELETE FROM texts"), "texts are fewer"),
            (lambda: edit(folders[0], "UPDATE calls SET reply = replace(reply, 'people', 'cats')"), "calls: "),
            (lambda: edit(folders[0], "UPDATE questions SET content = json_set(content, '$.answers[0]', 'x')"),
             "questions changed"),
            (lambda: change_manifest(settings="0"), "does not belong to its settings"),
            (lambda: change_manifest(cells=[]), "does not belong to its settings and records"),
            (lambda: change_manifest(judge="other"), "manifest.json changed"),
            (lambda: change_manifest(packages={"ragbed": "9"}), "manifest.json changed")):
        shutil.rmtree(folders[0])
        shutil.copytree(kept, folders[0])
        alter()
        ragbed.refuses("merge", *folders, says=[says])
        assert not whole.exists()
    shutil.rmtree(folders[0])
    shutil.copytree(kept, folders[0])
    assert ragbed("merge", *folders)[0] == 0
    assert ragbed("verify", whole)[0] == 0


def test_a_manifest_of_other_settings_in_all_shards_makes_no_run_without_records(shards, ragbed):
    folders, whole = shards
    for folder in folders:
        manifest = json.loads((folder / "manifest.json").read_text())
        for cell in manifest["cells"]:
            cell["id"] = "0" * 12
        (folder / "manifest.json").write_text(json.dumps(manifest))
    ragbed.refuses("merge", *folders, says=["lacks"])
    assert not whole.exists()
