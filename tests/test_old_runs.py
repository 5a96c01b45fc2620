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

from experiments.store import VERSION, RunFolder
from strategies.prompting import prompts_hash

DATA = Path(__file__).parent / "data"


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
    records, questions = list(folder.records()), folder.questions()
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


def test_the_commands_that_read_a_run_read_it(old, ragbed):
    for command in (["report", old], ["rescore", old, "--json"], ["show", old, "#2", "--json"]):
        status, _, err = ragbed(*command)
        assert status == 0, err


def test_a_run_of_a_newer_ragbed_is_refused_and_left_as_it_is(old, ragbed):
    stamp(old, VERSION + 1)
    before = (old / "records.sqlite").read_bytes()
    ragbed.refuses("report", old, says=["records.sqlite", "newer ragbed", f"format {VERSION + 1}", "upgrade"])
    assert (old / "records.sqlite").read_bytes() == before


def test_a_run_from_before_there_were_stamps_is_stamped(old):
    stamp(old, 0)
    RunFolder.existing(old).close()
    assert stamp(old) == VERSION
