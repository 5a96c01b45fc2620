"""Which factors matter, and which of their levels is ahead, in the report's sentences."""
import pytest

from experiments.report.sentences_more import on_effects


def factor(name, p, contrasts=(), bounds=True):
    levels = [{"level": level, "mean": mean, "low": mean - 0.1 if bounds else None,
               "high": mean + 0.1 if bounds else None, "effect": 0.1, "effect_low": 0, "effect_high": 0.2, "n": 9}
              for level, mean in (("a", 0.4), ("b", 0.6), ("c", 0.5))]
    return {"factor": name, "p": p, "p_holm": p, "levels": levels, "contrasts": list(contrasts)}


def contrast(first, second, difference, p):
    return {"first": first, "second": second, "difference": difference, "low": difference - 0.05,
            "high": difference + 0.05, "p": p, "p_holm": p}


def said(*factors, interactions=(), crossed=True):
    return " ".join(on_effects({"metric": "em", "crossed": crossed, "factors": factors,
                                "interactions": list(interactions)}))


def test_factors_that_matter_are_told_from_those_of_which_nothing_is_seen():
    joint = {"factors": ["model", "reasoning"], "p": 0.01, "p_holm": 0.02, "cells": []}
    assert said(factor("model", 0.01), factor("reasoning", 0.3), interactions=[joint]) == (
        "The model matters (p (Holm) 0.010), but how much depends on reasoning: mean exact match is 0.60 [0.50, 0.70] "
        "for b, 0.50 [0.40, 0.60] for c and 0.40 [0.30, 0.50] for a. No effect of reasoning is seen over the mean of "
        "the rest. How much model matters depends on reasoning (p (Holm) 0.020).")


@pytest.mark.parametrize(("contrasts", "sentence"), [
    ([contrast("a", "b", 0.2, 0.01), contrast("a", "c", 0.1, 0.02), contrast("b", "c", -0.1, 0.03)],
     "Over all conditions b is higher than c by 0.10 [0.05, 0.15] (p (Holm) 0.030)."),
    ([contrast("a", "b", 0.2, 0.01), contrast("a", "c", 0.1, 0.2), contrast("b", "c", -0.1, 0.2)],
     "Over all conditions b is higher than a by 0.20 [0.15, 0.25] (p (Holm) 0.010); from c it cannot be told."),
    ([contrast("a", "b", 0.2, 0.06), contrast("a", "c", 0.1, 0.04), contrast("b", "c", -0.1, 0.2)],
     "Over all conditions c is higher than a by 0.10 [0.05, 0.15] (p (Holm) 0.040)."),
    ([contrast("a", "b", 0.2, 0.06)], "")])
def test_the_level_that_is_ahead_over_all_of_the_rest_is_said(contrasts, sentence):
    assert said(factor("reasoning", 0.01, contrasts, bounds=False), factor("condition", None)) == " ".join(
        filter(None, ["The reasoning matters (p (Holm) 0.010): mean exact match is 0.60 for b, 0.50 for c and 0.40 for "
                      "a.", sentence, "There are too few questions to test condition."]))


def test_where_some_combinations_were_not_asked_nothing_is_said_to_be_over_all():
    made = factor("reasoning", 0.01, [contrast("a", "b", 0.2, 0.01)]), factor("condition", None)
    assert "b is higher than a by 0.20" in said(*made, crossed=False)
    assert "Over all" in said(*made)
    assert "Over all" not in said(*made, crossed=False)
