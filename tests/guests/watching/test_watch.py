"""A run is followed, paused and given another concurrency while it goes on, and its results stay the same."""
import json
import os
import signal
import threading
import time
from types import SimpleNamespace

import pytest

from ragbed.documents.errors import RunError
from ragbed.experiments import RunFolder
from ragbed.experiments.guests.watching.commands import screen_of
from ragbed.experiments.guests.watching.control import FILE, Control, RunControl, read_control, write_control
from ragbed.experiments.guests.watching.watcher import CellProgress, Progress, Watcher, recent_rate
from ragbed.experiments.runs.store import lock_run
from ragbed.experiments.terminal.display import console
from ragbed.retrieval.storage.files import hold


@pytest.fixture
def stopped(town, serve, ragbed):
    """A run of two cells that its budget stopped after five of its twelve answers."""
    path = town.config(serve(town.reply).url, concurrency=1, budget={"tokens": 3000},
                       reasoning=["direct", "chain_of_thought"])
    ragbed.refuses("run", path, says=["5 of 12 records are kept"])
    return town.run


def test_watch_shows_answers_and_figures_of_a_stopped_run_and_ends_with_status_1(stopped, ragbed):
    status, out, _ = ragbed("watch", stopped)
    assert status == 1
    assert out == ("5 of 12 answers (41 %), an unknown price; stopped before its end: no process works on it; rerun "
                   "the `ragbed run` command to continue it\n")
    status, out, _ = ragbed("watch", stopped, "--once")
    assert status == 1
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["cell", "direct", "chain_of_thought"]
    assert "3/6" in out.splitlines()[1]
    found = json.loads(ragbed("watch", stopped, "--once", "--json")[1])
    assert (found["state"], found["complete"], found["answers"], found["expected"]) == ("stopped", False, 5, 12)
    lock = lock_run(stopped)
    assert json.loads(ragbed("watch", stopped, "--once", "--json")[1])["state"] == "running"
    lock.release()


def test_watch_of_a_finished_run_has_the_figures_of_its_summary(town, serve, ragbed):
    assert ragbed("run", town.config(serve(town.reply).url))[0] == 0
    [cell] = ragbed.json("watch", town.run)["cells"]
    [row] = json.loads((town.run / "summary.json").read_text())["cells"]
    assert cell["figure"] == row["metrics"]["unified"]
    assert (cell["answers"], cell["failed"]) == (6, 0)


def test_a_watcher_reads_what_is_new_and_notices_what_was_removed(stopped):
    watcher = Watcher(stopped)
    assert watcher.look().answers == 5
    folder = RunFolder.existing(stopped)
    [(cell, question), *_] = sorted(folder.done())
    folder.database.put("DELETE FROM records WHERE cell = ? AND question = ?", (cell, question))
    folder.database.flush()
    assert watcher.look().answers == 4
    folder.close()


def test_shards_are_watched_together(town, serve, ragbed):
    path = town.config(serve(town.reply).url)
    assert ragbed("run", path, "--shard", "1/2")[0] == 0
    first = ragbed.json("watch", town.run)
    assert ragbed("run", path, "--shard", "2/2")[0] == 0
    found = ragbed.json("watch", town.run)
    assert first["answers"] < found["answers"] == found["expected"] == 6
    assert found["state"] == "finished"


def test_a_narrow_terminal_shortens_only_the_names_of_cells(capsys, monkeypatch):
    monkeypatch.setattr("ragbed.experiments.terminal.display._WIDTH", 80)
    monkeypatch.delenv("COLUMNS", raising=False)
    figure = {"mean": 0.2, "low": 0.12, "high": 0.32}
    cells = [CellProgress(f"chain_of_thought(instruction=Answer in one word.) · {way}", 60, 120, 3, figure)
             for way in ("retrieved", "gold")]
    console().print(screen_of(Progress("running", cells, "right", None, 0.0), 9))
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert header.split() == ["cell", "answers", "score", "so", "far", "failed"]
    assert first.startswith("chain_of_thought(instruction=An… ")
    assert first.rstrip().endswith("60/120  0.20 [0.12, 0.32]       3")


def test_the_rate_is_that_of_the_last_minute_or_of_the_last_ten_answers():
    assert recent_rate([], 100.0) is None
    assert recent_rate([40.0 + place for place in range(60)], 100.0) == 1.0
    assert recent_rate([0.0, 50.0, 100.0], 150.0) == 3 / 150
    assert recent_rate([0.0, 1.0], 10_000.0) is None


