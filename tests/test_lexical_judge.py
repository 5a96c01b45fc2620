"""The lexical judge: its rules of words, numbers and dates, for answers and for steps."""
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judged import STORY, SUM, graded, play

from experiments import Verdict
from experiments.judges import Lexical
from experiments.judges.lexical import grade, steps_held


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


@given(st.text(max_size=30))
def test_a_gold_answer_judges_itself_correct(answer):
    assert grade(answer, answer) == "Correct"


@pytest.mark.parametrize(("predicted", "points"), [("7 wins [1]", 10), ("7 defeats", 5), ("none", 0)])
def test_lexical_points_are_those_of_its_grades(predicted, points):
    _, verdict = play(Lexical().judge(replace(SUM, predicted=predicted)))
    assert verdict == Verdict(judge="lexical", points=points)


@pytest.mark.parametrize(("step", "reasoning", "held"), [
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
    assert steps_held([step], reasoning) == ((0,) if held else ())


def test_the_lexical_judge_names_the_steps_that_it_finds():
    asked, verdict = play(Lexical().judge(STORY))
    assert asked == []
    assert verdict == Verdict(judge="lexical", steps=(1, 2))
