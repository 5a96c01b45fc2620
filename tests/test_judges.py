"""Asking and reading a judge model, by rubric, and the lexical judge's rules of words, numbers and dates."""
from dataclasses import replace

import pytest
from each_case import each
from hypothesis import given
from hypothesis import strategies as st
from judged import STORY, SUM, graded, play

from ragbed.experiments import Verdict
from ragbed.experiments.guests.answer_grading.held_steps import find_held_steps
from ragbed.experiments.guests.answer_grading.lexical import grade
from ragbed.experiments.judges import Lexical, ModelJudge
from ragbed.experiments.judges.model_judge import read_grade, read_points, read_steps
from ragbed.strategies import Failure, Generate, Reply

MATERIAL = {"grades": graded("q", ("a",), "b"), "points": SUM, "steps": STORY}


def said(rubric, *replies):
    """The verdict of a judge that says this, and the last of it again."""
    return play(ModelJudge(model="m").judge(MATERIAL[rubric]), *map(Reply, replies), Reply(replies[-1]))[1]


@each(("reply", "expected"), [
    ("Grade: Correct\nError type: None", ("Correct", None)),
    ("**Grade:** Partially Correct\n**Error type:** MissingDetail", ("Partially Correct", "MissingDetail")),
    ("They differ.\n\ngrade: wrong.\nerror type: NumericMistakes", ("Wrong", "NumericMistakes")),
    ("Grade: Wrong", ("Wrong", None)),
    ("Grade: Correct\nError type: Others", ("Correct", None)),
    ("Grade: Correct, Partially Correct or Wrong", None),
    ("Grade: Correct\nGrade: Wrong", None),
    ("The answer is Correct", None),
    ("Grade: 9", None),
    ("Grade: Correct\nGrade: Excellent", None),
    ("Grade: Correct (as far as I see)", None),
    ("등급: Correct", None),
    ("<think>Grade: Wrong?</think>Grade: Correct", ("Correct", None)),
    ("", None),
])
def test_a_grade_is_read_strictly(reply, expected):
    verdict = said("grades", reply)
    assert (verdict.grade, verdict.error_type) == (expected or (None, None))
    assert "<think>" in reply or read_grade(reply) == expected


@each(("reply", "expected"), [
    ("Grade: Correct, Error type: None", ("Correct", None)),
    ("Grade: Wrong; Error type: NumericMistakes", ("Wrong", "NumericMistakes")),
    ("Grade: Partially Correct | Error type: MissingDetail", ("Partially Correct", "MissingDetail")),
    ("**Grade:** Wrong **Error type:** Others", ("Wrong", "Others")),
    ("Grade: Wrong (Error type: Others)", ("Wrong", "Others")),
    ("Error type: None, Grade: Correct", ("Correct", None)),
    ("Grade: Wrong, MissingDetail", ("Wrong", "MissingDetail")), ("**Grade:** Correct (None)", ("Correct", None)),
    ("Grade: Partially Correct - Missing detail.", ("Partially Correct", "MissingDetail")),
    ("Grade: Incorrect; Others\nBecause of the year.", ("Wrong", "Others")),
    ('{"grade": "Wrong", "error_type": "Others"}', ("Wrong", "Others")),
    ('```json\n{"Grade": "Correct", "Error type": "None", "reason": "Not Wrong\nat all."}\n```', ("Correct", None)),
    ('Here it is:\n{"grade": "Partially Correct", "errorType": "MissingDetail"}',
     ("Partially Correct", "MissingDetail")),
    ('"Grade": "Correct"', ("Correct", None)), ('Grade: "Wrong"\nError type: "Others"', ("Wrong", "Others")),
    ("“Grade: Correct”", ("Correct", None)), ("'Grade: Correct\nError type: None'", ("Correct", None)),
    ("1. Grade: Wrong\n2. Error type: Others", ("Wrong", "Others")), ("1) **Grade**: Correct", ("Correct", None)),
    ("- Grade: [Correct]", ("Correct", None)), ("Final grade: Wrong", ("Wrong", None)),
    ("The grade is Correct.", ("Correct", None)), ("Grade = Correct", ("Correct", None)),
    ("Correct", ("Correct", None)),
    ("**Wrong.**", ("Wrong", None)), ("Grade: Incorrect", ("Wrong", None)),
    ("Grade: partially_correct", ("Partially Correct", None)),
    ("grade: PARTIALLY CORRECT", ("Partially Correct", None)),
    # ambiguous
    ("Grade: Correct or Wrong", None), ('{"grade": "Correct"}\n{"grade": "Wrong"}', None),
    ('{"grade": "Correct", "grade": "Wrong"}', None), ('Grade: Wrong\n{"grade": "Correct"}', None),
    ('{"grade": ["Correct", "Wrong"]}', None), ('{"grade": null}', None),
    ('{"grade": "Correct", "verdict": "Wrong"}', None),
    ("Grade: Wrong, Correct", None), ("Grade: Wrong, Others or None", None),
    ("Grade: Not Correct", None), ("Correct or Wrong", None), ("1. Correct\n2. Wrong", None),
    ("If it were complete, Grade: Correct", None), ("Grade: Correct, Grade: Wrong", None),
    ("Grade: Correct/Wrong, Error type: None", None), ("Grade: Correct?", None), ("Grade: Wrong → Correct", None),
    ("Grade: Correct\n1. Grade: Wrong", None), ("The grade is not Correct", None), ("Not Correct", None),
    ("Grade: mostly Correct", None), ("It is Correct, I would say.", None)])
