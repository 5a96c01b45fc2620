"""How far judges, repeats of one and people agree: `ragbed judge`, its figures and its sheets."""
import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Town
from patience import SECONDS
from scripted_server import ScriptedServer

from ragbed.experiments import Verdict, run
from ragbed.experiments.guests.label_correction.agreement import measure_agreement
from ragbed.experiments.guests.rescoring.rejudge import Rater

DATA = Path(__file__).parents[2] / "data"
C, P, W = "Correct", "Partially Correct", "Wrong"


def rater(name, field, labels):
    """A rater of the questions 0, 1, 2 and so on in one cell; None is unjudged."""
    return Rater(name, {("cell", str(number)): Verdict(judge=name, **({} if label is None else {field: label}))
                        for number, label in enumerate(labels)})


def compared(rubric, field, first, second, steps=None):
    raters = [rater("one", field, first), rater("other", field, second)]
    (found,) = measure_agreement(raters, rubric, {("cell", str(at)): count for at, count in enumerate(steps or [])})
    return found


def test_kappa_of_grades():
    # 7 of 10 agree; chance 0.4 x 0.4 + 0.2 x 0.2 + 0.4 x 0.4 = 0.36; (0.7 - 0.36) / 0.64
    found = compared("grades", "grade", [C, C, C, C, P, P, W, W, W, W], [C, C, C, P, P, W, W, W, W, C])
    assert (found.n, found.judgements, found.agree, found.kappa) == (10, 10, 0.7, 0.53125)
    assert found.labels == (C, P, W)
    assert found.table == ((3, 1, 0), (0, 1, 1), (1, 0, 3))
    assert found.low < 0.53125 < found.high
    assert (found.agree_low, found.agree_high) == (pytest.approx(0.396778, abs=1e-6), pytest.approx(0.892209, abs=1e-6))


def test_kappa_of_points_weighs_by_the_squared_distance():
    # mean squared distance 50/4 = 12.5; by chance twice the variance of (0, 5, 10, 10), 34.375; 1 - 12.5/34.375
    found = compared("points", "points", [0, 10, 5, 10], [0, 10, 10, 5])
    assert (found.agree, found.kappa) == (0.5, pytest.approx(7 / 11))
    assert sum(map(sum, found.table)) == 4
    assert (found.table[5][10], found.table[10][5]) == (1, 1)


def test_kappa_of_steps_is_of_each_step_held_or_not():
    # 6 steps, 5 agree; held by one 2/6, by the other 1/6: chance 2/36 + 20/36; (30 - 22) / (36 - 22)
    found = compared("steps", "steps", [(0, 1), ()], [(0,), ()], steps=[4, 2])
    assert (found.n, found.judgements, found.agree) == (2, 6, pytest.approx(5 / 6))
    assert found.kappa == pytest.approx(8 / 14)
    assert found.table == ((1, 1), (0, 4))


def test_what_one_of_the_two_did_not_judge_is_left_out_of_the_pair_and_counted():
    found = compared("grades", "grade", [C, None, W, C], [C, W, None, W])
    assert (found.n, found.agree, found.kappa) == (2, 0.5, 0.0)


@pytest.mark.parametrize(("first", "second", "expected"), [
    ([C, C, C], [C, C, C], None), ([None], [C], None), ([], [], None), ([C, C], [W, W], 0.0), ([C, W], [C, W], 1.0),
    ([C, W], [W, C], -1.0)])
def test_a_kappa_is_undefined_where_there_is_but_one_label(first, second, expected):
    found = compared("grades", "grade", first, second)
    assert found.kappa == expected
    assert None in (found.low, found.kappa) or found.low <= found.kappa <= found.high


def test_the_interval_resamples_questions_with_all_their_answers():
    labels = [C, C, W, W, P, C, W, P]
    other = [C, W, W, W, C, C, W, P]
    once = compared("grades", "grade", labels, other)
    four = [Rater(one.name, {(f"cell {copy}", item[1]): verdict for item, verdict in one.verdicts.items()
                             for copy in range(4)})
            for one in (rater("one", "grade", labels), rater("other", "grade", other))]
    (copied,) = measure_agreement(four, "grades", {})
    assert (copied.n, copied.kappa) == (32, once.kappa)
    assert (copied.low, copied.high) == (once.low, once.high)


def answering(body):
    number = re.findall(r"in town (\d+)", body["messages"][-1]["content"])[-1]
    return f"<Answer>{number} [1]</Answer>"


def grading(*grades):
    """A judge that gives the towns 1 to 5 these grades."""
    def say(body):
        number = re.search(r"in town (\d+)", body["messages"][0]["content"])
        return f"Grade: {grades[int(number[1]) - 1]}"
    return say


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The town's run, judged C C P W W by a model that goes on serving, and a copy of it."""
    town, judge = Town(tmp_path_factory.mktemp("town")), ScriptedServer(grading(C, C, P, W, W))
    with (closing(judge), closing(ScriptedServer(answering)) as model,
          run(str(town.config(model.url, judge=f"{judge.url}#first")))):
        yield town, shutil.copytree(town.folder, tmp_path_factory.mktemp("copy") / "town")


