"""No sub-question holds the answer to an earlier one: `#N` stands there, and gold comes back by `filled: gold`."""

import pytest

from experiments.benchmarks.fields import chained, with_references


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
