"""Judges of your own: a rubric for a model and a Python function, in a run and by themselves."""
import json
import re
from contextlib import closing

import pytest
from each_case import each
from judged import play
from pydantic import ValidationError

from ragbed.documents import SettingsError
from ragbed.experiments import RunFolder
from ragbed.experiments.guests.own_judges.judge_replies import read_reply
from ragbed.experiments.guests.own_judges.judges import PythonJudge, RubricJudge
from ragbed.experiments.judges import GradingInput
from ragbed.strategies import Failure, Reply

GRADES, NUMBERS = ("Correct", "Partially Correct", "Wrong"), tuple("12345")
GRADED = GradingInput("grades", "How long?", ("24 months",), "Two years [1].", passages=((1, "It lasts 24 months."),))
RUBRIC = "Question: {question}\nRight: {gold}\nAnswer: {answer}\n{passages}\nAs JSON: {\"grade\": \"Good\"}"


@each(("reply", "grades", "expected"), [
    ("Reason: It is right.\nGrade: Correct", GRADES, ("Correct", "It is right")),
    ("Grade: Wrong, MissingDetail", GRADES, ("Wrong", "")),
    ("**Grade:** Partially Correct\n**Explanation:** No year.", GRADES, ("Partially Correct", "No year")),
    ("Grade = Correct; Reason: all there", GRADES, ("Correct", "all there")),
    ("The answer is right.\n\nCorrect", GRADES, ("Correct", "The answer is right")),
    ('```json\n{"Score": 3.0, "explanation": "so so"}\n```', NUMBERS, ("3", "so so")),
    ("<think>Grade: Wrong</think>Grade: Correct", GRADES, ("Correct", "")),
    ("Grade:\n4/5", NUMBERS, ("4", "")), ("4 out of 5", NUMBERS, ("4", "")), ("My rating: 3", NUMBERS, ("3", "")),
    ("Reason: Wrong year.\nGrade: Partially", ("Correct", "Partially", "Wrong"), ("Partially", "Wrong year")),
    ("Grade: Yes, all of it", ("Yes", "No"), ("Yes", "")), ("Grade: 0.5", ("0", "0.5", "1"), ("0.5", "")),
    ('Reason: "50" is not right. The right one is "34". Grade: Wrong.', GRADES, (
        "Wrong", '"50" is not right. The right one is "34"')),
    # unreadable
    ("If it were complete, Grade: Correct", GRADES, None), ("Grade: Correct. Grade: Wrong", GRADES, None),
    ("Grade: Correct, Partially Correct or Wrong", GRADES, None), ("Correct, Partially Correct or Wrong", GRADES, None),
    ("Grade: not Correct", GRADES, None), ("Grade: Incorrect", GRADES, None), ("Grade: Correct?", GRADES, None),
    ("Grade: Correct\nGrade: Wrong", GRADES, None), ('Grade: Wrong\n{"grade": "Correct"}', GRADES, None),
    ("Grade: 4.5", NUMBERS, None), ("Grade: 1-5", NUMBERS, None), ("Grade: 2 or 3", NUMBERS, None), ("", GRADES, None),
    ("It may be Correct.", GRADES, None), ("Grade: Excellent", GRADES, None)])
def test_exactly_one_grade_is_read_with_its_reason(reply, grades, expected):
    assert read_reply(reply, grades) == expected


def test_a_rubric_is_filled_and_its_grade_has_a_value_and_a_reason():
    judge = RubricJudge(model="m", prompt=RUBRIC, name="quality", max_tokens=99,
                        grades={"Good": 1, "Fair": 0.5, "Bad": 0})
    asked, verdict = play(judge.judge(GRADED), Reply("Grade: Fair\nReason: No unit."))
    assert asked[0].messages[0].content == (
        "Question: How long?\nRight: 24 months\nAnswer: Two years.\n[1]\nIt lasts 24 months.\n"
        'As JSON: {"grade": "Good"}\n\nReply with exactly two lines and nothing else. The first line is "Reason: " and '
        'one sentence. The second line is "Grade: " and one of: Good, Fair, Bad.')
    assert (verdict.grade, verdict.label, verdict.value, verdict.reason) == (
        "Partially Correct", "Fair", 0.5, "No unit")
    assert asked[0].max_tokens == 99
    asked, verdict = play(judge.judge(GRADED), Reply("Hm."), Reply("Good or Bad"))
    assert asked[1].messages[-1].content.endswith('"Grade: " and one of: Good, Fair, Bad.')
    assert (verdict.unjudged, verdict.note) == (True, "unreadable twice")
    assert play(judge.judge(GRADED), Failure("timeout", ""))[1].note == "call failed: timeout"


def test_numbers_are_grades_and_points_follow_from_them():
    judge = RubricJudge(model="m", prompt="{answer}", grades="1-5", name="tone")
    assert (judge.scale, judge.needs_gold) == ((1, 5), False)
    points = GradingInput("points", "How long?", ("24 months",), "Two years.")
    verdict = play(judge.judge(points), Reply("Grade: 4"))[1]
    assert (verdict.points, verdict.value) == (8, 4)
    assert [play(judge.judge(GRADED), Reply(f"Grade: {one}"))[1].grade for one in (1, 3, 5)] == [
        "Wrong", "Partially Correct", "Correct"]


@pytest.mark.parametrize(("prompt", "says"), [
    ("{answer} {truth}", "unknown field {truth}; choose from: {question}, {gold}, {answer}, {passages}"),
    ("{question}", "the field {answer} is missing"), ("missing.md", "judge.prompt: missing.md: cannot be read")])
def test_a_rubric_that_cannot_be_filled_is_refused(prompt, says):
    with pytest.raises(SettingsError) as refused:
        RubricJudge(model="m", prompt=prompt, grades="0-1").sources()
    assert says in str(refused.value)


