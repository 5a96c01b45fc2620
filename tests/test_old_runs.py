"""Runs that another version wrote: older ones open, newer ones are refused.

`tests/data/old_run` was written in format 1, in the repository's root, by

    import os, sys, pathlib, shutil, tempfile
    root = pathlib.Path.cwd()
    sys.path[:0] = [str(root), str(root / "tests")]
    from conftest import ScriptedServer, Town
    os.chdir(tempfile.mkdtemp())
    server, town = ScriptedServer(Town.reply), Town(pathlib.Path("."))
    config = town.config(server.url, reasoning=["direct", "least_to_most"])
    sys.argv = ["ragbed", "run", str(config), "--limit", "3", "--json"]
    from experiments.cli import main
    try:
        main()
    finally:
        server.close()
        for name in ("config.yaml", "manifest.json", "records.sqlite", "summary.json"):
            to = root / "tests" / "data" / "old_run" / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(pathlib.Path("runs", "town-limit-3", name), to)

and is not to be written again: when the format changes, another folder goes beside it. `tests/data/old_run_2` was
written in format 2, which keeps searches too, in the same way but for the line

    config = town.config(server.url, conditions=["given", "retrieved"], retriever={"k": 1})
"""
from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from experiments.runs.store import FORMAT, VERSION, RunFolder
from strategies.prompting import prompts_hash

DATA = Path(__file__).parent / "data"
# What reads a finished run, and what it is given besides.
READING = ("report", "rescore", "verify", "diagnose", "compare", "effects", "dose", "cassette export", "export",
           "show")
AND = {"export": ["out.csv"], "show": ["#2"]}


@pytest.fixture
def old(tmp_path) -> Path:
    """A copy, for opening a database writes beside it."""
    return Path(shutil.copytree(DATA / "old_run", tmp_path / "old"))


def stamp(run: Path, version: int | None = None) -> int:
    """The format that the file says it has, set before where one is given."""
    with contextlib.closing(sqlite3.connect(run / "records.sqlite")) as connection:
        if version is not None:
            connection.execute(f"PRAGMA user_version={version:d}")
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_a_run_of_format_1_opens_with_all_that_it_holds(old):
    assert stamp(old) == 1
    folder = RunFolder.existing(old)
    records, questions = list(folder.records(traces=True)), folder.questions()
    assert [question.answers for question in questions.values()] == [("111 people",), ("0 people",), ("222 people",)]
    assert [(record.result.outcome, record.result.usage.calls) for record in records] == [
        ("refused", 1), ("refused", 4), ("answered", 1), ("answered", 4), ("malformed", 1), ("malformed", 4)]
    assert [record.result.scores["unified"] for record in records[::2]] == [-1.0, 0.0, 0.0]
    prompt = "".join(folder.database.text(part) for part in records[0].result.trace[-1].messages[-1].parts)
    assert "How many people live in town 1?" in prompt
    assert folder.results_hash() == json.loads((old / "summary.json").read_text())["results"]
    folder.close()


def unchanged(town, name: str) -> list[tuple[object, ...]]:
    """Puts a run where its settings say that it is, and says what its records hold, its scores apart."""
    town.run = Path("runs", "town-limit-3")
    shutil.copytree(DATA / name, town.run)
    if json.loads((town.run / "manifest.json").read_text())["prompts"] != prompts_hash():
        pytest.skip("the prompts have changed since, so the run cannot go on")
    return said(town)


def said(town) -> list[tuple[object, ...]]:
    return [tuple(record["result"][name] for name in ("cell", "question", "outcome", "text", "evidence", "usage"))
            for record in town.records()]


def test_a_run_of_format_1_continues_and_is_replayed_and_exported(town, ragbed, monkeypatch):
    monkeypatch.chdir(town.folder)
    before = unchanged(town, "old_run")
    with contextlib.closing(sqlite3.connect(town.run / "records.sqlite")) as connection:
        connection.execute("DELETE FROM records WHERE question = 'non_refusal-2'")
        connection.commit()
    for options in ([], ["--journal", "replay"]):
        status, _, err = ragbed("run", town.run / "config.yaml", *options)
        assert status == 0, err
        assert "0 calls sent" in err
        assert said(town) == before
    assert stamp(town.run) == VERSION
    assert ragbed("cassette", "export", town.run, "--out", "c.gz")[0] == 0
    assert ragbed("run", "--replay", "c.gz", "--out", "again")[0] == 0


def test_a_run_of_format_2_is_replayed_with_its_searches_and_without_their_embedder(town, ragbed, monkeypatch):
    monkeypatch.chdir(town.folder)
    monkeypatch.setenv("RAGBED_MODELS", str(town.folder))
    monkeypatch.setenv("RAGBED_CACHE", str(town.folder / "cache"))
    before = unchanged(town, "old_run_2")
    assert stamp(town.run) == 2
    status, _, err = ragbed("run", town.run / "config.yaml", "--journal", "replay")
    assert (status, said(town)) == (0, before), err
    assert ragbed("cassette", "export", town.run, "--out", "c.gz")[0] == 0
    assert json.loads(ragbed("cassette", "show", "c.gz", "--json")[1])["searches"] == 3


