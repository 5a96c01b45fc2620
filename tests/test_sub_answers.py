"""Sub-questions hold no earlier answer, and sub-answers in one reply are read strictly."""
import pytest
from each_case import each
from growth import grows_linearly

from ragbed.agents import Scripted
from ragbed.experiments.benchmarks.fields import fill_references, mask_answers
from ragbed.strategies import REFUSAL
from ragbed.strategies.answering import read_sub_answers


def answered(*replies, name="direct"):
    """The answer of a strategy to these replies, which it asked to hold two sub-answers, over one document."""
    return Scripted([*replies], ["Rome."]).play(name, "Where is Rome?", sub_questions=("Who?", "Where?"),
                                                with_sub_answers=True)


@each(("text", "read"), [
    ("Sub-answer 1: Ada\nSub-answer 2: Paris\nFrance", ("Ada", "Paris")),
    ("- **Sub-answer 1:** Ada [1]\n* sub-answer 2: *Paris*", ("Ada [1]", "Paris")),
    ("Subanswer 2： 파리\n<Thinking>Sub-answer 1: Ada</Thinking>", ("Ada", "파리")),
    ("Sub-answer 1: Eve\nSub-answer 1: Ada", ("Ada", None)),
    ("Sub-answer 1:\nSub-answer 3: x", (None, None)),
    ("The sub-answer 1: Ada", (None, None)), ("1. Ada\n2. Paris", (None, None)), ("", (None, None)),
    ("<think>Sub-answer 1: Ada</think>Sub-answer 2: Paris", (None, "Paris"))])
def test_each_line_of_the_form_is_an_answer_and_nothing_else_is(text, read):
    assert read_sub_answers(text, 2) == read


@pytest.mark.parametrize("piece", ["Sub-answer 1: ", "\n", " ", "Sub-answer 1\n", "Sub-answer 1: x\n", "***"])
def test_100_kb_of_anything_take_no_time(piece):
    grows_linearly(lambda n: read_sub_answers(piece * (n // len(piece)), 2), 25_000)


LINES = "Sub-answer 1: Ada [1]\n**Sub-answer 2:** Paris [7]\n"


@each(("reply", "outcome", "text", "cited"), [
    (LINES + "France [1]", "answered", "France [1]", (1,)),
    (LINES + "\nFinal answer: France", "answered", "France", ()),
    (LINES + "<Answer>France</Answer>", "answered", "France", ()),
    (f"<Answer>{LINES}Answer: France</Answer>", "answered", "France", ()),
    (f"<Thinking>\n{LINES}</Thinking><Answer>France</Answer>", "answered", "France", ()),
    (LINES + REFUSAL, "refused", REFUSAL, ()), (LINES, "malformed", "", ()),
    ("France [1]", "answered", "France [1]", (1,))])
def test_the_final_answer_is_read_without_the_sub_answers(reply, outcome, text, cited):
    answer = answered(reply)
    assert (answer.outcome, answer.text, answer.cited, answer.invalid_citations) == (outcome, text, cited, ())


@each(("asked", "answers", "expected", "tag"), [
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
    assert mask_answers(asked, answers) == (expected, tag)


def test_gold_answers_give_the_published_text_back():
    asked = ["Which band?", "Who drums for Maroon 5?", "First name of Matt Flynn of Maroon 5?"]
    answers = ["Maroon 5", "Matt Flynn", "Matt"]
    assert [fill_references(text, answers) for text in mask_answers(asked, answers)[0]] == asked
