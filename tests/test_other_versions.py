"""Runs that another version of ragbed made are refused in one line, and damaged ones are said to be damaged."""
import contextlib
import json
import shutil
import sqlite3

import pytest
from sealed import seal

from ragbed.experiments.runs.store import FORMAT, VERSION

# What reads a finished run, and what it is given besides.
READING = ("report", "rescore", "verify", "diagnose", "compare", "effects", "dose", "cassette export", "export",
           "show")
AND = {"export": ["out.csv"], "show": ["#2"]}


@pytest.fixture
def finished(serve, town, ragbed, kept):
    """The folder of a finished run."""
    if not kept.exists():
        assert ragbed("run", town.config(serve(town.reply).url))[0] == 0
        shutil.copytree(town.run, kept)
    return shutil.copytree(kept, town.run, dirs_exist_ok=True)


@pytest.fixture
def summarised(finished):
    """Changes the run's summary."""
    path = finished / "summary.json"

    def change(edit):
        summary = json.loads(path.read_text())
        edit(summary)
        path.write_text(json.dumps(summary))
        seal(finished)

    return change


@pytest.mark.parametrize("format", [FORMAT - 1, FORMAT + 1])
def test_a_run_of_another_version_is_refused_by_all_that_read_it(format, finished, summarised, ragbed):
    summarised(lambda summary: summary.update(format=format))
    for command in READING:
        ragbed.refuses(*command.split(), finished, *AND.get(command, []),
                       says=["summary.json: made by another version of ragbed; run it again"])


def test_a_manifest_of_another_version_is_refused(finished, ragbed):
    path = finished / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "scheme": None}))
    seal(finished)
    for command in ("report", "show"):
        ragbed.refuses(command, finished, *AND.get(command, []), says=["made by another version of ragbed"])


def test_what_a_summary_lacks_or_has_wrong_is_damage(finished, summarised, ragbed):
    id = json.loads((finished / "summary.json").read_text())["cells"][0]["id"]
    summarised(lambda summary: summary["cells"][0]["metrics"]["unified"].update(mean="high"))
    ragbed.refuses("compare", finished, says=["damaged, cells[0].metrics.unified.mean: ", "valid number"])
    summarised(lambda summary: summary["cells"][0]["metrics"]["unified"].update(mean=0.0))
    summarised(lambda summary: summary["cells"][0].update(condition="retrieved"))
    ragbed.refuses("diagnose", finished, says=[f"damaged, {id} is not the id of a cell with these factors"])
    summarised(lambda summary: summary["cells"][0].pop("metrics"))
    ragbed.refuses("diagnose", finished, says=["damaged, without cells[0].metrics", "`ragbed run`"])
    summarised(lambda summary: summary.update(cells=[]))
    ragbed.refuses("report", finished, says=["summary.json: damaged, cells: "])


def test_records_of_a_newer_version_are_refused_and_left_as_they_are(finished, ragbed):
    records = finished / "records.sqlite"
    with contextlib.closing(sqlite3.connect(records)) as connection:
        connection.execute(f"PRAGMA user_version={VERSION + 1:d}")
    before = records.read_bytes()
    ragbed.refuses("report", finished, says=["records.sqlite", f"format {VERSION + 1}"])
    assert records.read_bytes() == before
