"""The page's breakdowns, published tables and question browser for benchmarks of every kind."""
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from report_runs import Page
from stored import result

from ragbed.experiments import (
    Question,
    Record,
    ReportInput,
    Result,
    Step,
    StoredSub,
    Timing,
    Verdict,
    aggregate,
    write_report,
)
from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.guests.datasets.published_tables import paper_views
from ragbed.experiments.metrics import estimate_share
from ragbed.experiments.report.cell_table import Figure, table

HOSTILE = '<img src=x onerror="alert(1)">\u202e'
SHOWN = HOSTILE.replace("\u202e", "⟨U+202E⟩")


def cell(name: str, metrics: dict[str, float], **fields: Any) -> dict[str, Any]:
    return {"id": name, "model": "m", "retrieval": None, "retriever": None, "reasoning": name, "rules": "choice",
            "condition": "full", "perturbation": None, "show": "question", "format": None, "benchmark": "b",
            "repeat": 0, "judge": "lexical", "scoring": "corrected", "layout": "as_published", "n": 4,
            "outcomes": {"answered": 4},
            "metrics": {metric: {"mean": mean, "low": mean - 0.1, "high": mean + 0.1, "n": 4}
                        for metric, mean in metrics.items()},
            "usage": {"prompt_tokens": 400, "completion_tokens": 40, "calls": 4, "price": 0}, **fields}


def record(cell: str, question: str, scores: dict[str, float | None], **fields: Any) -> Record:
    return Record(result=result(cell, question, scores, text="B", **fields),
                  timing=Timing(seconds=1, attempts=1, replayed=0, paid=None, finished=""))


def written(folder: Path, summary: dict[str, Any], records: list[Record], *questions: Question) -> Path:
    path, asked = folder / "report.html", {one.id: one for one in questions}
    results: dict[str, list[Result]] = {}
    for one in records:
        results.setdefault(one.result.cell, []).append(one.result)
    cells = [{**cell, "metrics": aggregate(results.get(cell["id"], ()), "corrected", 0)} for cell in summary["cells"]]
    run = AnalysisInput(cells, results, asked, (), published=summary.get("published", ()))
    views = [*summary.get("views", ()), *(view.as_json() for view in paper_views(run))]
    write_report(ReportInput("r", {**summary, "views": views}, asked, records, {}.__getitem__), path)
    return path


def page(folder: Path, summary: dict[str, Any], records: list[Record], *questions: Question) -> BeautifulSoup:
    return BeautifulSoup(written(folder, summary, records, *questions).read_bytes(), "html.parser")


def words(tag: Any) -> str:
    return " ".join(tag.text.split())


@pytest.fixture
def detective(detective_file: Path) -> BeautifulSoup:
    return BeautifulSoup(detective_file.read_bytes(), "html.parser")


@pytest.fixture
def detective_file(tmp_path: Path) -> Path:
    view = {"name": "depth", "title": "Heat " + HOSTILE, "header": ["context", "cell", "n", "0-10%", "10-20%"],
            "rows": [["short", "a", 9, estimate_share(3, 4), None], ["short", "b", 9, estimate_share(0, 9),
                                                                     estimate_share(9, 9)]],
            "keys": 2, "notes": ["n counts steps."], "shaded": [0.0, 1.0]}
    summary = {"columns": ["accuracy", "reasoning_score"], "views": [view], "published": ["detectiveqa_6"],
               "cells": [cell("a", {"well_formed": 0.5, "accuracy": 0.4, "reasoning_score": 0.3}),
                         cell("b", {"well_formed": 0.5, "accuracy": 0.6, "reasoning_score": 0.3})]}
    question = Question("q", "Who?", ("B",), answerable=True, options=(("A", "maid"), ("B", "butler")),
                        steps=(Step("The door was locked " + HOSTILE, 0.25), Step("So it was the butler")))
    verdict = Verdict(judge="lexical", steps=(1,))
    scores = {"accuracy": 1.0, "reasoning_score": 0.5}
    return written(tmp_path, summary, [record("a", "q", scores, verdict=verdict), record("b", "q", scores)], question)


def test_the_first_column_is_what_the_sentences_and_the_plot_are_about(detective: BeautifulSoup) -> None:
    assert words(detective.select_one(".headline")).startswith(
        "b scores highest (0.60)")
    assert "Mean accuracy with its 95 % interval" in detective.select_one("#plot svg")["aria-label"]
    assert words(detective.select_one("#plot .axis-title")) == "↑ mean accuracy"