def test_a_grade_is_read_however_a_judge_lays_it_out_and_an_ambiguous_one_is_none(reply, expected):
    verdict = said("grades", reply)
    assert (verdict.grade, verdict.error_type) == (expected or (None, None))


@each(("rubric", "reply", "expected"), [
    ("points", '{"grade": 7}', 7), ("points", '```json\n{"score": "7"}\n```', 7), ("points", '{"points": 7.0}', 7),
    ("points", "1. Grade: 7", 7), ("points", 'Grade: "7/10"', 7), ("points", "Score: 8", 8),
    ("points", "The grade is 9.", 9), ("points", '{"grade": 11}', None), ("points", '{"grade": 7.5}', None),
    ("points", '{"grade": -1}', None), ("points", "Grade: 7\nScore: 8", None), ("points", '{"grade": true}', None),
    ("points", "Grade: .7", None), ("points", "Grade: <7", None),
    ("steps", '{"held": [0, 2]}', (0, 2)), ("steps", '```json\n{"reason": "x", "held": []}\n```', ()),
    ("steps", '{"held": [7]}', None), ("steps", '{"held": [0]} and [1]', None), ("steps", '{"held": "none"}', None)])
def test_points_and_steps_are_read_from_json_and_numbered_lines(rubric, reply, expected):
    assert getattr(said(rubric, reply), rubric) == expected


def test_as_published_a_grade_is_read_from_its_own_line_only():
    item = replace(MATERIAL["grades"], scoring="as-published")
    for reply in ("Grade: Correct, Error type: None", '{"grade": "Correct"}', "1. Grade: Correct"):
        assert play(ModelJudge(model="m").judge(item), Reply(reply))[1].grade is None


@each(("reply", "expected"), [
    ("Grade: 7", 7), ("Grade: 0", 0), ("Grade: 10.", 10), ("**Grade:** 7/10", 7), ("grade: *8* ", 8), ("7", 7),
    ("7 out of 10.", 7), ("It is close.\n\nGrade: 9", 9), ("Grade: 7\nGrade: 7", 7), ("Grade：6", 6),
    ("Grade: 11", None), ("Grade: -1", None), ("Grade: 7.5", None), ("Grade: 0 to 10", None), ("Grade: N", None),
    ("Grade: 7\nGrade: 8", None), ("Grade: 7\nGrade: 100", None), ("I give it 7 of 10 points.", None), ("评分:7", None),
    ("7 8", None), ("٧", None), ("Grade: 7/5", None), ("Grade:", None), ("", None), ("7\n8", None),
])
def test_points_are_read_strictly_and_never_clipped(reply, expected):
    assert read_points(reply) == said("points", reply).points == expected


