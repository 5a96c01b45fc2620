"""No sub-question holds the answer to an earlier one: `#N` stands there, and gold comes back by `filled: gold`."""
import re
from pathlib import Path

import pytest

from experiments.benchmarks import BENCHMARKS
from experiments.benchmarks.fields import chained, with_references

DATA = Path(__file__).parent / "data"
CHAINS = [kind for kind in BENCHMARKS if "chain" in BENCHMARKS[kind].scheme.groups]


@pytest.mark.parametrize(("asked", "answers", "expected", "tag"), [
    (["Which band?", "Who drums for Maroon 5?", "First name of matt flynn?"], ["Maroon 5", "Matt Flynn", "Matt"],
     ("Which band?", "Who drums for #1?", "First name of #2?"), "masked"),
    (["Who?", "When was #1 born?"], ["Eve", "1901"], ("Who?", "When was #1 born?"), "placeholders"),
    (["When?", "When?", "Which is later, #1 or 2006?"], ["2011", "2006", "2011"],
     ("When?", "When?", "Which is later, #1 or #2?"), "masked"),
    (["Which?", "Who?", "Is York older than New York?"], ["York", "New York", "no"],
     ("Which?", "Who?", "Is #1 older than #2?"), "masked"),
    (["Which show?", "Who created Superstore?"], ["Superstore (TV series)", "Spitzer"],
     ("Which show?", "Who created #1?"), "masked"),
    (["Is it?", "How many digits?", "Is there no year 5?"], ["no", "5", "yes"],
     ("Is it?", "How many digits?", "Is there no year 5?"), "plain"),
    (["Where?", "Who are the Romans?"], ["Roman", "people"], ("Where?", "Who are the Romans?"), "plain"),
    (["Which?", "Which ten?", "Is #12 a hit?"], ["a", "12", "no"], ("Which?", "Which ten?", "Is #12 a hit?"),
     "placeholders"),
    (["Maroon 5?"], ["Maroon 5"], ("Maroon 5?",), "plain"), ([], [], (), "plain")])
def test_an_earlier_answer_that_stands_as_words_becomes_a_reference(asked, answers, expected, tag):
    assert chained(asked, answers) == (expected, tag)


def test_gold_answers_give_the_published_text_back():
    asked = ["Which band?", "Who drums for Maroon 5?", "First name of Matt Flynn of Maroon 5?"]
    answers = ["Maroon 5", "Matt Flynn", "Matt"]
    assert [with_references(text, answers) for text in chained(asked, answers)[0]] == asked


def assert_none_told(questions):
    assert any(question.sub_questions for question in questions)
    for question in questions:
        for place, text in enumerate(question.sub_questions):
            for answer in question.sub_answers[:place]:
                if len(answer) > 1 and answer.lower() not in ("yes", "no"):
                    assert not re.search(rf"(?<![\w#]){re.escape(answer)}(?!\w)", text, re.IGNORECASE), question.id


@pytest.mark.parametrize("kind", CHAINS)
def test_no_fixture_has_an_earlier_answer_in_a_sub_question(kind):
    assert_none_told(BENCHMARKS[kind](path=str(DATA / kind)).load().questions)
