"""What the terminal and the summary show of a benchmark's breakdowns and of the paper's tables."""
import json

import pytest

from ragbed.experiments.analysis.view import View
from ragbed.experiments.metrics import estimate_share
from ragbed.experiments.terminal import display
from ragbed.experiments.terminal.display import print_table
from ragbed.experiments.terminal.run_tables import print_views, run_table, table_of, tables_of
from ragbed.strategies import CRESTS

FIVE = list(CRESTS)


def view(rows, header=("task", "cell", "n", "accuracy", "unparsed"), keys=2, **fields):
    return View(fields.pop("name", "by:task"), fields.pop("title", "By task"), header, tuple(map(tuple, rows)), keys,
                **fields)


def breakdown(cells, values, **fields):
    return view([[f"t{value}", f"c{cell}", 10, estimate_share(cell, 10), estimate_share(0, 10)]
                 for value in range(values) for cell in range(cells)], **fields)


@pytest.mark.parametrize(("cells", "values", "title", "header", "last"), [
    (2, 2, "By task", ["task", "cell", "n", "accuracy [95 %]", "unparsed [95 %]"],
     ["t1", "c1", "10", "0.10 [0.02, 0.40]", "0.00 [0.00, 0.28]"]),
    # Of one cell none is named; several with many values are a cross table of the first figure, and many cells with
    # few values one the other way.
    (1, 20, "By task", ["task", "n", "accuracy [95 %]", "unparsed [95 %]"],
     ["t19", "10", "0.00 [0.00, 0.28]", "0.00 [0.00, 0.28]"]),
    (5, 13, "By task: accuracy", ["task", "n", *(f"c{cell} [95 %]" for cell in range(5))],
     ["t12", "10", "0.00 [0.00, 0.28]", "0.10 [0.02, 0.40]", "0.20 [0.06, 0.51]", "0.30 [0.11, 0.60]",
      "0.40 [0.17, 0.69]"]),
    (9, 2, "By task: accuracy", ["cell", "t0, n 10 [95 %]", "t1, n 10 [95 %]"],
     ["c8", "0.80 [0.49, 0.94]", "0.80 [0.49, 0.94]"])])
def test_a_breakdown_is_shown_as_it_is_or_crossed(cells, values, title, header, last):
    shown, (columns, rows) = table_of(breakdown(cells, values), "lexical")
    assert (shown, columns, rows[-1]) == (title, header, last)


def test_what_is_beyond_a_terminal_or_shown_on_demand_says_where_it_is():
    assert table_of(breakdown(9, 9), "lexical") == ("By task: 81 rows, in the report and with --json", None)
    assert table_of(breakdown(1, 65), "lexical")[1] is None
    assert table_of(breakdown(1, 2, folded=True), None) == ("By task: 2 rows, in the report and with --json", None)


def test_breakdowns_stand_in_the_terminal_until_its_room_is_used_and_other_views_always():
    other = breakdown(1, 30, name="wins", title="Win rate")
    shown = list(tables_of([breakdown(2, 6), breakdown(2, 6), other, breakdown(1, 12), other], "lexical"))
    assert [title for title, table in shown if table] == ["By task", "By task", "Win rate", "Win rate"]
    assert shown[3] == ("By task: 12 rows, in the report and with --json", None)


def test_of_many_comparisons_the_real_ones_are_shown_and_the_others_counted(capsys):
    rows = [(f"a → {place}", 9, {"mean": 0.1, "low": 0.0, "high": 0.2}, 0.01 if place < 2 else 0.5)
            for place in range(20)]
    made = View("tests", "Tests", ("what changes", "n", "difference", "p"), tuple(rows), notes=("A note.",),
                signed=("difference",), p=("p",))
    print_views([made])
    out = capsys.readouterr().out
    assert "a → 1  " in out
    assert "a → 2 " not in out
    assert "18 of 20 comparisons are not significant." in out
    assert out.endswith("A note.\n")


HEADER = ["reasoning", "condition", "n", "exact match", "f1", "outcomes", "tokens", "price"]
ROWS = [[way, "closed-book", "120", "0.42 [0.33, 0.51]", "-0.42 [-0.53, -0.31]", "114 answered\n1 error", "200796",
         "$0.0304"] for way in ("direct", "chain_of_thought")]


def printed(capsys, monkeypatch, width, *table, **options):
    monkeypatch.setattr(display, "_WIDTH", width)
    monkeypatch.delenv("COLUMNS", raising=False)
    print_table(*table, **options)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_a_table_that_fits_stands_in_one_block(capsys, monkeypatch):
    header, first, more, second, _ = printed(capsys, monkeypatch, 120, HEADER, ROWS)
    assert header.split() == ["reasoning", "condition", "n", "exact", "match", "f1", "outcomes", "tokens", "price"]
    assert first.startswith("direct            closed-book  120  0.42 [0.33, 0.51]  -0.42 [-0.53, -0.31]  114 answered")
    assert more.strip() == "1 error"
    assert second.startswith("chain_of_thought  closed-book")


@pytest.mark.parametrize("width", [60, 72, 80, 100])
def test_a_wider_table_becomes_blocks_in_which_no_number_or_interval_is_cut(capsys, monkeypatch, width):
    lines = printed(capsys, monkeypatch, width, HEADER, ROWS)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert all(text.count(whole) == 2 for whole in ("200796", "$0.0304", "answered", "0.42 [0.33, 0.51]",
                                                    "-0.42 [-0.53, -0.31]"))
    blocks = text.split("\n\n")
    assert len(blocks) > 1
    assert all("\ndirect" in block for block in blocks)


