"""The lexical judge's rule, and reading a judge model."""
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from experiments.judges import Graded, JudgeSettings, Lexical, ModelJudge
from experiments.judges.lexical import grade
from experiments.judges.model import read_verdict
from experiments.record import Verdict
from strategies.types import Failure, Generate, Reply


def graded(question, answers, predicted):
    return Graded("grades", question, answers, predicted)


def play(judging, *replies):
    """Sends the replies in turn; returns what was asked, and the verdict."""
    asked, sent = [], iter((None, *replies))
    try:
        while True:
            asked.append(judging.send(next(sent)))
    except StopIteration as end:
        return asked, end.value


@pytest.mark.parametrize(("text", "answer", "expected"), [
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
    ("대한민국의 수도 서울", "대한민국 수도 부산", "Partially Correct"),
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


@given(st.text(max_size=50), st.text(min_size=1, max_size=30))
def test_every_pair_gets_a_grade(text, answer):
    assert grade(text, answer) in ("Correct", "Partially Correct", "Wrong")


@given(st.text(max_size=30))
def test_a_gold_answer_judges_itself_correct(answer):
    assert grade(answer, answer) == "Correct"


@pytest.mark.parametrize(("reply", "expected"), [
    ("Grade: Correct\nError type: None", ("Correct", None)),
    ("**Grade:** Partially Correct\n**Error type:** MissingDetail", ("Partially Correct", "MissingDetail")),
    ("They differ.\n\ngrade: wrong.\nerror type: NumericMistakes", ("Wrong", "NumericMistakes")),
    ("Grade: Wrong", ("Wrong", None)),
    ("Grade: Correct\nError type: Others", ("Correct", None)),
    ("Grade: Correct, Partially Correct or Wrong", None),
    ("Grade: Correct\nGrade: Wrong", None),
    ("The answer is Correct", None),
    ("Grade: 9", None),
    ("", None),
])
def test_a_verdict_is_read_strictly(reply, expected):
    assert read_verdict(reply) == expected


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


def test_an_unreadable_verdict_is_asked_again_once():
    asked, verdict = play(ModelJudge(model="m").judge(graded("q", ("a",), "b")), Reply("Hm."),
                          Reply("Grade: Wrong\nError type: Others"))
    assert [action.purpose for action in asked] == ["judge", "judge_repair"]
    assert [message.role for message in asked[1].messages] == ["user", "assistant", "user"]
    assert asked[1].messages[1].content == "Hm."
    assert verdict == Verdict(judge="m", grade="Wrong", error_type="Others")


def test_unreadable_twice_or_failed_is_unjudged_with_a_note():
    _, twice = play(ModelJudge(model="m").judge(graded("q", ("a",), "b")), Reply("Hm."), Reply(""))
    _, failed = play(ModelJudge(model="m").judge(graded("q", ("a",), "b")), Failure("http_500", "down"))
    assert twice == Verdict(judge="m", grade=None, note="unreadable twice")
    assert failed == Verdict(judge="m", grade=None, note="call failed: http_500")


def test_settings_choose_the_judge_and_refuse_typos():
    adapter = TypeAdapter(JudgeSettings)
    assert adapter.validate_python({"kind": "lexical"}).name == "lexical"
    assert adapter.validate_python({"kind": "model", "model": "openai:x"}).name == "openai:x"
    with pytest.raises(ValidationError, match="'lexical', 'model'"):
        adapter.validate_python({"kind": "lexicl"})
