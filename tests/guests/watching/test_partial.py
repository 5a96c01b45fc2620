"""A run that was stopped or is under way opens with the answers that it has, and every reader says how many."""
import json

import pytest
from bs4 import BeautifulSoup

from ragbed import open_run
from ragbed.experiments import RunFolder
from ragbed.experiments.runs.store import lock_run

SAID = "5 of 12 answers; the figures cover these."
UNEQUAL = "comparisons use the questions that both cells have. Every cell that has begun has answered the same 2 of 6"


@pytest.fixture
def stopped(town, serve, ragbed):
    """A run of two cells that its budget stopped after five of its twelve answers."""
    path = town.config(serve(town.reply).url, concurrency=1, budget={"tokens": 3000},
                       reasoning=["direct", "chain_of_thought"])
    ragbed.refuses("run", path, says=["5 of 12 records are kept"])
    return town.run


def test_a_stopped_run_is_reported_compared_diagnosed_and_exported(stopped, ragbed, tmp_path):
    status, out, err = ragbed("report", stopped)
    assert (status, out.strip(), SAID in err, "was stopped" in err) == (0, str(stopped / "report.html"), True, True)
    for command in (["compare"], ["diagnose"], ["diagnose", "--cause", "right"]):
        status, out, _ = ragbed(command[0], stopped, *command[1:])
        assert status == 0
        assert SAID in " ".join(out.split())
        assert UNEQUAL in " ".join(out.split())
    status, _, err = ragbed("export", stopped, tmp_path / "answers.csv")
    assert (status, SAID in err) == (0, True)
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 1 + 5
    assert "unfinished run, 5 of 12 answers" in ragbed("show", stopped, "#1")[1]
    assert not (stopped / "summary.json").exists()


def test_json_says_that_the_run_is_incomplete_and_counts_the_answers_of_each_cell(stopped, ragbed, tmp_path):
    for command in (["report"], ["diagnose"], ["export", tmp_path / "answers.jsonl"]):
        found = ragbed.json(command[0], stopped, *command[1:])
        assert (found["complete"], found["progress"]["answers"], found["progress"]["expected"]) == (False, 5, 12)
        assert [(one["name"], one["answers"], one["expected"]) for one in found["progress"]["cells"]] == [
            ("direct", 3, 6), ("chain_of_thought", 2, 6)]
    compared = ragbed.json("compare", stopped)
    assert (compared["complete"], compared["progress"]["first"]["answers"]) == (False, 5)
    assert compared["comparisons"][0]["n"] == 2
    assert ragbed.json("show", stopped, "#1")["complete"] is False


def test_a_finished_run_is_complete_and_what_was_written_before_its_end_is_replaced(stopped, town, ragbed):
    ragbed("report", stopped)
    assert ragbed("run", town.folder / "town.yaml", "--budget", "tokens=none")[0] == 0
    assert ragbed.json("report", stopped)["complete"] is True
    assert "unfinished" not in (stopped / "report.html").read_text()
    with open_run(stopped) as run:
        assert run.progress == {"complete": True}
        assert "progress" not in run.summary


def test_the_report_shows_a_banner_and_does_not_rank_cells_of_different_questions(stopped, ragbed):
    ragbed("report", stopped)
    page = BeautifulSoup((stopped / "report.html").read_text(), "lxml")
    banner = page.select_one("header .unfinished").get_text()
    assert banner.startswith("This run is unfinished. 5 of 12 answers; the figures cover these. The run was stopped")
    assert page.title.string.startswith("Unfinished: ")
    assert page.select_one(".headline").get_text() == (
        "The cells have answered different questions so far, so their scores are not ranked.")
    assert [row.get_text() for row in page.select(".ranking td[data-label=n]")] == ["3", "2"]
    assert page.select_one("#plot") is None


def test_a_gate_is_not_checked_on_an_unfinished_run_unless_shared_questions_suffice(stopped, ragbed):
    gate = ["compare", stopped, "--fail-if", "unified < baseline - 2"]
    ragbed.refuses(*gate, says=["cannot be checked", "5 of 12 answers", "finish the run, or use --shared"])
    assert ragbed(*gate, "--shared")[0] == 0


def test_python_reads_one_snapshot_while_the_run_goes_on(stopped):
    lock = lock_run(stopped)
    writer = RunFolder(stopped, lock)
    with open_run(stopped) as run:
        assert run.progress["progress"]["running"] is True
        assert "still under way" in run.progress["progress"]["said"][0]
        writer.database.put("DELETE FROM records", ())
        writer.database.flush()  # the reader does not block it
        assert len(run.frame()) == len(list(run.records())) == 5
        assert {name: cell["n"] for name, cell in run.cells.items()} == {"direct": 3, "chain_of_thought": 2}
    writer.close()


def test_a_run_without_answers_and_one_that_is_started_anew_are_refused_in_one_line(stopped, ragbed):
    (stopped / "config.yaml").write_text("name: other\n")
    ragbed.refuses("report", stopped, says=["is being started again; repeat the command"])
    folder = RunFolder.existing(stopped)
    folder.database.put("DELETE FROM records", ())
    folder.close()
    ragbed.refuses("compare", stopped, says=["has no answers yet; rerun the `ragbed run` command"])


def test_cells_without_an_answer_are_named(stopped, ragbed):
    folder = RunFolder.existing(stopped)
    [cell] = [one["id"] for one in json.loads((stopped / "manifest.json").read_text())["cells"]
              if one["reasoning"] == "chain_of_thought"]
    folder.database.put("DELETE FROM records WHERE cell = ?", (cell,))
    folder.close()
    assert "3 of 12 answers" in ragbed("report", stopped)[2]
    assert "Without an answer so far: `chain_of_thought`." in ragbed("report", stopped)[2]
    with open_run(stopped) as run:
        assert run.cells["chain_of_thought"]["n"] == 0