@pytest.fixture
def judged(made):
    town, copy = made
    shutil.rmtree(town.folder)
    shutil.copytree(copy, town.folder)
    return town


def test_another_judge_is_compared_with_the_runs_own_and_a_second_time_costs_nothing(judged, serve, ragbed):
    other = serve(grading(C, P, P, W, C))
    before = judged.hashes(), (judged.run / "summary.json").read_bytes()
    args = ("judge", judged.run, "--judge", f"{other.url}#second")
    found = ragbed.json(*args)
    assert [one["name"].partition("#")[2] for one in found["raters"]] == ["first (the run's)", "second"]
    assert (found["answers"], found["calls"], found["replayed"], found["rubric"]) == (5, 5, 0, "grades")
    (pair,) = found["pairs"]
    # 3 of 5 agree; chance (2 x 2 + 1 x 2 + 2 x 1) / 25; (15 - 8) / (25 - 8)
    assert (pair["n"], pair["agree"], pair["kappa"]) == (5, 0.6, pytest.approx(7 / 17))
    assert pair["table"] == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    status, out, err = ragbed(*args)
    assert (status, len(other.requests)) == (0, 5)
    assert " 0.41 [" in out
    assert "0 calls sent and 5 from the journal" in err
    assert (judged.hashes(), (judged.run / "summary.json").read_bytes()) == before
    assert len(judged.records()) == 6


