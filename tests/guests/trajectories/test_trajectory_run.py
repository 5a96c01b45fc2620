"""Trajectories of a run: scripted agents whose searches are known, as `ragbed show` and the report draw them."""
import json
import re
import shutil

import pytest

from ragbed.experiments.guests.trajectories.drawing import draw_two

PAGES = {"jaws.txt": "Jaws was directed by Steven Spielberg.", "cinema.txt": "A cinema shows films.",
         "spielberg.txt": "Steven Spielberg was born in Cincinnati.", "sharks.txt": "Sharks live in the sea."}
QUESTION = {"id": "jaws", "question": "Where was the director of Jaws born?", "answer": "Cincinnati",
            "gold_documents": ["jaws.txt", "spielberg.txt"]}
TURNS = ["search: Steven Spielberg born", "search: sharks sea", "search: sharks live", "finish"]
LONG, SHORT = "react(tools=text)", "react(iterations=1, tools=text)"


def reply(body):
    """The agent searches as `TURNS` has it. Every call has 100 prompt tokens more than the one before it."""
    turns = sum(one["role"] == "assistant" for one in body["messages"])
    seen = "\n".join(one["content"] for one in body["messages"])
    born = re.search(r"\[(\d)\]\nSteven Spielberg was born", seen)
    said = f"<Answer>Cincinnati [{born[1]}]</Answer>" if born else "<Answer>Paris [1]</Answer>"
    asked = "final answer" in body["messages"][-1]["content"]
    return {"text": said if asked else TURNS[turns],
            "usage": {"prompt_tokens": 100 * (turns + 1), "completion_tokens": 10}}


@pytest.fixture
def run(serve, town, ragbed, kept):
    """A run of `react` that may search again four times, and once, and of `direct`."""
    if not kept.exists():
        path = town.config(serve(reply).url, benchmark=town.own(QUESTION, pages=PAGES), conditions="retrieved",
                           retriever={"kind": "bm25", "k": 1}, judge="lexical", reasoning=[
                               {"kind": "react", "tools": "text"}, {"kind": "react", "tools": "text", "iterations": 1},
                               "direct"])
        status, _, err = ragbed("run", path)
        assert status == 0, err
        shutil.copytree(town.run, kept)
    return shutil.copytree(kept, town.run, dirs_exist_ok=True)


def test_figures_of_a_run_are_those_of_its_agents(run):
    long, short, direct = (cell["metrics"] for cell in json.loads((run / "summary.json").read_text())["cells"])
    known = {"gold_seen": (1, 1), "gold_cited": (0.5, 0.5), "tool_calls": (4, 2), "tool_calls_repeated": (0, 0),
             "tokens_to_gold": (0, 0), "steps_after_gold": (2, 0), "tokens_after_gold": (210 + 310, 0),
             "trajectory_tokens": (110 + 210 + 310 + 410 + 510, 110 + 210), "tokens_per_right": (1550, 320),
             "ended_by_answer": (1, 0), "ended_by_turns": (0, 1)}
    assert {name: (long[name]["mean"], short[name]["mean"]) for name in known} == known
    assert not known.keys() & direct.keys()


def test_show_draws_a_line_for_each_call(run, ragbed):
    _, out, _ = ragbed("show", run, "jaws")
    drawn = [line.split() for line in out.splitlines() if re.match(r" {0,3}\d? +(search|answered,?|call) ", line)]
    assert [" ".join(line) for line in drawn[:6]] == [
        "call brought gold tokens so far", "1 search Where was the director of Jaws born? [1*] 1 of 2 0",
        "2 search Steven Spielberg born [2*] 2 of 2 110", "3 search sharks sea [3] 320",
        "4 search sharks live [3] 630", "answered cites [2*] 1 of 2 1,550"]
    assert len(drawn) == 6 + 4  # `direct` has a single call, which its steps show
    row = ragbed.json("show", run, "jaws")["cells"][0]
    assert row["trajectory"][1] == {"tool": "search", "text": "Steven Spielberg born", "brought": "[2*]",
                                    "count": "1 [2*]", "gold": "2 of 2", "tokens": 110}


def test_show_draws_two_trajectories_side_by_side_and_where_they_part(run, ragbed):
    _, out, _ = ragbed("show", run, "jaws", "--cell", LONG, "--against", "direct")
    rows = out.splitlines()[-7:]
    assert rows[0].split() == [LONG, "|", "direct"]
    assert [" ".join(side.split()) for side in rows[1].split("|")] == [
        "1 search Where was the director of Jaws born? 1 [1*] 1/2 0"] * 2
    assert rows[2].strip("-") == " here they part "
    assert [" ".join(side.split()) for side in rows[3].split("|")] == [
        "2 search Steven Spielberg born 1 [2*] 2/2 110", "answered [1*] 1/2 110"]
    assert ragbed("show", run, "jaws", "--against", "direct")[1] == out
    both = ragbed.json("show", run, "#1", "--cell", LONG, "--against", SHORT)
    assert (both["parting"], [len(cell["trajectory"]) for cell in both["cells"]]) == (2, [5, 3])
    ragbed.refuses("show", run, "jaws", "--against", LONG, says=["is the cell itself", "add --cell"])
    ragbed.refuses("show", run, "jaws", "--against", "grounded", says=["matches 3 cells; name one of: react"])


@pytest.mark.parametrize("width", [40, 80, 120])
def test_side_by_side_fits_the_terminal(run, width):
    from ragbed.experiments import RunFolder

    folder = RunFolder.existing(run)
    results = [record.result for record in folder.records_of("jaws")][:2]
    folder.close()
    drawn = draw_two([(LONG, results[0]), (SHORT, results[1])], width)
    assert max(map(len, drawn)) <= width
    assert sum("here they part" in line for line in drawn) == 1


def test_the_report_draws_the_calls_of_the_chosen_cells_side_by_side(run, visit):
    page = visit(f"file://{run}/report.html#questions?open=jaws", viewport={"width": 1280, "height": 1000})
    page.wait_for_selector(".path table")
    assert page.locator(".path").count() == 3
    rows = [" ".join(row.split()) for row in page.locator(".path").first.locator("tbody tr").all_inner_texts()]
    assert rows[1:3] == ["2 they part here search Steven Spielberg born [2*] 2 of 2 110", "3 search sharks sea [3] 320"]
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
