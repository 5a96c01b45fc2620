"""What a recipe decides: short lines in the trace, and no end of them is an end of the question."""
import pytest

from agents import DecisionStep, Scripted
from strategies import Decision, Draft, Recipe, Search, Task


def played(recipe):
    return Scripted([]).play(recipe, retrieval="none")


@pytest.mark.parametrize("idle", [Decision("thinks", "still"), []])
@pytest.mark.parametrize("first", [True, False])
def test_a_recipe_that_only_decides_ends_its_question_instead_of_never_ending(idle, first):
    def never_asks(task: Task) -> Recipe:
        if not first:
            yield Search("first")
        while True:
            yield idle

    answer = played(never_asks)
    assert (answer.outcome, answer.failure.kind) == ("error", "strategy")
    assert "decisions in a row" in answer.failure.message


def test_as_many_decisions_as_one_likes_may_stand_between_steps_up_to_that():
    def decides(task: Task) -> Recipe:
        for _ in range(3):
            for number in range(199):
                yield Decision(f"number {number}")
            yield Search("next")
        return Draft("Norway", (), False, True, None)

    answer = played(decides)
    assert answer.outcome == "answered"
    assert sum(isinstance(step, DecisionStep) for step in answer.trace) == 597


def test_a_decision_is_one_short_line():
    def talks(task: Task) -> Recipe:
        yield Decision("searches\nagain " * 50, "why " * 10_000)
        return Draft("Norway", (), False, True, None)

    (step,) = played(talks).trace
    assert (len(step.what), len(step.why), step.what[:16]) == (80, 300, "searches again s")
    assert (step.what[-1], step.why[-1], "\n" in step.what) == ("…", "…", False)
