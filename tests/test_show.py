"""`ragbed show`: one question of a run in the terminal."""
import json
import re
import shutil
from pathlib import Path

import pytest

from ragbed.documents import RunError
from ragbed.experiments.runs.finished import find_cells, find_question
from ragbed.strategies import template

IDS = ["alpha-1", "alpha-10", "beta-2", "#4"]

OPENING = f"{template('framed_documents')}\n\n<documents>\n[1]\n<table>"


def test_a_question_is_named_by_its_id_the_beginning_of_one_or_its_number():
    assert find_question(IDS, "alpha-1") == 0  # an id, though another begins so too
    assert find_question(IDS, "b") == 2
    assert find_question(IDS, "#2") == 1
    assert find_question(IDS, "#4") == 3  # its id, which is also its number
    with pytest.raises(RunError, match="2 ids begin with 'al', such as alpha-1, alpha-10; give more"):
        find_question(IDS, "al")
    with pytest.raises(RunError, match="no question 'beta-3' among the 4 of the run; the nearest: beta-2"):
        find_question(IDS, "beta-3")
    for name in ("#0", "#5"):
        with pytest.raises(RunError, match="the run has 4, from 1 to 4"):
            find_question(IDS, name)
    with pytest.raises(RunError, match="the first: alpha-1"):
        find_question(IDS, "")


def test_a_cell_is_named_by_its_label_its_id_or_parts_of_the_label_and_values_of_factors():
    cells = [{"id": id, "reasoning": way, "condition": shown, "rules": "open" if shown == "full" else "grounded",
              "repeat": 0} for id, way, shown in (("a1", "direct", "provided"), ("b2", "direct", "full"),
                                                  ("c3", "plan", "provided"))]
    named = {"a1": "direct · grounded · provided", "b2": "direct · open · full", "c3": "plan · grounded · provided"}
    assert find_cells(cells, None) == named
    assert list(find_cells(cells, "direct · open · full")) == ["b2"]
    assert list(find_cells(cells, "c3")) == ["c3"]
    assert list(find_cells(cells, "direct")) == ["a1", "b2"]
    assert list(find_cells(cells, "provided·plan")) == ["c3"]
    assert list(find_cells(cells, "grounded · repeat 0")) == ["a1", "c3"]
    assert list(find_cells(cells[::2], "grounded")) == ["a1", "c3"]  # a value that all have, and no label says
    with pytest.raises(RunError, match="no cell 'dir'; choose one of: direct · grounded · provided, "):
        find_cells(cells, "dir")
    assert find_cells([{"id": "a1"}, {"id": "b2"}], "b2") == {"b2": "b2"}


@pytest.fixture
def finished(serve, town, ragbed, kept) -> Path:
    if not kept.exists():
        status, _, err = ragbed("run", town.config(serve(town.reply).url, reasoning=["direct", "least_to_most"]))
        assert status == 0, err
        shutil.copytree(town.run, kept)
    return Path(shutil.copytree(kept, town.run, dirs_exist_ok=True))


def test_a_question_is_shown_with_what_every_cell_made_of_it(finished, ragbed):
    status, out, _ = ragbed("show", finished, "refusal-0")
    assert status == 0
    asked, cells, direct, least = out.split("\n\n")
    assert "question 2 of 6: refusal-0" in asked
    assert "How many people live in town 0?" in asked
    assert "unanswerable: a refusal is correct" in asked
    assert [line.split() for line in cells.splitlines()] == [
        ["cell", "outcome", "unified", "cause"], ["direct", "answered", "0", "missing", "refusal"],
        ["least_to_most", "answered", "0", "missing", "refusal"]]
    lines = [" ".join(line.split()) for line in direct.splitlines()]
    assert lines[:5] == ["direct", "outcome answered", "answer 0 people [1]", "cites [1] town/0-0 (gold chunk)",
                         "gold shown [1]"]
    assert "== step 1: passages provided, [1, 2]" in lines
    assert "[1] town/0-0 (gold chunk)" in lines
    assert "scores unified 0, refusal_accuracy 0" in lines
    used = next(line for line in lines if line.startswith("used "))
    assert re.fullmatch(r"used 1 call, \d+ \+ \d+ tokens, an unknown price; 1 request in [\d.]+ s", used), used
    assert "== step 2: answer, 2 messages, documents shown [1, 2]" in lines
    assert "<Answer>0 people [1]</Answer>" in lines
    assert least.count("== step") == 5
    assert "-- user" not in out
    assert "the passages as in direct" in least
    assert "\n   [1] town/0-0 (gold chunk)" not in least
    assert "well_formed" in ragbed("show", finished, "refusal-0", "--scores")[1]


