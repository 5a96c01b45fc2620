"""`ragbed run` end to end: one record for every question, killed and continued, and alone in its folder."""
import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from ragbed.strategies import CRESTS

FIVE = list(CRESTS)
COMMAND = [sys.executable, "-m", "ragbed", "run"]


def started(path, server, requests: int, *options: str) -> subprocess.Popen[str]:
    """A process that runs the settings, once it has made so many requests."""
    child = subprocess.Popen([*COMMAND, str(path), *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             text=True)
    while len(server.requests) < requests:
        assert child.poll() is None
        time.sleep(0.005)
    return child


def test_every_question_has_exactly_one_record_in_every_cell(serve, town, ragbed):
    path = town.config(serve(town.reply).url, reasoning=FIVE, conditions=["closed-book", "provided", "gold"])
    status, out, err = ragbed("run", path, "--json")
    assert status == 0
    cells = json.loads(out)["cells"]
    assert len(cells) == 15
    assert all(cell["n"] == sum(cell["outcomes"].values()) == 6 for cell in cells)
    pairs = Counter((record["result"]["cell"], record["result"]["question"]) for record in town.records())
    assert len(pairs) == 90
    assert set(pairs.values()) == {1}
    given = next(cell for cell in cells if (cell["reasoning"], cell["condition"]) == ("direct", "provided"))
    assert {name: n for name, n in given["outcomes"].items() if n} == {"answered": 4, "refused": 1, "malformed": 1}
    assert '"done": 90, "total": 90' in err


def test_other_settings_or_questions_ask_only_what_changed_and_fresh_asks_everything(serve, town, ragbed):
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url))[0] == 0
    assert "seed was 0, is 7" in ragbed("run", town.config(server.url, seed=7))[2]
    assert len(server.requests) == 6
    town.write([town.row(0, query="Another question?"), town.row(1)])
    path = town.config(server.url)
    assert "questions: 1 edited, 4 removed" in ragbed("run", path)[2]
    assert len(server.requests) == 6 + 1
    assert ragbed("run", path, "--fresh")[0] == 0
    assert len(server.requests) == 6 + 1 + 2
    assert [one["result"]["question"] for one in town.records()] == ["non_refusal-1", "refusal-0"]


def test_closed_book_sends_no_document_and_identical_cells_run_once(serve, town, ragbed):
    server = serve(town.reply)
    run = ragbed.json("run", town.config(
        server.url, conditions="closed-book", formats=["plain", "html"], seed=[0, 1]))
    (cell,) = run["cells"]
    assert {cell[name] for name in ("retrieval", "retriever", "format")} == {None}
    assert cell["rules"] == "closed-book"
    assert any("4 combinations of the settings make 1 cell" in note for note in run["notes"])
    assert len(server.requests) == 6
    sent = json.dumps([body for body, _ in server.requests])
    assert "Documents" not in sent
    assert "mayor" not in sent


@pytest.mark.slow
def test_two_processes_do_not_work_on_one_run_at_once(serve, town, ragbed):
    waiting = threading.Event()
    server = serve(lambda body: {"text": town.reply(body), "delay": 0 if waiting.is_set() else 1})
    path = town.config(server.url, concurrency=1)
    child = started(path, server, 1)
    ragbed.refuses("run", path, says=["another process is working on this run"])
    ragbed.refuses("run", path, "--fresh", says=["another process is working on this run"])
    waiting.set()
    _, err = child.communicate()
    assert child.returncode == 0, err
    assert ragbed("run", path)[0] == 0
    assert len(server.requests) == 6


def test_a_limited_run_is_a_run_of_its_own(serve, town, ragbed):
    server = serve(town.reply)
    path = town.config(server.url)
    limited = json.loads(ragbed("run", path, "--limit", 2, "--json")[1])
    assert (limited["run"], limited["cells"][0]["n"]) == (f"{town.run}-limit-2", 2)
    assert ragbed("run", path)[0] == 0
    assert len(town.hashes()) == 6


def test_a_folder_that_cannot_be_written_is_one_line(serve, town, ragbed):
    (town.folder / "file").write_text("")
    ragbed.refuses("run", town.config("http://127.0.0.1:9/v1", out=str(town.folder / "file")), says=["run folder"])
    town.run.mkdir(parents=True)
    (town.run / "records.sqlite").write_text("no database " * 1000)
    ragbed.refuses("run", town.config("http://127.0.0.1:9/v1"), says=["not a database"])


