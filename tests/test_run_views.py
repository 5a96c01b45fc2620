"""What the terminal and the summary show of a benchmark's breakdowns and of the paper's tables."""
import json

from experiments.metrics import share_of
from experiments.terminal.tables import run_table, view_table, view_tables
from strategies.catalogue import CRESTS

FIVE = list(CRESTS)


def view(rows, header=("task", "cell", "n", "accuracy", "unparsed"), keys=2, shaded=False):
    return {"name": "by:task", "title": "By task", "header": list(header), "rows": rows, "keys": keys, "main": keys + 1,
            "notes": [],
            "shaded": shaded}


def breakdown(cells, values):
    return view([[f"t{value}", f"c{cell}", 10, share_of(cell, 10), share_of(0, 10)]
                 for value in range(values) for cell in range(cells)])


def test_a_short_breakdown_is_shown_as_it_is():
    title, (header, rows) = view_table(breakdown(2, 2), "lexical")
    assert (title, header) == ("By task", ["task", "cell", "n", "accuracy", "unparsed"])
    assert rows[1] == ["t0", "c1", "10", "0.10 [0.02, 0.40]", "0.00 [0.00, 0.28]"]


def test_a_long_breakdown_of_several_cells_becomes_a_cross_table_of_the_first_figure():
    title, (header, rows) = view_table(breakdown(5, 13), "lexical")
    assert title == "By task: accuracy"
    assert header == ["task", "n", "c0", "c1", "c2", "c3", "c4"]
    assert len(rows) == 13
    assert rows[12] == ["t12", "10", "0.00 [0.00, 0.28]", "0.10 [0.02, 0.40]", "0.20 [0.06, 0.51]",
                        "0.30 [0.11, 0.60]", "0.40 [0.17, 0.69]"]


def test_breakdowns_stand_in_the_terminal_until_its_room_is_used_and_other_views_always():
    other = {**breakdown(1, 30), "name": "wins", "title": "Win rate"}
    shown = list(view_tables([breakdown(2, 6), breakdown(2, 6), other, breakdown(1, 12), other], "lexical"))
    assert [title for title, table in shown if table] == ["By task", "By task", "Win rate", "Win rate"]
    assert shown[3] == ("By task: 12 rows, in the report and with --json", None)


def test_the_runs_table_has_the_factors_that_tell_cells_apart_and_models_by_their_short_names():
    cells = [{"model": f"http://127.0.0.1:8000/v1#{model}", "reasoning": "direct", "condition": condition,
              "rules": "closed-book" if condition == "closed-book" else "grounded", "judge": None, "n": 1,
              "metrics": {"em": share_of(1, 1)}, "outcomes": {"answered": 1},
              "usage": {"calls": 1, "prompt_tokens": 1, "completion_tokens": 1, "price": None}} | (
                  {"passages": 2.3333} if model == "a" else {})
             for model in "ab" for condition in ("given", "closed-book")]
    header, rows = run_table(cells, ["em"])
    assert header == ["model", "condition", "n", "em", "outcomes", "passages", "calls", "tokens", "price"]
    assert [row[5] for row in rows] == ["2.33", "2.33", "-", "-"]  # summaries of earlier versions do not say
    assert [row[:2] for row in rows] == [["a", "given"], ["a", "closed-book"], ["b", "given"], ["b", "closed-book"]]


def test_a_run_prints_its_breakdowns_and_keeps_them_in_its_summary(serve, town, ragbed):
    rows = [town.row(number, meta=json.dumps({"language": "ko" if number == 5 else "en",
                                              "difficulty_type": "SimpleQA"})) for number in range(6)]
    town.write(rows)
    status, out, _ = ragbed("run", town.config(serve(town.reply).url, reasoning=FIVE[:2]))
    assert status == 0
    assert "By language" in out
    assert "By difficulty type" not in out  # all are simple
    assert "CReSt (Khang et al., 2025), Table 3, Table 4, Table 5, Table 6" in " ".join(out.split())
    summary = json.loads((town.run / "summary.json").read_text())
    assert [one["name"] for one in summary["views"]] == ["by:language"]
    language = summary["views"][0]
    assert [row[:3] for row in language["rows"][:4]] == [
        ["en", FIVE[0], 5], ["en", FIVE[1], 5], ["ko", FIVE[0], 1], ["ko", FIVE[1], 1]]
    assert language["rows"][4][3] == summary["cells"][0]["metrics"]["unified"]
    assert summary["published"] == ["crest_3", "crest_4", "crest_5", "crest_6"]
    page = (town.run / "report.html").read_text()
    assert page.count('<tr class="published">') == 45
    assert page.count('<tr class="own">') == 5  # with chain of thought beside all four, direct beside Table 6