@pytest.mark.slow
def test_an_interrupt_says_that_what_was_judged_is_kept(judged, serve, ragbed):
    other = serve(lambda _: {"text": "Grade: Correct", "delay": 0.1})
    args = ("judge", judged.run, "--judge", f"{other.url}#slow", "--repeats", "5")
    child = subprocess.Popen([sys.executable, "-m", "ragbed", *map(str, args)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
    while len(other.requests) < 9:
        assert child.poll() is None
        time.sleep(0.005)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=SECONDS)
    assert (child.returncode, "Traceback" in err) == (130, False)
    assert err.splitlines()[-1] == (
        "interrupted; verdicts so far are kept in the run's journal; rerun the command to continue")
    assert ragbed(*args)[0] == 0
    assert len(other.requests) <= 25 + 4  # all that had been answered, four being asked at once


def test_repeats_are_calls_of_their_own_and_the_first_is_the_runs(judged, ragbed):
    name = re.search(r"judge:\n.*\n  model: (\S+)", (judged.run / "config.yaml").read_text())[1]
    found = json.loads(ragbed("judge", judged.run, "--repeats", "3", "--json")[1])
    assert [one["name"] for one in found["raters"]] == [f"{name} #1", f"{name} #2", f"{name} #3"]
    assert [pair["kappa"] for pair in found["pairs"]] == [1.0, 1.0, 1.0]
    assert (found["calls"], found["replayed"], found["temperature"]) == (10, 5, 0.0)
    assert "Repeats were judged at the run's temperature, 0" in ragbed("judge", judged.run, "--repeats", "2")[1]


def test_the_lexical_judge_has_no_repeats_and_is_shown_as_weak(judged, ragbed):
    status, out, _ = ragbed("judge", judged.run, "--judge", "lexical", "--repeats", "2")
    assert status == 0
    assert "lexical #" not in out
    assert "The lexical judge graded the answers. It compares words" in out


def test_a_judge_that_fails_leaves_pairs_without_a_kappa_and_says_so(judged, serve, ragbed):
    broken = serve(lambda _: "Wunderbar!")
    status, out, _ = ragbed("judge", judged.run, "--judge", f"{broken.url}#broken")
    assert status == 0
    assert f"{broken.url}#broken: 5 of 5 answers are unjudged: unreadable twice (5)." in out
    assert "undefined" in out


def sheet_of(judged, ragbed, *grades):
    """A sheet as people give it back."""
    path = judged.folder / "sheet.csv"
    status, out, err = ragbed("judge", judged.run, "--sheet", path)
    assert (status, out) == (0, "")
    assert "5 answers to grade" in err
    with path.open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    rows.sort(key=lambda row: row[2])  # they are in random order
    assert head == ["cell", "question", "text", "gold", "answer", "grade"]
    assert rows[0][2:] == ["How many people live in town 1?", "111 people", "1", ""]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows([head, *([*row[:-1], grade] for row, grade in
                                                          zip(rows, grades, strict=True)), [""] * 6])
    return path


def test_a_sheet_that_people_filled_in_is_compared(judged, ragbed):
    path = sheet_of(judged, ragbed, "correct", "Partially correct.", "", "wrong", "Wrong")
    found = json.loads(ragbed("judge", judged.run, "--labels", path, "--json")[1])
    assert found["raters"][1] == {"name": "sheet.csv", "answers": 4, "unjudged": 0, "why": ""}
    # 3 of 4 agree; chance (2 x 1 + 0 x 1 + 2 x 2) / 16; (12 - 6) / (16 - 6)
    assert (found["pairs"][0]["n"], found["pairs"][0]["kappa"]) == (4, 0.6)
    assert found["calls"] == 0


def test_labels_that_do_not_fit_are_refused_with_file_and_line(judged, ragbed):
    path = sheet_of(judged, ragbed, C, "Correct!", W, W, W)
    wrong = path.read_text()
    text = wrong.replace("Correct!", "Correct")
    for content, *says in (
            (wrong, "sheet.csv, line 3, field grade", "Correct, Partially Correct or Wrong", "Correct!"),
            (re.sub(r"(?<=;)([^;]*3)(?=;How)", "who", text), "sheet.csv, line 4, field question", "'who in cell "),
            (text + text.splitlines()[1] + "\n", "line 8, field question", "(line 2 has it too)"),
            ("id,grade\n1,Correct\n", "line 1", "no cell nor question"),
            (text.replace("Correct", "").replace("Wrong", ""), "contains no label")):
        path.write_text(content)
        ragbed.refuses("judge", judged.run, "--labels", path, says=says)
    ragbed.refuses("judge", judged.run, "--labels", judged.folder / "none.csv",
                   says=["none.csv: cannot be read: No such file"])


def test_json_lines_are_labels_too(judged, ragbed):
    (cell,) = {record["result"]["cell"] for record in judged.records()}
    path = judged.folder / "people.jsonl"
    path.write_text("".join(json.dumps({"cell": cell, "question": f"non_refusal-{number}", "grade": grade}) + "\n"
                            for number, grade in ((1, C), (2, C), (4, W))))
    found = json.loads(ragbed("judge", judged.run, "--labels", path, "--json")[1])
    assert (found["pairs"][0]["n"], found["pairs"][0]["kappa"]) == (3, 1.0)
    path.write_text(json.dumps({"cell": cell, "question": "refusal-0", "grade": C}) + "\n")
    ragbed.refuses("judge", judged.run, "--labels", path, says=["people.jsonl, line 1, field question"])


def test_what_cannot_be_compared_is_refused_in_one_line(judged, serve, ragbed, tmp_path):
    ragbed.refuses("judge", tmp_path / "none", says=["holds no run"])
    one, same = serve(grading(C)), serve(grading(C))
    ragbed.refuses("judge", judged.run, "--judge", f"{one.url}#j", "--judge", f"{same.url}#j",
                   says=["are the same judge"])
    ragbed.refuses("judge", judged.run, "--judge", "gpt", says=["unknown model 'gpt'"])
    status, out, _ = ragbed("judge", judged.run)
    assert status == 0
    assert "is the only rater; give --judge, --repeats or --labels" in out


@pytest.mark.parametrize(("kind", "path", "condition", "reply", "shows"), [
    ("mdbench", "mdbench/mdbench_dataset.json", "provided", "Grade: 9", "kappa, quadratic weights"),
    ("detectiveqa", "detectiveqa", "gold", "Held: [0]", " steps ")])
def test_points_and_steps_are_compared_over_a_run(serve, town, ragbed, kind, path, condition, reply, shows):
    model, judge = serve(lambda _: "<Thinking>Oil.</Thinking><Answer>B</Answer>"), serve(lambda _: reply)
    config = town.config(model.url, benchmark={"kind": kind, "path": str(DATA / path)}, conditions=condition,
                         reasoning="direct")
    assert ragbed("run", config)[0] == 0
    args = ("judge", town.run, "--judge", f"{judge.url}#j", "--repeats", "2")
    assert shows in ragbed(*args)[1]
    found = json.loads(ragbed(*args, "--json")[1])
    lexical, first, second = (one["name"] for one in found["raters"])
    assert (lexical, first) == ("lexical (the run's)", f"{judge.url}#j #1")
    pair = found["pairs"][-1]
    assert (pair["first"], pair["second"], pair["n"], pair["agree"]) == (first, second, found["answers"], 1.0)
    assert pair["kappa"] == (None if kind == "mdbench" else 1.0)
    sheet = town.folder / "sheet.csv"
    told = json.loads(ragbed("judge", town.run, "--sheet", sheet, "--json")[1])
    assert told == {"run": str(town.run), "sheet": str(sheet), "answers": found["answers"]}


def test_a_benchmark_whose_scores_rest_on_no_judge_has_nothing_to_judge_again(serve, town, ragbed):
    config = town.config(serve(lambda _: "<Answer>B</Answer>").url, conditions="provided", rules="choice",
                         benchmark={"kind": "mrceval", "path": str(DATA / "mrceval"), "limit": 1})
    assert ragbed("run", config)[0] == 0
    ragbed.refuses("judge", town.run, says=["the scores of mrceval need no judge"])