def test_a_run_is_changed_only_while_a_process_works_on_it(stopped, ragbed):
    ragbed.refuses("watch", stopped, "--pause", says=["no process works on this run"])
    ragbed.refuses("watch", stopped, "--pause", "--resume", says=["contradict each other"])
    with hold(stopped / ".lock"):
        status, out, _ = ragbed("watch", stopped, "--pause", "--concurrency", 2)
        assert (status, out) == (0, f"{stopped}: paused: it finishes the questions under way; 2 questions at a time "
                                    "per model\n")
        assert json.loads(ragbed("watch", stopped, "--once", "--json")[1])["state"] == "paused"
        assert ragbed.json("watch", stopped, "--resume") == {"run": str(stopped), "concurrency": 2, "paused": False}


@pytest.mark.parametrize("text", ["[", "paused: 1", "concurrency: 0", "concurrency: 5000", "speed: 3", "x" * 5_000,
                                  "concurrency: '2'", "[" * 2_000, "- 1", "\x00", "", "# nothing", "[]"])
def test_a_bad_control_file_is_one_line_and_ignored(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(RunError, match=r"control\.yaml is ignored: [^\n]+"):
        read_control(tmp_path)
    assert write_control(tmp_path, paused=True) == Control(paused=True) == read_control(tmp_path)


async def test_a_paused_run_stays_paused_if_its_control_file_becomes_bad_and_watch_says_why(stopped, ragbed):
    import asyncio

    notes = []
    with hold(stopped / ".lock"):
        control = RunControl(stopped, notes.append)
        control.pause(True)
        (stopped / FILE).write_text("")
        while len(notes) < 2:  # the run reads the file regularly
            await asyncio.sleep(0.01)
        state = json.loads(ragbed("watch", stopped, "--once", "--json")[1])
        said = ragbed("watch", stopped, "--once")[1]
        assert write_control(stopped, concurrency=2) == Control(concurrency=2, paused=True)
        control.close()
    assert control.control.paused
    assert (state["state"], notes[1:]) == ("paused", [state["problem"]])
    assert state["problem"] == (f"{stopped / FILE} is ignored: it has no setting such as paused: true; write it with "
                                "`ragbed watch RUN`, or delete it")
    assert f"paused; {state['problem']}" in " ".join(said.split())


@pytest.mark.slow
async def test_jobs_wait_while_paused_and_as_many_run_as_the_file_says(tmp_path):
    import asyncio

    notes, begun, ended = [], [], asyncio.Event()
    control = RunControl(tmp_path, notes.append)
    client = SimpleNamespace(allow=lambda wanted: wanted or 3)

    async def work(job):
        begun.append(job)
        await ended.wait()

    async def until(condition):
        while not condition():
            await asyncio.sleep(0.01)

    write_control(tmp_path, paused=True)
    await until(lambda: control.control.paused)
    jobs = asyncio.create_task(control.run_jobs(range(9), client, work))
    await asyncio.sleep(0.05)
    assert begun == []
    write_control(tmp_path, paused=False)
    await until(lambda: len(begun) == 3)
    write_control(tmp_path, concurrency=5)
    await until(lambda: len(begun) == 5)
    ended.set()
    await jobs
    control.close()
    assert begun == [*range(9)]
    assert notes[1:] == ["resumed", "concurrency is now 5"]


@pytest.mark.slow
def test_a_run_that_was_paused_and_slowed_has_the_same_results_and_leaves_no_control_file(serve, town, ragbed):
    seen, lock = [], threading.Lock()

    def script(body):
        with lock:
            seen.append(body)
            if len(seen) == 3:
                os.kill(os.getpid(), signal.SIGUSR1)
                threading.Thread(target=resume, daemon=True).start()
        return town.reply(body)

    def resume():
        while not read_control(town.run).paused:
            time.sleep(0.01)
        time.sleep(1)  # longer than the run takes to read the file
        write_control(town.run, paused=False, concurrency=1)

    config = town.config(serve(script).url, concurrency=2, reasoning=["direct", "chain_of_thought"])
    town.run.mkdir(parents=True)
    (town.run / FILE).write_text("paused: true")  # of a killed run
    status, _, err = ragbed("run", config)
    assert status == 0
    assert "paused: questions under way finish" in err
    assert not (town.run / FILE).exists()
    paused = (town.run / "summary.json").read_bytes(), town.hashes()
    assert ragbed("run", config, "--fresh")[0] == 0
    assert ((town.run / "summary.json").read_bytes(), town.hashes()) == paused
