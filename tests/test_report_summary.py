"""The sentences at the top of the report: they claim what the paired tests show, and no more."""
import pytest
from report_runs import Run

from ragbed.experiments.report.cells import table
from ragbed.experiments.report.competition import cost_of, front
from ragbed.experiments.report.entrants import entrants
from ragbed.experiments.report.page import headlines, verdicts
from ragbed.experiments.report.sentences_more import on_effects

GIVEN = "With the benchmark's own passages (given), "


def cell(reasoning, mean=0.5, condition="given", tokens=1000, **fields):
    figure = {"mean": mean, "low": None if mean is None else mean - 0.1, "high": None if mean is None else mean + 0.1,
              "n": 100}
    return {"id": f"{reasoning}/{condition}", "model": "m", "reasoning": reasoning, "rules": "grounded",
            "condition": condition, "repeat": 0, "seed": None, "judge": "http://host/v1#gpt-4o", "scoring": "corrected",
            "n": 100, "outcomes": {"answered": 100}, "metrics": {"unified": figure},
            "usage": {"prompt_tokens": 100 * tokens, "completion_tokens": 0, "calls": 100, "price": None}, **fields}


def pair(first, second, difference, p=0.5, factor="reasoning", **fields):
    """Of the second cell against the first."""
    return {"factor": factor, "first": first, "second": second, "n": 100, "clusters": 100, "unpaired": 0, "before": 0.5,
            "after": 0.5 + difference, "difference": difference, "low": difference - 0.1, "high": difference + 0.1,
            "gained": 9, "lost": 4, "test": "permutation", "p": p, "p_holm": p, "odds": None, "dz": 0.2,
            "smallest": 0.15, **fields}


def said(cells, *pairs, results=(), **more):
    """The sentences by what they are about; without pairs the summary has no comparisons."""
    summary = {"comparisons": {"metric": "unified", "pairs": list(pairs), "notes": []} if pairs else None, **more}
    failures = [(one.outcome, one.failure.kind) for one in results if one.failure]
    found = verdicts(summary, entrants(table(cells, ["unified"])), failures)
    return {verdict.about: " ".join(verdict.lines) for verdict in found}


THREE = [cell("direct", 0.5), cell("draft", 0.6), cell("plan", 0.7)]


def test_the_first_sentence_says_how_far_the_best_cell_is_better():
    some = said(THREE, pair("direct/given", "plan/given", 0.2, p=0.01), pair("draft/given", "plan/given", 0.1))
    assert some[""] == (f"{GIVEN}plan has the highest unified score (gpt-4o), 0.70 [0.60, 0.80], better by paired "
                        "tests than 1 of the other 2; draft is 0.10 lower, a difference that chance may make over 100 "
                        "questions.")
    both = said(THREE, pair("direct/given", "plan/given", 0.2, p=0.01), pair("plan/given", "draft/given", -0.1, p=0.02))
    assert both[""].endswith(", better by paired tests than each of the other 2.")
    none = said(THREE, pair("direct/given", "plan/given", 0.2), pair("plan/given", "draft/given", -0.1))
    assert none[""].endswith("0.80]; draft is 0.10 lower, a difference that chance may make over 100 questions.")


def test_what_differs_on_its_own_and_not_after_the_correction_is_a_third_word():
    cells = [*THREE[1:], cell("direct", 0.1)]
    found = said(cells, pair("draft/given", "plan/given", 0.1, p=0.01, p_holm=0.06),
                 pair("direct/given", "plan/given", 0.6, p=0.001))
    assert found[""].endswith("; draft is 0.10 lower, which 100 questions cannot settle.")
    assert found["What it beats"] == (
        "Really better than direct (+0.60 [+0.50, +0.70]). Different on its own, but not after the correction for 2, "
        "from draft (+0.10 [+0.00, +0.20], p 0.010, corrected 0.060).")
    assert found["Differences"].endswith("Of the 2: 1 really different, 1 on their own, none without a difference "
                                         "that is seen.")


