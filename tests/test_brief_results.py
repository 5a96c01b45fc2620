"""Results as a summary keeps them: equal values are kept once, and other fields are read again when they are used."""
import pytest
from stored import result

from ragbed.experiments.record import BriefResult


def no_read(cell, question):
    raise AssertionError((cell, question))


def test_equal_scores_are_kept_once_and_empty_ones_stay_scores():
    shared = {}
    first, second, none = (BriefResult(result("a", question, scores=scores), no_read, shared)
                           for question, scores in (("1", {"em": 1.0}), ("2", {"em": 1.0}), ("3", {})))
    assert first.scores is second.scores
    assert (first.notes, none.scores, none.notes) == ((), {}, ())


def test_a_field_that_is_not_kept_is_read_from_the_record_of_the_result():
    whole = result("a", "1", text="Oslo")
    brief = BriefResult(whole, lambda cell, question: {("a", "1"): whole}[cell, question], {})
    assert (brief.text, brief.refused, brief.question) == ("Oslo", False, "1")
    with pytest.raises(AttributeError):
        _ = brief.unknown
