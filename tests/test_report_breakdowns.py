"""The page's breakdowns, published tables and question browser for benchmarks of every kind."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from experiments.metrics.aggregate import share_of
from experiments.question import Question, Step
from experiments.record import Record, Result, StoredSub, Timing, Verdict
from experiments.report import ReportInput, write_report
from experiments.report.cells import Figure, table
from strategies.types import Usage

HOSTILE = '<img src=x onerror="alert(1)">\u202e'


def cell(name: str, metrics: dict[str, float], **fields: Any) -> dict[str, Any]:
    return {"id": name, "model": "m", "retrieval": None, "retriever": None, "reasoning": name, "rules": "choice",
            "condition": "full", "perturbation": None, "show": "question", "format": None, "benchmark": "b",
            "repeat": 0, "judge": "lexical", "scoring": "corrected", "layout": "as_published", "n": 4,
            "outcomes": {"answered": 4},
            "metrics": {metric: {"mean": mean, "low": mean - 0.1, "high": mean + 0.1, "n": 4}
                        for metric, mean in metrics.items()},
            "usage": {"prompt_tokens": 400, "completion_tokens": 40, "calls": 4, "price": 0}, **fields}


def record(cell: str, question: str, scores: dict[str, float | None], **fields: Any) -> Record:
    result = Result(**{
        "cell": cell, "question": question, "answerable": True, "outcome": "answered", "text": "B", "refused": False,
        "refused_as_published": False, "cited": (), "invalid_citations": (), "tagged": True, "notes": (),
        "evidence": (), "gold_total": 0, "gold_in_view": None, "verdict": None, "scores": scores, "usage": Usage(),
        "trace": (), **fields})
    return Record(result=result, timing=Timing(seconds=1, attempts=1, replayed=0, paid=None, finished=""))


def page(folder: Path, summary: dict[str, Any], records: list[Record], *questions: Question) -> BeautifulSoup:
    path = folder / "report.html"
    write_report(ReportInput("r", summary, {one.id: one for one in questions}, records, {}.__getitem__), path)
    return BeautifulSoup(path.read_bytes(), "html.parser")


def words(tag: Any) -> str:
    return " ".join(tag.text.split())


def spoken(tag: Any) -> str:
    """The text with a space between its elements."""
    return " ".join(tag.get_text(" ").split())


@pytest.fixture
def detective(tmp_path: Path) -> BeautifulSoup:
    view = {"name": "depth", "title": "Heat " + HOSTILE, "header": ["context", "cell", "n", "0-10%", "10-20%"],
            "rows": [["short", "a", 9, share_of(3, 4), None], ["short", "b", 9, share_of(0, 9), share_of(9, 9)]],
            "keys": 2, "notes": ["n counts steps."], "shaded": True}
    summary = {"columns": ["accuracy", "reasoning_score"], "views": [view], "published": ["detectiveqa_6"],
               "cells": [cell("a", {"well_formed": 0.5, "accuracy": 0.4, "reasoning_score": 0.3}),
                         cell("b", {"well_formed": 0.5, "accuracy": 0.6, "reasoning_score": 0.3})]}
    question = Question("q", "Who?", ("B",), answerable=True, options=(("A", "maid"), ("B", "butler")),
                        steps=(Step("The door was locked " + HOSTILE, 0.25), Step("So it was the butler")))
    verdict = Verdict(judge="lexical", steps=(1,))
    scores = {"accuracy": 1.0, "reasoning_score": 0.5}
    return page(tmp_path, summary, [record("a", "q", scores, verdict=verdict), record("b", "q", scores)], question)


def test_the_schemes_columns_come_first_and_the_rest_stands_apart(detective: BeautifulSoup) -> None:
    heads = [words(head) for head in detective.select("table.cells thead th")]
    assert heads == ["Cell", "accuracy", "reasoning_score (lexical)", "outcomes", "tokens", "calls", "price"]
    assert [words(head) for head in detective.select(".more thead th")] == ["Cell", "well_formed"]


def test_the_first_column_is_what_the_sentences_and_the_plot_are_about(detective: BeautifulSoup) -> None:
    assert words(detective.select_one(".verdicts li")).startswith("Highest mean accuracy: b, 0.60")
    assert "Mean accuracy with its interval" in detective.select_one("#chart")["aria-label"]
    assert '"mean accuracy"' in detective.select_one("#figure").string


def test_columns_that_share_a_place_each_have_their_own() -> None:
    made = table([cell("a", {"wrong": 0.2, "correct": 0.5, "em": 0.1})], ["correct / partial / wrong"])
    assert made.columns == ("correct (lexical)", "wrong (lexical)")
    assert (made.more, made.quality) == (("em",), "correct")


@pytest.mark.parametrize(("column", "low", "high", "marks"), [
    ("accuracy", 0.4, 0.6, (50.0, 40.0, 60.0)), ("unified (lexical)", -0.5, 1.0, (50.0, 0.0, 100.0)),
    ("joint_em_log", 1.2, 1.8, None), ("change", -0.2, 0.2, None)])
def test_a_bar_is_drawn_only_where_the_axis_is_known(column: str, low: float, high: float, marks: Any) -> None:
    assert Figure((low + high) / 2, low, high, 9).marks(column) == marks


def test_a_heat_map_is_a_table_with_shaded_cells(detective: BeautifulSoup) -> None:
    heat = detective.select_one("table.heat")
    assert [words(head) for head in heat.select("thead th")] == ["context", "cell", "n", "0-10%", "10-20%"]
    assert heat.select_one('th[scope="rowgroup"]')["rowspan"] == "2"
    first, second = heat.select("tbody tr")
    assert [(words(entry), entry.get("class")) for entry in first.select("td")] == [
        ("9", None), ("0.75 [0.30, 0.95] n 4", ["shade-8"]), ("none", None)]
    assert [entry.get("class") for entry in second.select("td")] == [None, ["shade-0"], ["shade-10"]]
    assert ".shade-10" in detective.style.string
    assert "⟨U+202E⟩" in detective.select_one("#view-1 h3").text
    assert not detective.find_all("img")


def test_published_rows_are_marked_and_say_how_they_were_measured(detective: BeautifulSoup) -> None:
    paper = detective.select_one("#paper-detectiveqa_6")
    rows = paper.select("tr.published")
    assert len(rows) == 10
    assert words(rows[0].th) == "published GPT-4-1106-preview-128k"
    assert words(rows[0].select_one(".measured")) == (
        "Table 6; n: not stated; the benchmark has 1,200 questions; prompt: not stated; judge: GPT-4")
    assert [words(value) for value in rows[0].select("td")[1:4]] == ["73.99", "27.43", "45.05"]


def test_the_runs_rows_stand_beside_them_in_the_papers_unit(detective: BeautifulSoup) -> None:
    own = detective.select_one("#paper-detectiveqa_6").select("tr.own")
    assert [words(row.th) for row in own] == ["1 a", "2 b"]
    assert words(own[0].select_one(".measured")) == (
        "this run, corrected scoring; n: 4; prompt: as published; judge: lexical")
    assert [words(value) for value in own[0].select("td")[1:5]] == ["100.0 n 1", "50.0 n 1", "70.7 n 1", ""]


def test_a_question_shows_its_steps_and_which_of_them_each_answer_holds(detective: BeautifulSoup) -> None:
    gold = spoken(detective.select_one("#q1 .gold"))
    assert "A. maid B. butler" in gold
    assert "25 % in" in gold
    card = detective.select_one("#q1-c1 .found")
    assert words(card.summary) == "Reference steps, 1 of 2 found"
    assert [spoken(item).split(" The ")[0] for item in card.select("li")] == ["not found", "found So it was the butler"]
    assert detective.select_one("#q1-c2 .found") is None
    assert detective.select_one("#q1-c1")["data-grade"] == "1 of 2 steps"


def test_a_question_shows_its_sub_questions_and_what_was_answered(tmp_path: Path) -> None:
    question = Question("q", "When?", ("1970",), answerable=True, sub_questions=("Who?", "When was #1 born?"),
                        sub_answers=("Ada", "1970"))
    subs = (StoredSub(question="Who?", outcome="answered", text="Ada [1]"),
            StoredSub(question="When was Ada born?", outcome="refused"))
    scores = {"em": 0.0, "sub_em@1": 1.0, "sub_em@2": 0.0}
    made = page(tmp_path, {"columns": ["em"], "cells": [cell("a", {"em": 0.0})]},
                [record("a", "q", scores, subs=subs)], question)
    assert "1970" in words(made.select_one("#q1 .gold ol"))
    asked = made.select_one("#q1-c1 .asked")
    assert words(asked.summary) == "Sub-questions, 2 asked"
    assert [spoken(item) for item in asked.select("li")] == [
        "Who? Ada [1] right", "When was Ada born? refused wrong"]


@pytest.mark.parametrize(("verdict", "shown"), [
    (Verdict(judge="m", points=7), "7 of 10"), (Verdict(judge="m", grade="Wrong"), "Wrong"),
    (Verdict(judge="m", note="prose"), "unjudged"), (Verdict(judge="m", steps=()), "0 of 0 steps")])
def test_a_verdict_is_shown_by_its_rubric(tmp_path: Path, verdict: Verdict, shown: str) -> None:
    question = Question("q", "When?", ("1970",), answerable=True)
    made = page(tmp_path, {"columns": ["em"], "cells": [cell("a", {"em": 0.0})]},
                [record("a", "q", {}, verdict=verdict)], question)
    assert made.select_one("#q1-c1")["data-grade"] == shown


def test_a_run_without_views_or_published_tables_has_no_such_sections(tmp_path: Path) -> None:
    made = page(tmp_path, {"cells": [cell("a", {"em": 0.0})]}, [])
    assert made.select("#papers, #breakdowns") == []