@each(("reply", "expected"), [
    ("Held: [0, 2]", (0, 2)), ("Two are.\nHeld: [2,0].", (0, 2)), ("**Held:** [1]", (1,)), ("[0, 0]", (0,)),
    ("Held: []", ()), ("[ ]", ()), ("None is.\n`Held: [0, 1, 2]`", (0, 1, 2)),
    ("Held: [3]", None), ("Held: [-1]", None), ("Held: [0-2]", None), ("Held: [0, 1, ...]", None),
    ("Step [0] is stated.\nHeld: [0, 2]", None), ("[0, 2] are held.", None), ("Held: 0, 2", None), ("[none]", None),
    ("Held: [0 1]", None),
    ("Held: [[0], [1]]", None), ("Held: [0, 1", None), ("Held: [0,]", None), ("包含：零和二", None), ("", None),
])
def test_steps_are_read_strictly_and_never_clipped(reply, expected):
    assert read_steps(reply, 3) == said("steps", reply).steps == expected


@given(st.text(max_size=80), st.integers(1, 5))
def test_whatever_a_judge_says_its_reading_is_in_range(text, count):
    assert read_points(text) in (None, *range(11))
    assert set(read_steps(text, count) or ()) <= set(range(count))


def test_the_model_sees_question_and_accepted_answers_but_no_citations():
    item = graded("Who {predicted}?", ("Ann", "Anne"), "Ann [1][2-3]")
    asked, verdict = play(ModelJudge(model="openai:judge").judge(item),
                          Reply("Grade: Correct\nError type: None"))
    prompt = asked[0].messages[0].content
    assert "Who {predicted}?" in prompt
    assert "Ann\nor: Anne" in prompt
    assert "[1]" not in prompt
    assert "[2-3]" not in prompt
    assert isinstance(asked[0], Generate)
    assert verdict == Verdict(judge="openai:judge", grade="Correct")


def test_as_published_only_the_citations_that_end_an_answer_are_kept_from_the_judge():
    item = graded("q", ("a",), "Ann [1], since [2] says so [2], [3]")
    for scoring, predicted in (("corrected", "Ann, since says so,"), ("as-published", "Ann [1], since [2] says so")):
        asked, _ = play(ModelJudge(model="m").judge(replace(item, scoring=scoring)), Reply("Grade: Wrong"))
        assert f"<predicted_answer>\n{predicted}\n</predicted_answer>" in asked[0].messages[0].content


@pytest.mark.parametrize("rubric", ["grades", "points", "steps"])
@pytest.mark.parametrize(("reply", "note"), [
    (Reply("Hm."), "unreadable"), (Reply(""), "empty"),
    (Reply("[0]", finish_reason="length"), "cut by the token limit")])
def test_as_published_an_unreadable_verdict_is_unjudged_at_once(rubric, reply, note):
    shortened = (Reply("7"),) if rubric == "points" else ()
    asked, verdict = play(ModelJudge(model="m").judge(replace(MATERIAL[rubric], scoring="as-published")), *shortened,
                          reply)
    assert [action.purpose for action in asked][-1] == "judge"
    assert verdict == Verdict(judge="m", note=note)


def test_an_unreadable_verdict_is_asked_again_once():
    asked, verdict = play(ModelJudge(model="m").judge(graded("q", ("a",), "b")), Reply("Hm."),
                          Reply("Grade: Wrong\nError type: Others"))
    assert [action.purpose for action in asked] == ["judge", "judge_repair"]
    assert [message.role for message in asked[1].messages] == ["user", "assistant", "user"]
    assert asked[1].messages[1].content == "Hm."
    assert verdict == Verdict(judge="m", grade="Wrong", error_type="Others")


def test_points_are_asked_for_by_question_accepted_and_predicted_answer():
    asked, verdict = play(ModelJudge(model="m").judge(SUM), Reply("Grade: 3"))
    (action,) = asked
    assert "How many?" in action.messages[0].content
    assert "7 wins" in action.messages[0].content
    assert "First 3, ANSWER: 7 wins. ANSWER: 8" in action.messages[0].content
    assert verdict == Verdict(judge="m", points=3)