def test_a_heat_map_is_a_table_with_shaded_cells(detective: BeautifulSoup) -> None:
    heat = detective.select_one("table.heat")
    assert [words(head) for head in heat.select("thead th")] == ["context", "cell", "n", "0-10%", "10-20%"]
    assert heat.select_one('th[scope="rowgroup"]')["rowspan"] == "2"
    first, second = heat.select("tbody tr")
    assert [(words(entry), entry.get("class")) for entry in first.select("td")] == [
        ("9", None), ("0.75 [0.30, 0.95] n 4", ["shade-8"]), ("none", None)]
    assert [entry.get("class") for entry in second.select("td")] == [None, ["shade-0"], ["shade-10"]]
    assert ".shade-10" in detective.style.string
    assert "⟨U+202E⟩" in detective.select_one("#breakdowns h3").text
    assert not detective.find_all("img")


def test_published_rows_are_marked_and_say_how_they_were_measured(detective: BeautifulSoup) -> None:
    rows = detective.select('[data-view="paper:detectiveqa_6"] tbody')[1].select("tr")
    assert len(rows) == 10
    assert [words(one) for one in rows[0].select("th")] == [
        "published", "GPT-4-1106-preview-128k",
        "Table 6; n: not stated; the benchmark has 1,200 questions; prompt: not stated; judge: GPT-4"]
    assert [words(value) for value in rows[0].select("td")[:3]] == ["73.99", "27.43", "45.05"]


def test_the_runs_rows_stand_beside_them_in_the_papers_unit(detective: BeautifulSoup) -> None:
    own = detective.select('[data-view="paper:detectiveqa_6"] tbody')[0].select("tr")
    assert words(own[0].select("th")[0]) == "this run"
    assert [words(row.select("th")[-2]) for row in own] == ["1 a", "2 b"]
    assert words(own[0].select("th")[-1]) == (
        "this run, corrected scoring; n: 4; prompt: as published; judge: lexical")
    figures = [value.select_one(".mean") for value in own[0].select("td")[:4]]
    assert [figure and words(figure) for figure in figures] == ["100.00", "50.00", "70.71", None]
    assert all(value.select_one(".interval").text for value in own[0].select("td")[:3])


def test_a_question_has_its_steps_and_which_of_them_each_answer_holds(detective_file: Path) -> None:
    page = Page(detective_file)
    question = page.question("q")
    assert question["options"] == [["A", "maid"], ["B", "butler"]]
    assert question["references"] == [["The door was locked " + SHOWN, "25 % in"], ["So it was the butler", ""]]
    assert [answer.get("held") for answer in question["answers"]] == [[1], None]
    assert page.index["words"]["grade"] == ["", "1 of 2 steps"]


def test_a_question_has_its_sub_questions_and_what_was_answered(tmp_path: Path) -> None:
    question = Question("q", "When?", ("1970",), answerable=True, sub_questions=("Who?", "When was #1 born?"),
                        sub_answers=("Ada", "1970"))
    subs = (StoredSub(question="Who?", outcome="answered", text="Ada [1]"),
            StoredSub(question="When was Ada born?", outcome="refused"))
    scores = {"em": 0.0, "sub_em@1": 1.0, "sub_em@2": 0.0}
    written(tmp_path, {"columns": ["em"], "cells": [cell("a", {"em": 0.0})]}, [record("a", "q", scores, subs=subs)],
            question)
    shown = Page(tmp_path / "report.html").question("q")
    assert shown["subs"] == [["Who?", "Ada"], ["When was #1 born?", "1970"]]
    assert shown["answers"][0]["asked"] == [
        ["Who?", "Ada [1]", "answered", True], ["When was Ada born?", "", "refused", False]]


@pytest.mark.parametrize(("verdict", "shown"), [
    (Verdict(judge="m", points=7), "7 of 10"), (Verdict(judge="m", grade="Wrong"), "Wrong"),
    (Verdict(judge="m", note="prose"), "unjudged"), (Verdict(judge="m", steps=()), "0 of 0 steps")])
def test_a_verdict_is_shown_by_its_rubric(tmp_path: Path, verdict: Verdict, shown: str) -> None:
    question = Question("q", "When?", ("1970",), answerable=True)
    written(tmp_path, {"columns": ["em"], "cells": [cell("a", {"em": 0.0})]}, [record("a", "q", {}, verdict=verdict)],
            question)
    assert shown in Page(tmp_path / "report.html").index["words"]["grade"]


