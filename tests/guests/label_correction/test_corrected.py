"""Scores that people correct: `ragbed judge --labels` and `ragbed report --labels`, and the figures behind them."""
import csv
import json
import math
import os
import re
import subprocess

import numpy as np
import pytest
from patience import SECONDS

from ragbed.experiments.guests.label_correction.inference import correct_mean
from ragbed.experiments.metrics.intervals import Z

RIGHT = np.array([1, 1, 1, 0] * 10 + [np.nan] * 60)
PASSED = np.array([1, 1, 0, 0, 1, 1, 1, 1] * 5 + [1, 1, 0] * 20, dtype=float)


def of(judged, people, tuning=None, clusters=None, due=None, split=None, weights=None):
    n = len(judged)
    return correct_mean(judged, people, np.ones(n, bool) if due is None else due,
                     np.full(n, 1 / n) if weights is None else weights, np.zeros(n, int) if split is None else split,
                     np.arange(n) if clusters is None else clusters, tuning)


# What ppi-python 0.2.3 says of these grades: the mean, and how far its 95 % interval reaches, by its `lam`.
LIBRARY = {None: (0.7352678571428573, 0.12996935596364667), 0.5: (0.7083333333333333, 0.1416445363776082),
           1.0: (0.6666666666666666, 0.19554217675777363), 0.0: (0.75, 0.13418956077878674)}


@pytest.mark.parametrize("tuning", LIBRARY)
def test_mean_tuning_and_spread_are_the_librarys(tuning):
    found = of(PASSED, RIGHT, tuning)
    assert (found.mean, Z * math.sqrt((found.influence**2).sum())) == pytest.approx(LIBRARY[tuning], abs=1e-9)


@pytest.mark.slow
@pytest.mark.skipif("RAGBED_PPI" not in os.environ, reason=(
    "no ppi-python: install it in an environment of its own, and name its Python in RAGBED_PPI"))
def test_the_library_says_so():
    script = """
import json, sys
import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
y, f, u, lams = map(np.array, json.load(sys.stdin))
ends = [[float(end[0]) for end in ppi_mean_ci(y, f, u, alpha=0.05, lam=lam)] for lam in lams]
print(json.dumps([[(low + high) / 2, (high - low) / 2] for low, high in ends]))"""
    sent = json.dumps([RIGHT[:40].tolist(), PASSED[:40].tolist(), PASSED[40:].tolist(), list(LIBRARY)])
    done = subprocess.run([os.environ["RAGBED_PPI"], "-c", script], input=sent, capture_output=True, text=True,
                          timeout=SECONDS, check=True)
    assert json.loads(done.stdout) == [pytest.approx(one, abs=1e-9) for one in LIBRARY.values()]


def test_few_grades_without_an_error_do_not_make_a_judge_perfect():
    right = np.array([1.0] * 15 + [0.0] * 5 + [np.nan] * 980)
    judged = np.where(np.isnan(right), np.arange(1000) % 4 > 0, right).astype(float)
    low, high = of(judged, right).interval
    assert 0.1 < high - low < 0.5  # of a judge who errs in 5 % of all, 20 answers show no error every third time
    assert of(judged, np.where(np.arange(1000) > 18, np.nan, right)) is None  # 19 grades are too few