def test_as_published_points_are_given_to_what_follows_the_first_answer_mark_shortened():
    asked, verdict = play(ModelJudge(model="m").judge(replace(SUM, scoring="as-published", reasoned=True)),
                          Reply("seven [1]."), Reply("Grade: 9"))
    assert [action.purpose for action in asked] == ["judge_compress", "judge"]
    assert "<reply>\n7 wins [1]. \n</reply>" in asked[0].messages[0].content
    assert "<predicted_answer>\nseven [1].\n</predicted_answer>" in asked[1].messages[0].content
    assert verdict == Verdict(judge="m", points=9)


@pytest.mark.parametrize(("predicted", "reasoned"), [
    ("First 3, ANSWER: 7 wins", False), ("First 3, then 7 wins.", True)])
def test_as_published_the_whole_reply_is_shortened_without_reasoning_or_an_answer_mark(predicted, reasoned):
    item = replace(SUM, scoring="as-published", predicted=predicted, reasoned=reasoned)
    asked, _ = play(ModelJudge(model="m").judge(item), Reply("seven"), Reply("Grade: 9"))
    assert f"<reply>\n{predicted}\n</reply>" in asked[0].messages[0].content


@pytest.mark.parametrize(("reply", "note"), [
    (Reply(""), "the shortened answer was empty"),
    (Reply("sev", finish_reason="length"), "the shortened answer was cut"),
    (Failure("too_long", "900 tokens"), "call failed: too_long"),
])
def test_an_answer_that_could_not_be_shortened_is_unjudged(reply, note):
    _, verdict = play(ModelJudge(model="m").judge(replace(SUM, scoring="as-published")), reply)
    assert verdict == Verdict(judge="m", note=note)


def test_steps_are_asked_for_by_all_reasoning_and_numbered_steps():
    asked, verdict = play(ModelJudge(model="m").judge(STORY), Reply("One is.\nHeld: [1]"))
    prompt = asked[0].messages[0].content
    assert "0. The thief limped [1].\n1. The gardener limps.\n2. So the gardener is the thief." in prompt
    assert "<reasoning>\nThe gardener limps. So did the thief.\n</reasoning>" in prompt
    assert verdict == Verdict(judge="m", steps=(1,))


def test_a_repair_says_what_is_expected_of_this_question():
    asked, verdict = play(ModelJudge(model="m").judge(STORY), Reply("Held: [3]"), Reply("Held: []"))
    assert "out of 0 to 2," in asked[1].messages[2].content
    assert verdict == Verdict(judge="m", steps=())
    assert "0 to 10" in play(ModelJudge(model="m").judge(SUM), Reply("?"), Reply(""))[0][1].messages[2].content


@pytest.mark.parametrize("rubric", ["grades", "points", "steps"])
@pytest.mark.parametrize(("replies", "note"), [
    ((Reply("Grade: Correct\nGrade: 7\n[0]", finish_reason="length"),) * 2, "cut by the token limit twice"),
    ((Reply(" "), Reply("")), "empty twice"),
    ((Reply("I think so."), Reply("Yes.")), "unreadable twice"),
    ((Reply(""), Reply("Yes.")), "unreadable twice"),
    ((Reply("?"), Failure("timeout", "late")), "call failed: timeout"),
    ((Failure("too_long", "9000 tokens"),), "call failed: too_long"),
])
def test_what_is_wrong_with_a_judge_is_noted_for_every_rubric(rubric, replies, note):
    _, verdict = play(ModelJudge(model="m").judge(MATERIAL[rubric]), *replies)
    assert verdict == Verdict(judge="m", note=note)
    assert verdict.unjudged