def test_a_damaged_run_folder_is_one_line(serve, town, ragbed):
    path = town.config(serve(town.reply).url)
    assert ragbed("run", path)[0] == 0
    for name in ("config.yaml", "manifest.json"):
        good = (town.run / name).read_bytes()
        for bad in (b"\xff", b"a: [", b"{}"):
            (town.run / name).write_bytes(bad)
            ragbed.refuses("run", path, says=[str(town.run), "--fresh"])
        (town.run / name).write_bytes(good)
    config = (town.run / "config.yaml").read_bytes()
    (town.run / "config.yaml").write_bytes(b"[" * 20_000)
    ragbed.refuses("run", path, says=[str(town.run), "--fresh"])
    ragbed.refuses("report", town.run, says=["config.yaml changed", "--fresh"])
    (town.run / "config.yaml").write_bytes(config)
    for name, good in (("config.yaml", config), ("manifest.json", (town.run / "manifest.json").read_bytes())):
        (town.run / name).unlink()
        os.mkfifo(town.run / name)
        ragbed.refuses("report", town.run, says=[name, "--fresh"])
        (town.run / name).unlink()
        (town.run / name).write_bytes(b" " * 17_000_000)
        ragbed.refuses("report", town.run, says=[name, "--fresh"])
        (town.run / name).write_bytes(good)
    for bad in (b"\xff", b"{"):
        (town.run / "summary.json").write_bytes(bad)
        ragbed.refuses("report", town.run, says=["summary.json", "rerun the `ragbed run` command"])
    ragbed.refuses("report", town.folder, says=["holds no run"])
    assert ragbed("run", path)[0] == 0
    report = ragbed.json("report", town.run)
    assert (report["run"], report["report"], report["complete"]) == (
        str(town.run), str(town.run / "report.html"), True)


@pytest.mark.parametrize("statement", [
    "CREATE VIEW endless AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
    "CREATE TRIGGER none_stays AFTER INSERT ON records BEGIN DELETE FROM records; END"])
def test_a_view_or_trigger_that_no_run_has_is_one_line(serve, town, ragbed, statement):
    path = town.config(serve(town.reply).url)
    assert ragbed("run", path)[0] == 0
    with contextlib.closing(sqlite3.connect(town.run / "records.sqlite")) as connection:
        connection.execute(statement)
    for args in (("run", path), ("report", town.run), ("verify", town.run)):
        ragbed.refuses(*args, says=["records.sqlite: unexpected ", "'" + " ".join(statement.split()[1:3]).lower()])


@pytest.mark.parametrize(("change", "says"), [
    (lambda summary: summary.pop("correctness_metrics"), "damaged, without correctness_metrics"),
    (lambda summary: summary.update(views=[1]), "damaged, views[0]: "),
    (lambda summary: summary.update(seed=-1), "damaged, seed: "),
    (lambda summary: summary["cells"][0].update(n=-5), "damaged, cells[0].n: "),
    (lambda summary: summary["cells"][0].update(usage={}), "damaged, without cells[0].usage.calls"),
    (lambda summary: summary["cells"][0]["metrics"]["unified"].update(mean=1e308), "unified.mean: "),
    (lambda summary: summary["cells"][0]["metrics"]["unified"].update(high=float("nan")), "unified.high: ")])
def test_a_summary_that_no_run_writes_is_one_line(serve, town, ragbed, change, says):
    assert ragbed("run", town.config(serve(town.reply).url))[0] == 0
    summary = json.loads((town.run / "summary.json").read_text())
    change(summary)
    (town.run / "summary.json").write_text(json.dumps(summary))
    for command in ("report", "rescore"):
        ragbed.refuses(command, town.run, says=["summary.json", says, "rerun the `ragbed run` command"])


@pytest.mark.slow
def test_output_that_cannot_say_a_character_says_it_otherwise(serve, town, ragbed):
    assert ragbed("run", town.config(serve(town.reply).url, name="town", out=str(town.folder / "실행")))[0] == 0
    done = subprocess.run([*COMMAND[:-1], "report", str(town.folder / "실행" / "town")], capture_output=True, text=True,
                          env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(r"\uc2e4\ud589/town/report.html" + "\n")


def test_the_same_run_gives_the_same_bytes_of_its_report_and_times_stand_in_a_file_of_their_own(serve, town, ragbed):
    made, delay = [], 0.0
    path = town.config(serve(lambda body: {"text": town.reply(body), "delay": delay}).url)
    for delay in (0.0, 0.2):
        assert ragbed("run", path, "--fresh")[0] == 0
        times = [json.loads(line) for line in (town.run / "times.jsonl").read_text().splitlines()]
        assert len(times) == len(town.records())
        assert {"cell", "question", "seconds", "attempts"} <= times[0].keys()
        assert all(one["seconds"] >= delay for one in times)
        made.append((town.run / "report.html").read_bytes())
    assert made[0] == made[1]