def test_the_best_is_sought_among_what_could_be_put_to_use():
    cells = [cell("direct", 0.5), cell("plan", 0.6), cell("direct", 0.8, "gold"), cell("plan", 0.9, "gold"),
             cell("plan", 0.2, "closed-book"), cell("plan", 1.0, id="dropped", perturbation="drop_gold")]
    cells[4]["metrics"]["unified"]["n"] = 60
    found = said(cells, pair("direct/given", "plan/given", 0.1, p=0.01),
                 pair("plan/given", "plan/gold", 0.3, p=0.01, factor="condition"))
    assert found[""] == (f"{GIVEN}plan has the highest unified score (gpt-4o), 0.60 [0.50, 0.70], better by paired "
                         "tests than direct.")
    assert found["Ceiling and floor"] == (
        "With the gold alone (gold) the same reaches 0.90 [0.80, 1.00], the ceiling. Without any document "
        "(closed-book) it reaches 0.20 [0.10, 0.30] over 60 of the 100 questions, the floor.")


@pytest.mark.parametrize(("conditions", "start"), [
    (("given", "retrieved", "gold"), "With retrieval (retrieved), x has"), (("gold", "full"), "With the "
                                                                                                      "whole "),
    (("closed-book", "gold"), "With the gold alone (gold), "), (("given", "full"), "Of 4 cells, ")])
def test_conditions_compete_in_their_order(conditions, start):
    cells = [cell(name, 0.5 + 0.1 * (name == "x") + 0.01 * at, condition)
             for at, condition in enumerate(conditions) for name in "xy"]
    assert said(cells)[""].startswith(start)


def test_the_terminal_has_the_same_sentences_from_the_summary_alone():
    pairs = [pair("direct/given", "plan/given", 0.2, p=0.01), pair("draft/given", "plan/given", 0.1)]
    summary = {"cells": THREE, "columns": ["unified"],
               "comparisons": {"metric": "unified", "pairs": pairs, "notes": []}}
    found = said(THREE, *pairs)
    assert headlines(summary) == [found[""], found["Differences"]]
    assert headlines({"cells": [], "columns": []}) == []


def test_what_it_beats_has_differences_seen_from_the_best_cell():
    found = said(THREE, pair("direct/given", "plan/given", 0.2, p=0.01), pair("plan/given", "draft/given", -0.1))
    assert found["What it beats"] == (
        "Really better than direct (+0.20 [+0.10, +0.30]). No difference is seen from draft (+0.10 [+0.00, +0.20]). "
        "So many questions would show a true difference of 0.15 with a probability of 80 %.")
    assert found["Differences"] == (
        "Two cells are really different where p < 0.05 in a paired test over the same questions holds after Holm's "
        "correction for all 2 comparisons, and different on their own where it holds only before. Of the 2: 1 really "
        "different, none on their own, 1 without a difference that is seen.")


def test_a_cell_that_is_better_over_shared_questions_alone_is_not_hidden():
    found = said(THREE[1:], pair("plan/given", "draft/given", 0.1, p=0.01, unpaired=30))
    assert found[""].endswith("; over the questions that both have, draft is better.")
    assert found["What it beats"] == "Over the questions that both have, draft (-0.10 [-0.20, +0.00]) is really better."


@pytest.mark.parametrize(("cells", "first"), [
    ([], None),
    ([cell("direct", None)], "No unified score (gpt-4o) could be computed."),
    ([cell("direct", 0.0)], f"{GIVEN}direct has a mean unified score (gpt-4o) of 0.00 [-0.10, 0.10], over 100 "
                            "questions. No other cell competes with it."),
    ([cell("direct", 0.0), cell("plan", 0.0)], f"{GIVEN}both cells have the same unified "
                                                       "score (gpt-4o), 0.00: none is best."),
    ([cell("direct", 0.5), cell("plan", 0.5), cell("draft", 0.4)],
     f"{GIVEN}direct and plan share the highest unified score (gpt-4o), 0.50."),
    (THREE, f"{GIVEN}plan has the highest unified score (gpt-4o), 0.70 [0.60, 0.80]. Whether that is a real "
            "difference was not tested: ragbed compare does."),
    ([cell("direct", 0.5), cell("plan", 0.7, judge="lexical")],
     "The cells have different judges, so that their unified score does not compare."),
])
def test_the_first_sentence_of_ties_and_of_runs_with_little_to_say(cells, first):
    assert said(cells).get("") == first