@each(("text", "answer", "expected"), [
    ("London", "London", "Correct"),
    ("The city is London.", "London", "Correct"),
    ("It linked Edinburgh to the capital city of England, which is of course known as London.", "London", "Wrong"),
    ("$1577", "1,577.00", "Correct"),
    ("1.577 thousand dollars", "$1,577", "Correct"),
    ("15", "1.5", "Wrong"),
    ("founded on 2023-05-03", "May 3, 2023", "Correct"),
    ("In July 1941.", "1941", "Correct"),
    ("1920", "10 January 1920", "Partially Correct"),
    ("Lake Havasu in Arizona", "Lake Havasu City, Arizona", "Partially Correct"),
    ("34 floors and 455 feet, I think, but it may be that it is otherwise", "34 floors, 50 feet",
     "Partially Correct"),
    ("north", "no", "Wrong"),
    ("서울입니다", "서울", "Correct"),
    ("대한민국의 수도 서울", "대한민국 수도 부산", "Wrong"),
    ("", "London", "Wrong"),
    ("A.", "A", "Correct"), ("(A)", "A", "Correct"), ("**A**", "A", "Correct"), ("B.", "A", "Wrong"),
    ("It is a dog.", "A", "Wrong"), ("The", "A", "Wrong"),
    ("Yes, there is no doubt.", "no", "Wrong"), ("Yes, there is no doubt.", "yes", "Correct"),
    ("No, yes would be wrong.", "yes", "Wrong"), ("Yes and no.", "yes", "Wrong"), ("Yes and no.", "no", "Wrong"),
    ("The answer is **yes**.", "Yes", "Correct"), ("None of them did, I know.", "no", "Wrong"),
    ("네, 그렇습니다.", "예", "Correct"), ("아니요, 다릅니다.", "아니오", "Correct"), ("네덜란드입니다", "네", "Wrong"),
    ("아네모네입니다", "네", "Wrong"), ("아네모네입니다", "모네", "Wrong"), ("모네입니다", "모네", "Correct"),
    ("5", "5%", "Correct"), ("5%", "5", "Wrong"), ("about 5 of them", "5%", "Wrong"),
    ("five, or 5 percent", "5%", "Correct"), ("5 people", "5", "Correct"), ("Only 5% of people", "5 people", "Wrong"),
])
def test_the_lexical_rule(text, answer, expected):
    assert grade(text, answer) == expected


def test_the_lexical_judge_drops_citations_takes_the_best_answer_and_asks_nobody():
    item = graded("Which island?", ("South Island", "North Island"), "North Island [2, 3].")
    asked, verdict = play(Lexical().judge(item))
    assert asked == []
    assert verdict == Verdict(judge="lexical", grade="Correct")


@given(st.text(max_size=30))
def test_a_gold_answer_judges_itself_correct(answer):
    assert grade(answer, answer) == "Correct"


@pytest.mark.parametrize(("predicted", "points"), [("7 wins [1]", 10), ("7", 5), ("7 defeats", 0), ("none", 0)])
def test_lexical_points_are_those_of_its_grades(predicted, points):
    _, verdict = play(Lexical().judge(replace(SUM, predicted=predicted)))
    assert verdict == Verdict(judge="lexical", points=points)


@each(("step", "reasoning", "held"), [
    ("The gardener limped on 3 May 1891.", "On May 3, 1891 the gardener was limping.", True),  # 2 of 3: not `limped`
    ("The gardener stole the ring.", "It was the gardener, with a rope.", False),  # 1 of 3
    ("There were 1,577 letters.", "I count 1577 letters", True),
    ("There were 1,577 letters.", "I count 1578 of them", False),
    ("He was there.", "he was there", True), ("He was there.", "she is here", False),
    ("管家在晚上杀了人。", "我认为，管家在晚上杀了人", True), ("管家在晚上杀了人。", "园丁是无辜的", False),
    ("정원사가 다리를 절었다", "정원사가 다리를 절었다고 한다", True),
    ("!", "!", False), ("A step.", "", False),
])
def test_the_lexical_rule_for_steps(step, reasoning, held):
    assert find_held_steps([step], reasoning) == ((0,) if held else ())


def test_the_lexical_judge_names_the_steps_that_it_finds():
    asked, verdict = play(Lexical().judge(STORY))
    assert asked == []
    assert verdict == Verdict(judge="lexical", steps=(1, 2))


def test_a_judge_is_asked_with_the_limit_of_its_reply():
    asked, _ = play(ModelJudge(model="m", max_tokens=9).judge(MATERIAL["grades"]), Reply("Grade: Wrong"))
    assert asked[0].max_tokens == 9