def test_names_that_are_alike_at_their_beginning_are_shown_to_their_end(capsys, monkeypatch):
    names = [f"http://127.0.0.1:18431/v1#a · {way} · retrieved · dense · once" for way in ("direct", "plan_and_solve")]
    rows = [[name, "120", "0.42 [0.33, 0.51]"] for name in names]
    lines = printed(capsys, monkeypatch, 60, ["cell", "n", "em"], rows)
    shown = "".join(line.split("  ")[0] for line in lines).replace(" ", "")
    assert all(name.replace(" ", "") in shown for name in names)


def test_the_runs_table_has_the_factors_that_tell_cells_apart_and_models_by_their_short_names():
    cells = [{"model": f"http://127.0.0.1:8000/v1#{model}", "reasoning": "direct", "condition": condition,
              "rules": "closed-book" if condition == "closed-book" else "grounded", "judge": None, "n": 1,
              "metrics": {"em": estimate_share(1, 1)}, "outcomes": {"answered": 1},
              "usage": {"calls": 1, "prompt_tokens": 1, "completion_tokens": 1, "price": None}} | (
                  {"passages": 2.3333 if model == "a" else None})
             for model in "ab" for condition in ("provided", "closed-book")]
    header, rows = run_table(cells, ["em"])
    assert header == ["model", "condition", "n", "em", "outcomes", "passages", "calls", "tokens", "price"]
    assert [row[5] for row in rows] == ["2.33", "2.33", "-", "-"]
    assert [row[:2] for row in rows] == [
        ["a", "provided"], ["a", "closed-book"], ["b", "provided"], ["b", "closed-book"]]


def test_a_run_prints_its_breakdowns_and_keeps_them_in_its_summary(serve, town, ragbed):
    rows = [town.row(number, meta=json.dumps({"language": "ko" if number == 5 else "en",
                                              "difficulty_type": "SimpleQA"})) for number in range(6)]
    town.write(rows)
    status, out, _ = ragbed("run", town.config(serve(town.reply).url, reasoning=FIVE[:2]), "--full")
    assert status == 0
    assert "By language" in out
    assert "By difficulty type" not in out  # all are simple
    assert "CReSt (Khang et al., 2025), Table 3; CReSt (Khang et al., 2025), Table 4;" in " ".join(out.split())
    summary = json.loads((town.run / "summary.json").read_text())
    *others, language = summary["views"]
    assert language["name"] == "by:language"
    assert [one["name"] for one in others if one["section"] == "Published figures"] == [
        f"paper:crest_{place}" for place in (3, 4, 5, 6)]
    assert [row[:3] for row in language["rows"][:4]] == [
        ["en", FIVE[0], 5], ["en", FIVE[1], 5], ["ko", FIVE[0], 1], ["ko", FIVE[1], 1]]
    assert language["rows"][4][3] == summary["cells"][0]["metrics"]["unified"]
    assert summary["published"] == ["crest_3", "crest_4", "crest_5", "crest_6"]
    papers = [row[0] for one in others if one["name"].startswith("paper:") for row in one["rows"]]
    assert papers.count("published") == 45
    assert papers.count("this run") == 5  # chain of thought beside all four, direct beside Table 6
    assert (town.run / "report.html").read_text().count('">published<') == 4


def test_a_long_value_of_a_tag_leaves_room_for_the_figures(capsys):
    rows = [["x" * 140, "c", 10, estimate_share(1, 10), estimate_share(0, 10)], ["y", "c", 10, estimate_share(2, 10),
                                                                                 estimate_share(0, 10)]]
    print_table(*table_of(view(rows), "lexical")[1])
    _, first, *rest, last = (line.split() for line in capsys.readouterr().out.splitlines())
    assert first[1:] == ["10", "0.10", "[0.02,", "0.40]", "0.00", "[0.00,", "0.28]"]
    assert "".join([first[0], *(part for part, in rest)]) == "x" * 140
    assert last[:3] == ["y", "10", "0.20"]


def test_a_judges_long_name_is_left_to_the_title_of_the_runs_table():
    rows = [["a", "c", 1, estimate_share(0, 1), estimate_share(0, 1)]]
    header = ("task", "cell", "n", "graded_em (http://host/v1#judge)", "em")
    assert table_of(view(rows, header), "http://host/v1#judge")[1][0] == [
        "task", "n", "graded_em [95 %]", "em [95 %]"]
    assert table_of(view(rows, ("task", "cell", "n", "unified (lexical)", "em")), "lexical")[1][0][2] == (
        "unified (lexical) [95 %]")


def test_a_heat_map_is_shown_as_counts():
    _, (_, rows) = table_of(view([["a", "c", 9, estimate_share(1, 4), None]], shaded=(0.0, 1.0)), "lexical")
    assert rows == [["a", "9", "1 of 4", "-"]]


def test_chain_outcomes_that_never_occurred_leave_the_terminal_to_the_others():
    def share(mean):
        return {"mean": mean, "low": None, "high": None, "n": 2}

    rows = [["2", outcome, cell, 2, share(mean)] for outcome, mean in (
        ("c c c", 0.5), ("c w c", 0.0), ("w w w", 0.5), ("right for the right reason", 0.5), ("lucky", 0.0))
        for cell in ("a", "b")]
    made = view(rows, ("sub-questions", "outcome", "cell", "n", "share"), 3, name="chain", title="Chain outcomes")
    (title, (_, shown)), = tables_of([made], None)
    assert [row[1] for row in shown] == [outcome for outcome in (
        "c c c", "w w w", "right for the right reason", "lucky") for _ in range(2)]
    assert "never occurred are in the report" in title
