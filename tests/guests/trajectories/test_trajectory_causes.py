"""Causes of wrong answers that only a trajectory shows."""
from acted import CELL, TWO_HOPS, acted, begins, passage, search, stops, turn

from ragbed.experiments.analysis.causes import causes_by_name, find_causes

BOTH = (passage(1, 0), passage(2, 1))
HALF = BOTH[:1]


def cause(*steps, **changes):
    made = acted(begins("search", "open"), turn(100, 10), *steps, **changes)
    return find_causes([CELL], [made], {"q": TWO_HOPS}, ("unified",))[CELL.id]["q"]


def test_each_wrong_answer_has_the_cause_that_its_trajectory_shows():
    assert cause(search("a", 1), evidence=HALF) == "never_found"
    assert cause(search("a", 1, 2), evidence=(*HALF, passage(2, 1, aside=True))) == "not_opened"
    assert cause(search("a", 1, 2), evidence=(*HALF, passage(2, 1, level="document")), cited=(1,)) == "not_opened"
    assert cause(search("a", 1, 2), evidence=BOTH) == "not_used"
    assert cause(search("a", 1, 2), evidence=BOTH, cited=(2,)) == "undetermined"


def test_a_refusal_before_all_gold_was_read_is_giving_up_if_turns_were_left():
    refused = {"outcome": "refused", "refused": True, "text": "I cannot answer."}
    assert cause(search("a", 1), stops(), evidence=HALF, **refused) == "gave_up"
    assert cause(search("a", 1), stops("turn 12 of 12 called search"), evidence=HALF, **refused) == "never_found"
    assert cause(search("a", 1, 2), stops(), evidence=BOTH, **refused) == "wrong_refusal"


def test_right_answers_and_failures_keep_their_causes():
    assert cause(search("a", 1), evidence=HALF, cited=(1,), grade="Correct") == "right"
    assert cause(search("a", 1), evidence=HALF, outcome="malformed", grade=None) == "format"


def test_a_strategy_with_fixed_searches_keeps_the_general_cause():
    made = acted(search("a", 1), turn(100, 20, "answer"), evidence=HALF)
    assert find_causes([CELL], [made], {"q": TWO_HOPS}, ("unified",))[CELL.id]["q"] == "retrieval_miss"
    assert list(causes_by_name())[-4:] == ["gave_up", "never_found", "not_opened", "not_used"]