def test_each_condition_has_its_best_strategy():
    cells = [cell("direct", 0.5), cell("plan", 0.7), cell("direct", 0.3, "full"), cell("plan", 0.2, "full")]
    found = said(cells, pair("direct/given", "plan/given", 0.2, p=0.01), pair("direct/full", "plan/full", -0.1),
                 pair("plan/given", "plan/full", -0.5, p=0.001, factor="condition"))
    assert found["Best of each"] == (
        "With the benchmark's own passages (given): plan, 0.70, really better than direct. With the whole document "
        "(full): direct, 0.30, no difference seen from plan.")


def test_the_cost_of_what_cannot_be_told_apart_is_said():
    cells = [cell("direct", 0.5, tokens=300), cell("draft", 0.6, tokens=400), cell("plan", 0.7, tokens=1200)]
    found = said(cells, pair("direct/given", "plan/given", 0.2, p=0.01), pair("draft/given", "plan/given", 0.1))
    assert found["Cost"] == (
        "For a third of the tokens, 400 against 1,200 tokens per question, draft is 0.10 lower than plan: no "
        "difference is seen (p 0.500). The dearest, plan, takes 4.0 times as much as the cheapest, direct: 1,200 "
        "against 300 tokens per "
        "question. On the Pareto front, where no other cell has a higher mean for as little: direct, draft and plan.")
    assert found[""].endswith("; draft, at a third of its tokens, is 0.10 lower, a difference that chance may make "
                              "over 100 questions.")
    assert "Cost" not in said(THREE)


def test_the_front_holds_what_nothing_beats_at_both():
    cells = [cell("a", 0.5, tokens=100), cell("b", 0.4, tokens=200), cell("c", 0.6, tokens=300),
             cell("d", 0.6, tokens=400), cell("e", 0.5, tokens=100), cell("f", None, tokens=1)]
    made = table(cells, ["unified"])
    assert [one.label for one in front(made, cost_of(made.cells))] == ["a", "e", "c"]


def test_the_causes_of_the_best_cell_and_of_the_best_that_searches():
    cells = [cell("direct", 0.5, "retrieved"), cell("direct", 0.7, "gold"), cell("direct", 0.1, "closed-book")]

    def row(name, **shares):
        return {"cell": name, "n": 100, "causes": {
            cause: {"mean": share, "low": 0.0, "high": 1.0, "n": 100} for cause, share in shares.items()}}
    names = ("right", "memory", "retrieval_miss", "reasoning_error", "not_known", "not_scored")
    found_causes = {"causes": [{"name": name, "title": name.replace("_", " "), "definition": "d"} for name in names],
                   "notes": [],
                   "cells": [row("direct/retrieved", right=0.3, memory=0.2, retrieval_miss=0.35, reasoning_error=0.15),
                             row("direct/gold", right=0.7, reasoning_error=0.2, not_scored=0.1),
                             row("direct/closed-book", right=0.1, not_known=0.9)]}
    found = said(cells, error_analysis=found_causes)
    assert found["Causes"] == ("Of 50 wrong answers of direct (the best cell): retrieval miss 70 % and reasoning error "
                               "30 %.")
    few = {**found_causes, "cells": [row("direct/retrieved", right=0.9, retrieval_miss=0.06, reasoning_error=0.04)]}
    assert said(cells, error_analysis=few)["Causes"] == (
        "Of 10 wrong answers of direct (the best cell): retrieval miss 6 and reasoning error 4.")
    right = {"causes": found_causes["causes"], "cells": [row("direct/gold", right=1.0)], "notes": []}
    assert said(cells, error_analysis=right)["Causes"] == "No answer is known to be wrong."