@pytest.mark.parametrize("settings", [{"grades": {"Good": 1}}, {"grades": {"A": 1, "B": 1}}, {"grades": "1-1"},
                                      {"grades": "many"}, {"grades": "0-1", "name": "Not a name"}])
def test_grades_that_tell_nothing_apart_are_refused(settings):
    with pytest.raises(ValidationError):
        RubricJudge(model="m", prompt="{answer}", **settings)


@pytest.fixture
def function(tmp_path):
    def write(body, name="mine.py", **settings):
        path = tmp_path / name
        path.write_text(body)
        return PythonJudge(factory=f"{path}:grade", **settings)
    return write


@pytest.mark.parametrize(("returned", "settings", "expected"), [
    ("0.25", {}, (0.25, "", "")), ("'good'", {"grades": {"Good": 1, "Bad": 0}}, (1, "Good", "")),
    ("{'grade': 1, 'reason': 'short'}", {}, (1, "", "short")), ("True", {}, (1, "", "")),
    ("3", {"low": 1, "high": 5}, (3, "", "")), ("3", {"grades": "1-5"}, (3, "3", ""))])
def test_a_function_grades_with_a_number_a_name_or_a_reason(function, returned, settings, expected):
    verdict = play(function(f"def grade(answer):\n    return {returned}\n", **settings).judge(GRADED))[1]
    assert (verdict.value, verdict.label, verdict.reason) == expected


@pytest.mark.parametrize(("body", "says"), [
    ("return 7", "returned 7.0 instead of a number from 0 to 1"), ("return None", "returned 'None' instead"),
    ("return float('nan')", "returned nan instead"), ("return 1 / 0", "mine.py:2: ZeroDivisionError: division by zero"),
    ("raise SystemExit", "mine.py:2: SystemExit")])
def test_an_error_of_a_function_is_a_note_and_no_grade(function, body, says):
    verdict = play(function(f"def grade(answer, gold):\n    {body}\n").judge(GRADED))[1]
    assert verdict.unjudged
    assert says in verdict.note


def test_a_function_with_another_parameter_is_refused(function):
    with pytest.raises(SettingsError, match="unknown parameter record; choose from: question, gold, answer, passages"):
        function("def grade(answer, record):\n    return 1\n").sources()


def test_judges_side_by_side_have_columns_bounds_and_an_agreement(serve, town, ragbed, tmp_path):
    def reply(body):
        text = body["messages"][0]["content"]
        if not text.startswith("How polite"):
            return town.reply(body)
        return "Grade: 1 to 5" if "444" in text else "Reason: It is short.\nGrade: 3"

    code = "def grade(answer, passages):\n    assert passages\n    return len(answer) < 20\n"
    (tmp_path / "brief.py").write_text(code)
    server = serve(reply)
    tone = {"kind": "model", "model": f"{server.url}#m", "prompt": "How polite is it?\n{answer}", "grades": "1-5",
            "name": "tone"}
    path = town.config(server.url, judge=["lexical", tone, {"kind": "python", "factory": f"{tmp_path}/brief.py:grade"}],
                       headline="tone")
    made = ragbed.json("run", path)
    cell = made["cells"][0]["metrics"]
    assert made["columns"][0] == "tone"
    assert (cell["tone"]["mean"], cell["tone"]["n"], cell["tone"]["bounds"]) == (2.5, 4, [2.2, 3.0])
    assert (cell["brief"]["mean"], cell["tone_unjudged"]["mean"]) == (0.8, 0.2)
    assert "tone: 1 of 5 answers are unjudged: unreadable twice (1)." in made["notes"]
    assert "bounds" not in cell["brief"]  # its judge graded all answers
    _, out, _ = ragbed("run", path)
    assert "tone: 1 of 5 answers are unjudged: unreadable twice (1)." in out  # also without --full
    assert re.search(r"^cell .* brief ", out, re.MULTILINE)
    view, = (one for one in made["views"] if one["name"] == "judges")
    assert [row[:3] for row in view["rows"]] == [["lexical", "tone", 2], ["lexical", "brief", 3], ["tone", "brief", 3]]
    shown = ragbed("show", town.run, "#2")[1]
    assert " 3: It is short" in shown
    with closing(RunFolder.existing(town.run)) as folder:
        kept = {one.judge: one for one in next(iter(folder.results())).judgements}
    assert set(kept) <= {"tone", "brief"}
    assert ragbed("verify", town.run)[0] == 0
    assert ragbed("report", town.run)[0] == 0
    sent = len(server.requests)
    assert ragbed.json("run", path)["results"] == made["results"]
    assert len(server.requests) == sent


def test_a_rubric_as_the_only_judge_decides_what_is_right(serve, town, ragbed):
    grade = json.dumps({"grade": "Good", "reason": "x"})
    server = serve(lambda body: grade if body["messages"][0]["content"].startswith("Grade") else town.reply(body))
    judge = {"kind": "model", "model": f"{server.url}#m", "prompt": "Grade: {answer} by {gold}",
             "grades": {"Good": 1, "Bad": 0}, "name": "fit"}
    made = ragbed.json("run", town.config(server.url, judge=judge))
    metrics = made["cells"][0]["metrics"]
    assert (metrics["correct"]["mean"], metrics["fit"]["mean"]) == (0.6, 0.6)
    for wrong, says in (({**judge, "name": "right"}, "right is the name of another column"),
                        ([judge, judge], "fit is the name of another column"), ([], "judge: name at least one")):
        ragbed.refuses("run", town.config(server.url, "other", judge=wrong, name="other"), says=[says])
    ragbed.refuses("run", town.config(server.url, "other", judge=judge, name="other", scoring="as-published"),
                   says=["in corrected scoring"])