def test_a_run_without_views_or_published_tables_has_no_such_sections(tmp_path: Path) -> None:
    made = page(tmp_path, {"cells": [cell("a", {"em": 0.0})]}, [])
    assert made.select("#published, #breakdowns") == []


def test_the_schemes_columns_come_first_and_the_rest_stands_apart(detective: BeautifulSoup) -> None:
    heads = [words(head) for head in detective.select("table.cells thead th")]
    assert heads == ["Cell", "reasoning score (judge: lexical)", "outcomes", "passages", "tokens", "calls"]
    assert [words(head) for head in detective.select("#figures .more thead th")] == ["Metric", "1 a", "2 b"]


def test_shares_of_one_question_stand_together_after_the_first_of_them() -> None:
    made = table([cell("a", {"correct": 0.5, "partial": 0.3, "wrong": 0.2, "em": 0.1})], ["correct / partial / wrong"])
    assert [column.parts for column in made.columns] == [
        ("correct (lexical)",), ("correct (lexical)", "partial (lexical)", "wrong (lexical)")]
    assert [column.parts for column in made.more] == [("partial (lexical)",), ("wrong (lexical)",), ("em",)]
    assert made.cells[0].counts(made.columns[1]) == [2, 1, 1]
    assert made.quality == "correct"


def test_columns_that_share_a_place_and_are_no_shares_each_have_their_own() -> None:
    made = table([cell("a", {"em": 0.2, "f1": 0.5})], ["em / f1"])
    assert [(column.title, column.joined) for column in made.columns] == [("exact match", False), ("token F1", False)]


@pytest.mark.parametrize(("column", "low", "high", "marks"), [
    ("accuracy", 0.4, 0.6, (50.0, 40.0, 60.0)), ("unified (lexical)", -0.5, 1.0, (50.0, 0.0, 100.0)),
    ("joint_em_log", 1.2, 1.8, None), ("change", -0.2, 0.2, None)])
def test_a_bar_is_drawn_only_where_the_axis_is_known(column: str, low: float, high: float, marks: Any) -> None:
    assert Figure((low + high) / 2, low, high, 9).marks(column) == marks


def test_published_shares_have_their_unit_once_and_the_runs_rows_have_it_too(tmp_path: Path) -> None:
    summary = {"columns": ["accuracy"], "published": ["crest_3", "crest_4"],
               "cells": [cell("chain_of_thought", {"unified": 0.4}, rules="grounded", condition="provided",
                              exemplars=0)]}
    question = Question("q", "Who?", ("B",), answerable=True, tags={"language": ("en",)})
    made = page(tmp_path, summary, [record("chain_of_thought", "q", {"unified": 1.0, "correct": 1.0})], question)
    mixed, shares = made.select('[data-view^="paper:"]')
    assert [words(head) for head in mixed.select("thead th")][3:5] == ["English: unified score", "English: correct, %"]
    own, printed = mixed.select("tbody")
    assert [words(value) for value in printed.tr.select("td")[:2]] == ["0.1756", "10.84"]
    assert words(own.tr.select("td")[1].select_one(".mean")) == "100.00"
    assert "%" not in shares.tbody.text
    assert {"Columns with % are in percent.", "All figures are in percent."} <= {
        words(note) for note in made.select("#published .hint")}


def test_breakdowns_name_metrics_for_people_and_judges_in_short(tmp_path: Path) -> None:
    judge = "http://host/v1#gpt-4o"
    one = {"mean": 1.0, "low": None, "high": None, "n": 1}
    view = {"name": "gap", "title": "Gap", "header": ["hops", "cell", "n", f"unified ({judge})", "em: original", "no"],
            "rows": [["2", "a", 3, one, estimate_share(1, 3), None]], "keys": 2, "notes": []}
    made = page(tmp_path, {"columns": ["em"], "cells": [cell("a", {"em": 0.0}, judge=judge)], "views": [view]}, [])
    heads = [words(head) for head in made.select("#breakdowns thead th")]
    assert heads == ["hops", "cell", "n", "unified score (gpt-4o)", "exact match: original", "no"]
    assert [words(value) for value in made.select("#breakdowns tbody td")] == [
        "3", "1.00 no interval n 1", "0.33 [0.06, 0.79]", "none"]