def test_failures_say_whether_they_stay_in_the_means():
    cells = [cell("direct", outcomes={"answered": 97, "error": 2, "too_long": 1}), cell("plan")]
    assert said(cells)["Failures"] == "Of 200 answers, 3 failed: error 2 and too long 1. They stay in every mean."
    assert said([cell("plan")])["Failures"] == "None of 100 answers failed."
    published = said([one | {"scoring": "as-published"} for one in cells])["Failures"]
    assert "n is smaller there" in published
    assert "stay in every mean" not in published


def test_failures_have_their_reasons_and_what_is_malformed_is_none_of_them():
    run = Run("direct")
    run.ask("a")
    run.answer("direct", "a", "", outcome="error")
    results = [record.result for record in run.records]
    found = said([cell("direct", outcomes={"answered": 97, "error": 1, "malformed": 2})], results=results)
    assert found["Failures"] == ("Of 100 answers, 1 failed: HTTP 500. Malformed, without an answer that could be "
                                 "read: 2. They stay in every mean.")


def refusing(reasoning, right, over):
    shares = {"refusal_accuracy": right, "refused_answerable": over}
    return cell(reasoning, metrics={"unified": {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 50}, **{
        name: {"mean": count / n if n else None, "low": 0, "high": 1, "n": n} for name, (count, n) in shares.items()}})


def test_refusals_name_the_cells_at_either_end():
    found = said([refusing("direct", (13, 36), (1, 44)), refusing("draft", (28, 36), (0, 44))])
    assert found["Refusals"] == (
        "Unanswerable questions are rightly refused most often by draft (in 28 of 36 cases), least often by direct (in "
        "13 of 36 cases). Answerable questions are needlessly refused most often by direct (in 1 of 44 cases), least "
        "often by draft (in 0 of 44 cases).")
    needless = said([refusing("direct", (0, 0), (4, 44)), refusing("draft", (0, 0), (4, 44))])["Refusals"]
    assert needless == ("Every question is answerable, so that each refusal is needless. Answerable questions are "
                        "needlessly refused by each cell in 4 of 44 cases.")


def factor(name, p, contrasts=(), bounds=True):
    levels = [{"level": level, "mean": mean, "low": mean - 0.1 if bounds else None,
               "high": mean + 0.1 if bounds else None, "effect": 0.1, "effect_low": 0, "effect_high": 0.2, "n": 9}
              for level, mean in (("a", 0.4), ("b", 0.6), ("c", 0.5))]
    return {"factor": name, "p": p, "p_holm": p, "levels": levels, "contrasts": list(contrasts)}


def contrast(first, second, difference, p):
    return {"first": first, "second": second, "difference": difference, "low": difference - 0.05,
            "high": difference + 0.05, "p": p, "p_holm": p}


def effects_said(*factors, interactions=(), crossed=True):
    return " ".join(on_effects({"metric": "em", "crossed": crossed, "factors": factors,
                                "interactions": list(interactions)}))


def test_factors_that_matter_are_told_from_those_of_which_nothing_is_seen():
    joint = {"factors": ["model", "reasoning"], "p": 0.01, "p_holm": 0.02, "cells": []}
    assert effects_said(factor("model", 0.01), factor("reasoning", 0.3), interactions=[joint]) == (
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
    assert effects_said(factor("reasoning", 0.01, contrasts, bounds=False), factor("condition", None)) == " ".join(
        filter(None, ["The reasoning matters (p (Holm) 0.010): mean exact match is 0.60 for b, 0.50 for c and 0.40 for "
                      "a.", sentence, "There are too few questions to test condition."]))


def test_where_some_combinations_were_not_asked_nothing_is_said_to_be_over_all():
    made = factor("reasoning", 0.01, [contrast("a", "b", 0.2, 0.01)]), factor("condition", None)
    assert "b is higher than a by 0.20" in effects_said(*made, crossed=False)
    assert "Over all" in effects_said(*made)
    assert "Over all" not in effects_said(*made, crossed=False)
