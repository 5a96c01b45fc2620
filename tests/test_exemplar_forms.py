"""A strategy that shows worked examples in another form than it asks for is told so."""
import pytest

from agents.conformance.playing import play, situations
from agents.conformance.stand_ins import good
from strategies.answering import answer
from strategies.catalogue import ANSWERING, REASONING, RETRIEVAL
from strategies.prompting import first_message, numbers, system_message
from strategies.types import Draft, Generate

SHOWING = [situation for situation in situations() if "exemplars" in situation.changes]
TOLD = [("answers", "call 'answer' shows worked examples in another form than it asks for")]


def problems(recipe, situation):
    return play(recipe, RETRIEVAL["once"], situation, "a model", good).problems


def plain(task):
    """Asks for the answer alone, and shows examples with tags."""
    evidence = yield from task.gather(task.question)
    said = (system_message(), first_message(task, evidence, "Answer at once."))
    return Draft.from_reply((yield Generate(said, "answer", numbers(task, evidence))), form="plain")


def fitting(task):
    evidence = yield from task.gather(task.question)
    return (yield from answer(task, "direct", evidence, thinks=False))


@pytest.mark.parametrize("situation", SHOWING, ids=lambda one: one.name)
def test_another_form_is_a_broken_promise_and_the_same_is_none(situation):
    assert problems(fitting, situation) == []
    assert problems(plain, situation) == TOLD


@pytest.mark.parametrize("name", [name for name in ANSWERING if name != "few_shot"])
def test_every_strategy_shows_them_as_it_asks_for_answers(name):
    assert [problems(REASONING[name], situation) for situation in SHOWING] == [[]] * 3