def test_prompts_are_shown_as_sent_where_they_are_asked_for(finished, ragbed):
    out = ragbed("show", finished, "#2", "--cell", "direct", "--prompts")[1]
    assert out.count(f"-- user\n{OPENING}") == 1
    assert "least_to_most" not in out
    cells = json.loads(ragbed("show", finished, "#2", "--cell", "direct", "--prompts", "--json")[1])["cells"]
    (search, call), = [cell["trace"] for cell in cells]
    assert search["found"] == [1, 2]
    assert call["messages"][1]["content"].startswith(OPENING)


def test_json_has_the_question_its_gold_and_each_cell(finished, ragbed):
    shown = json.loads(ragbed("show", finished, "refusal", "--json")[1])
    assert (shown["number"], shown["of"], shown["question"]["answers"]) == (2, 6, ["0 people"])
    direct, least = shown["cells"]
    assert [cell["name"] for cell in (direct, least)] == ["direct", "least_to_most"]
    assert direct["citations"][0]["place"] == "town/0-0"
    assert direct["citations"][0]["gold"] == "chunk"
    assert direct["evidence"][1]["text"] == "The mayor of town 1 is Ada."
    assert direct["scores"]["unified"] == 0.0
    assert (direct["cause"], "well_formed" in direct["scores"]) == ("missing refusal", True)
    assert [step.get("messages") for step in least["trace"]] == [None, 2, 2, 4, 6]


def test_an_unfinished_run_is_shown_as_far_as_it_is(finished, town, ragbed):
    from ragbed.experiments import RunFolder

    folder = RunFolder.existing(finished)
    folder.reopen()
    folder.database.put("DELETE FROM records WHERE question = 'refusal-0' AND place = 1", ())
    folder.close()
    direct, least = json.loads(ragbed("show", finished, "refusal-0", "--json")[1])["cells"]
    assert (direct["name"], direct["outcome"]) == ("direct", "answered")
    assert (least["name"], least["outcome"]) == ("least_to_most", None)
    out = ragbed("show", finished, "refusal-0")[1]
    assert re.search("^direct +answered +0 +missing refusal\nleast_to_most +not asked yet +- +- *$", out, re.MULTILINE)
    shutil.rmtree(town.crest)
    names = [cell["name"] for cell in json.loads(ragbed("show", finished, "refusal-0", "--json")[1])["cells"]]
    assert names == ["direct", "least_to_most"]


def test_hostile_answers_do_nothing_to_the_terminal(serve, town, ragbed):
    hostile = "<Answer>\x1b[2J\u202e [red]x[/red] <script>" + "y" * 1_000_000 + "</Answer>"
    assert ragbed("run", town.config(serve(lambda body: hostile).url), "--limit", 1)[0] == 0
    status, out, _ = ragbed("show", town.folder / "runs" / "town-limit-1", "#1")
    assert status == 0
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b[2J\\x202e [red]x[/red] <script>yyy" in out
    assert "more characters, with --json" in out
    assert len(out) < 100_000


def test_what_is_not_there_is_refused_in_one_line(finished, ragbed, tmp_path):
    ragbed.refuses("show", tmp_path / "none", "#1", says=["holds no run"])
    ragbed.refuses("show", finished, "town", says=["no question 'town' among the 6", "1 to 6"])