@pytest.mark.parametrize("command", [one for one in READING if one not in ("effects", "dose", "verify")])
def test_the_commands_that_read_a_run_read_it(command, old, ragbed, monkeypatch):
    monkeypatch.chdir(old.parent)
    status, _, err = ragbed(*command.split(), old, *AND.get(command, []), "--json")
    assert status == 0, err


@pytest.fixture
def summarised(old):
    """Changes the old run's summary."""
    path = old / "summary.json"

    def change(edit):
        summary = json.loads(path.read_text())
        edit(summary)
        path.write_text(json.dumps(summary))

    return change


@pytest.mark.parametrize("command", READING)
@pytest.mark.parametrize("key", ["rules", "metrics", "id"])
def test_what_an_older_summary_lacks_is_said_in_one_line_by_every_command(command, key, old, summarised, ragbed):
    summarised(lambda summary: summary["cells"][1].pop(key))
    ragbed.refuses(*command.split(), old, *AND.get(command, []),
                   says=["summary.json: of an older form (1, ", f"without cells[1].{key}", "`ragbed run`"])


def test_what_a_summary_of_this_form_lacks_or_has_wrong_is_damage(old, summarised, ragbed):
    summarised(lambda summary: summary.update(format=FORMAT))
    summarised(lambda summary: summary["cells"][0]["metrics"]["unified"].update(mean="high"))
    ragbed.refuses("compare", old, says=["summary.json: damaged, cells[0].metrics.unified.mean: ", "valid number"])
    summarised(lambda summary: summary["cells"][0]["metrics"]["unified"].update(mean=0.0))
    summarised(lambda summary: summary["cells"][0].update(condition="retrieved"))
    ragbed.refuses("diagnose", old, says=["damaged, c3aee5efe15c is not the id of a cell with these factors"])
    summarised(lambda summary: summary.update(cells=[]))
    ragbed.refuses("report", old, says=["summary.json: damaged, cells: "])


@pytest.mark.parametrize("command", READING)
def test_a_summary_of_a_newer_ragbed_is_refused(command, old, summarised, ragbed):
    summarised(lambda summary: summary.update(format=FORMAT + 1))
    ragbed.refuses(*command.split(), old, *AND.get(command, []),
                   says=["summary.json: was written by a newer ragbed", f"format {FORMAT + 1}", "upgrade"])


def test_of_all_that_can_be_verified_the_prompts_alone_have_changed_since(old, ragbed, monkeypatch):
    monkeypatch.chdir(old.parent)
    status, out, _ = ragbed("verify", old, "--json")
    wrong = [check for check in json.loads(out)["checks"] if check["differences"]]
    assert (status, [check["name"] for check in wrong]) == (1, ["prompts"])
    (said,) = wrong[0]["differences"]
    assert f"{prompts_hash()[:8]}" in said


def figures(old, ragbed):
    """The exit status of `ragbed verify`, and what it says of the run's figures."""
    status, out, _ = ragbed("verify", old, "--json")
    return status, next(check for check in json.loads(out)["checks"] if check["name"] == "figures")


def test_figures_of_an_older_form_are_verified_by_their_means(old, summarised, ragbed):
    check = figures(old, ragbed)[1]
    assert check["differences"] == []
    for said in ("42 means", "of an older form (1, this", "the same `ragbed run` command renews it"):
        assert said in check["detail"]
    summarised(lambda summary: summary["cells"][1]["metrics"].pop("f1"))
    summarised(lambda summary: summary["cells"][0]["metrics"]["unified"].update(low=-1.0, mean=0.25))
    assert figures(old, ragbed) == (1, {
        "name": "figures", "agrees": False, "detail": check["detail"].replace("42", "41"),
        "differences": ["cells[0].metrics.unified.mean: 0.25 in summary.json, -0.25 from the records"]})
    summarised(lambda summary: summary.update(format=FORMAT))
    assert len(figures(old, ragbed)[1]["differences"]) > 30


def test_a_run_of_a_newer_ragbed_is_refused_and_left_as_it_is(old, ragbed):
    stamp(old, VERSION + 1)
    before = (old / "records.sqlite").read_bytes()
    ragbed.refuses("report", old, says=["records.sqlite", "newer ragbed", f"format {VERSION + 1}", "upgrade"])
    assert (old / "records.sqlite").read_bytes() == before


def test_a_run_from_before_there_were_stamps_is_stamped(old):
    stamp(old, 0)
    RunFolder.existing(old).close()
    assert stamp(old) == VERSION