def test_answers_about_one_document_count_as_the_documents_do():
    people, four = np.repeat(RIGHT, 4), np.repeat(np.arange(100), 4)
    once, alike = of(PASSED, RIGHT, 0.5), of(np.repeat(PASSED, 4), people, 0.5, clusters=four)
    assert (alike.mean, *alike.interval) == pytest.approx((once.mean, *once.interval))
    assert of(np.repeat(PASSED, 4), people, 0.5).interval.high < once.interval.high
    assert of(np.repeat(PASSED, 4), people, clusters=np.arange(400) // 40) is None  # 4 documents of 40 answers


def test_what_no_judge_graded_keeps_its_score_and_each_split_its_weight():
    # 40 graded answers, three of four right, and 10 refusals that are right: halves of 0.75 and 1
    judged, people = np.append(PASSED[:40], np.ones(10)), np.append(RIGHT[:40], np.full(10, np.nan))
    split = np.repeat([0, 1], [40, 10])
    found = of(judged, people, due=split == 0, split=split, weights=np.repeat([0.5 / 40, 0.5 / 10], [40, 10]))
    assert found.mean == pytest.approx(0.875)
    # 50 answers, of which 10 are failures and count 0
    assert of(judged - split, people, due=split == 0).mean == pytest.approx(30 / 50)


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say_and_are_no_wider_than_peoples():
    from corrected import SCENARIOS, simulate

    for one in SCENARIOS:
        found = simulate(one, 500)
        for name in ("corrected", "difference, corrected"):
            held, width = found[name]
            assert held > 0.92, (one, name, held)  # 95 %, less three standard errors of 500 runs
            assert width < found[name.replace("corrected", "people alone")][1] * 1.001, (one, name, width)


@pytest.fixture
def graded(serve, town, ragbed):
    """Two ways of answering 40 questions. The lexical judge passes the first 20 and the first 30 answers; a person, 28
    and 30 of them. Returns the path of the sheet after so many rows were filled in."""
    def reply(body):
        number = int(re.findall(r"Town (\d+)", body["messages"][-1]["content"])[-1])
        ways = 30 if "step by step" in str(body["messages"]) else 20
        return f"<Thinking>So.</Thinking><Answer>{'Ada' if number < ways else 'Ida'}</Answer>"

    questions = [{"id": f"q{number}", "question": f"Who is the mayor of Town {number}?", "answers": ["Ada"]}
                 for number in range(40)]
    config = town.config(serve(reply).url, benchmark=town.own(*questions), conditions="closed-book",
                         reasoning=["direct", "chain_of_thought"])
    assert ragbed("run", config)[0] == 0
    path = town.folder / "sheet.csv"
    assert ragbed("judge", town.run, "--sheet", path)[0] == 0
    with path.open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    first = rows[0][0]
    way = {record["result"]["cell"]: record["result"]["scores"]["correct"] for record in town.records()
           if record["result"]["question"] == "q25"}

    def filled(count):
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([head, *([*row[:-1], grade(row) if place < count else ""]
                                                for place, row in enumerate(rows))])
        return path

    def grade(row):
        return "Correct" if int(row[1][1:]) < (30 if way[row[0]] else 28) else "Wrong"

    assert first in way
    return filled


def test_a_runs_scores_are_shown_corrected_by_the_first_of_a_sheet_too_and_in_the_report(town, ragbed, graded):
    found = json.loads(ragbed("judge", town.run, "--labels", graded(80), "--json")[1])
    views = {view["name"]: view for view in found["views"]}
    shown = {(row[0], row[1], row[3]): row[4:] for row in views["corrected"]["rows"]}
    judged, alone, made = shown["right", "direct", 40]
    assert (judged["mean"], alone["mean"], made["mean"]) == (0.5, 0.7, 0.7)  # all graded: what people say counts
    assert 0 < made["low"] < 0.7 < made["high"] < 1
    assert shown["correct", "chain_of_thought", 40][2]["mean"] == 0.75
    (row,) = views["corrected:differences"]["rows"]
    assert row[0]["text"] == "direct → chain_of_thought"
    assert (row[1]["mean"], row[2]["mean"]) == (0.25, pytest.approx(0.05))
    assert row[2]["low"] < 0 < row[2]["high"]
    path = graded(50)
    assert "Scores corrected by people" in ragbed("judge", town.run, "--labels", path)[1]
    found = json.loads(ragbed("judge", town.run, "--labels", path, "--json")[1])["views"][1]["rows"]
    assert {row[3] for row in found} == {25}
    assert all(row[6] is not None for row in found)
    assert ragbed("report", town.run, "--labels", path)[0] == 0
    assert "Scores corrected by people" in (town.run / "report.html").read_text()
    few = json.loads(ragbed("judge", town.run, "--labels", graded(30), "--json")[1])["views"][1]
    assert {row[6] for row in few["rows"]} == {None}
    assert "at least 20 answers" in few["notes"][1]


def test_where_no_metric_of_the_table_is_a_judges_nothing_is_corrected(ragbed, tmp_path):
    answers, labels = tmp_path / "answers.jsonl", tmp_path / "labels.jsonl"
    answers.write_text('{"id": "0a01", "answer": "Paris"}\n')
    (cell,) = ragbed.json("import", "jsonl", answers, "--benchmark", "two_wiki", "tests/data/two_wiki",
                          "--out", tmp_path, "--name", "one")["cells"]
    labels.write_text(json.dumps({"cell": cell["id"], "question": "0a01", "grade": "Wrong"}) + "\n")
    status, out, _ = ragbed("judge", tmp_path / "one", "--labels", labels)
    assert status == 0
    assert "Agreement on 1 answers" in out
    assert "corrected" not in out
