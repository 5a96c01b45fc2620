"""Dose and response: curves over the number and the hardness of negatives, and the areas under them."""
from types import SimpleNamespace

import pytest
from factored import BASE

from ragbed.experiments import Mined, Question
from ragbed.experiments.analysis.replicates import group_replicates
from ragbed.experiments.conditions import Perturbation
from ragbed.experiments.guests.hard_negatives.dose import Reached, compute_dose, curve_area, find_curves, reached_dose
from ragbed.experiments.metrics import ScoredQuestion


class Shown:
    """What a record says of the evidence."""

    def __init__(self, question, chunks, notes=()):
        self.question, self.notes = question, notes
        self.evidence = [SimpleNamespace(chunk=chunk) for chunk in chunks]


def row(id, perturbation, **levels):
    return {**BASE, "id": id, "condition": "gold", "perturbation": perturbation, "metrics": {}, **levels}


def answers(*scores, metric="em"):
    return {f"q{at}": ScoredQuestion(True, "answered", {metric: score}) for at, score in enumerate(scores)}


def curves(*rows):
    return [(curve.axis, curve.word, curve.levels.get("sort") or curve.levels["number"], curve.doses,
             [cell.first["id"] for cell in curve.cells]) for curve in find_curves(group_replicates(list(rows), {}))]


def dose(rows, made, metric="em", **options):
    return compute_dose(rows, made, options.pop("clusters", {}), metric, "corrected", **options)


def test_an_area_is_the_mean_height_over_the_range_of_doses():
    assert curve_area((0, 2, 10), (1, 1, 1)) == 1
    assert curve_area((0, 10), (1, 0)) == 0.5
    assert curve_area((0, 2, 10), (1.0, 0.5, 0.5)) == pytest.approx((0.75 * 2 + 0.5 * 8) / 10)


def test_cells_that_differ_in_the_number_alone_are_a_curve_that_begins_with_none():
    assert curves(row("n5", "negatives@5"), row("n0", None), row("n2", "negatives@2")) == [
        ("negatives", "negatives", "any", (0, 2, 5), ["n0", "n2", "n5"])]


def test_each_sort_is_a_curve_of_its_own_and_begins_with_none_too():
    found = curves(row("n0", None), row("h2", "negatives@2:hard"), row("e2", "negatives@2:easy"),
                   row("b2", "negatives@2:bm25"))
    assert found == [("negatives", "negatives", "hard", (0, 2), ["n0", "h2"]),
                     ("negatives", "negatives", "easy", (0, 2), ["n0", "e2"]),
                     ("negatives", "negatives", "bm25", (0, 2), ["n0", "b2"]),
                     ("hardness", "negatives", "2", (0, 2), ["e2", "h2"])]


def test_hardness_goes_from_easy_to_hard_beside_what_has_no_negatives():
    rows = [row(sort[:1], f"negatives@3:{sort}") for sort in ("hard", "easy", "medium")]
    (bare,) = [curve for curve in find_curves(group_replicates(rows, {})) if curve.axis == "hardness"]
    assert (bare.doses, [cell.first["id"] for cell in bare.cells], bare.plain) == ((0, 1, 2), ["e", "m", "h"], None)
    *_, beside = find_curves(group_replicates([row("n0", None), *rows], {}))
    assert (beside.doses, beside.plain.first["id"]) == ((0, 1, 2), "n0")


DOSES = {"d0": None, "d4": "negatives@4", "c0": None, "c4": "negatives@4"}
TWO = [row(name, change, reasoning={"d": "direct", "c": "chain_of_thought"}[name[0]]) for name, change in DOSES.items()]


MADE = {name: answers(*[float(name != "d4")] * 8) for name in DOSES}  # direct loses all at four negatives


def test_areas_are_of_questions_and_curves_are_compared_by_them():
    found = dose(TWO, MADE)
    direct, chained = found["curves"]
    assert (direct["areas"]["em"]["mean"], direct["areas"]["em"]["n"]) == (0.5, 8)
    assert (chained["areas"]["em"]["mean"], chained["factors"]["reasoning"]) == (1.0, "chain_of_thought")
    (pair,) = found["comparisons"]
    assert (pair["factor"], pair["first"], pair["second"], pair["n"]) == ("reasoning", 0, 1, 8)
    assert pair["difference"] == pytest.approx(0.5)
    assert pair["p"] == pytest.approx(2 / 2**8)


def test_a_change_is_the_last_dose_against_the_first_and_a_slope_is_that_by_negative():
    direct, chained = dose(TWO, MADE | {"d4": answers(*[0] * 6, 1, 1)})["curves"]
    assert (direct["change"]["difference"], direct["slope"]["mean"]) == (-0.75, -0.1875)
    assert direct["slope"]["low"] == pytest.approx(direct["change"]["low"] / 4)
    assert (direct["change"]["test"], direct["change"]["p"]) == ("McNemar", 2 / 2**6)
    assert direct["change"]["p_holm"] == 2 * 2 / 2**6
    assert (chained["change"]["difference"], chained["change"]["p"]) == (0, 1)


def test_the_sort_of_negatives_is_a_factor_in_which_curves_differ():
    rows = [row("n0", None), row("e4", "negatives@4:easy"), row("h4", "negatives@4:hard")]
    found = dose(rows, {"n0": answers(*[1] * 6), "e4": answers(*[1] * 6), "h4": answers(*[0] * 6)})
    assert [curve["factors"].get("sort") for curve in found["curves"]] == ["easy", "hard", None]
    (pair,) = found["comparisons"]
    assert (pair["factor"], pair["before"], pair["after"]) == ("sort", 1.0, 0.5)
    over = found["curves"][2]
    assert (over["areas"]["em"]["mean"], over["slope"], over["plain"]["cell"]) == (0.5, None, "n0")


def test_citation_f1_of_areas_is_made_of_those_by_precision_and_recall():
    def cited(precision, recall):
        scores = {"em": 1, "citation_precision": precision, "citation_recall": recall}
        return {"q": ScoredQuestion(True, "answered", scores)}

    (found,) = dose(TWO[:2], {"d0": cited(1.0, 0.5), "d4": cited(0.5, 0.0)})["curves"]
    assert found["areas"]["citation_f1"]["mean"] == pytest.approx(2 * 0.75 * 0.25 / (0.75 + 0.25))
    by_it = dose(TWO, {name: cited(1.0, float(name in ("d0", "c0", "c4"))) for name in DOSES}, "citation_f1")
    assert by_it["comparisons"][0]["before"] == pytest.approx(2 * 0.5 / 1.5)
    assert by_it["comparisons"][0]["after"] == 1


def test_a_question_without_a_score_at_a_dose_has_no_area_and_a_note_says_so():
    found = dose(TWO[:2], {"d0": answers(1, 1, 0), "d4": answers(1, None, 0)})
    assert (found["curves"][0]["areas"]["em"]["n"], found["curves"][0]["left_out"]) == (2, {"em": 1})
    assert any(note.endswith("some doses only: em in 1 of 1 areas, up to 1 questions.") for note in found["notes"])


def test_hardness_stands_beside_each_dose_and_a_note_says_where_it_goes_with_the_number():
    reached = {"d0": Reached(), "d4": Reached(0, 0.5), "c0": Reached(), "c4": Reached(0, 0.5)}
    found = dose(TWO, {name: answers(1) for name in DOSES}, reached=reached)
    assert [point["hardness"] for point in found["curves"][0]["points"]] == [None, 0.5]
    assert not any("change together" in note for note in found["notes"])
    rows = [row("n2", "negatives@2"), row("n8", "negatives@8")]
    found = dose(rows, {"n2": answers(1), "n8": answers(1)}, reached={"n2": Reached(0, 0.75), "n8": Reached(0, 0.5)})
    assert any("change together" in note and "by up to 0.25 within one curve" in note for note in found["notes"])


def test_hardness_of_a_dose_is_averaged_over_the_questions_that_have_negatives():
    asked = {"q": Question("q", "Which?", ("gold",), True, mined={
        "a": Mined("dense", (), 0.8, "hard"), "b": Mined("dense", (), 0.4, "easy"),
        "c": Mined("bm25", (), 0.2, "easy")}),
             "p": Question("p", "Which?", ("gold",), True)}
    results = [Shown("q", ("gold", "b", "c")), Shown("p", ("gold",), ("pool:0 of 2",))]
    assert reached_dose(Perturbation.parse("negatives@2"), results, asked) == Reached(1, pytest.approx(0.3))
    assert reached_dose(Perturbation.parse("pool@2"), results, asked) == Reached(1, pytest.approx(0.5))
    assert reached_dose(Perturbation.parse("none"), results[1:], asked) == Reached(1, None)


def test_questions_of_one_document_are_drawn_and_swapped_together():
    pairs = {f"q{at}": f"q{at // 2 * 2}" for at in range(8)}
    (pair,) = dose(TWO, MADE, clusters=pairs)["comparisons"]
    assert (pair["n"], pair["clusters"], pair["p"]) == (8, 4, 2 / 2**4)


def test_without_the_gold_the_curve_is_of_refusals():
    figures = {"em": {"mean": None, "low": None, "high": None, "n": 0},
               "refusal_accuracy": {"mean": 0.5, "low": 0.1, "high": 0.9, "n": 4}}
    rows = [row("g0", "drop_gold", metrics=figures), row("g4", "drop_gold+negatives@4", metrics=figures)]
    made = {id: {f"q{at}": ScoredQuestion(False, "refused", {"em": None, "refusal_accuracy": float(at < refused)})
                 for at in range(4)} for id, refused in (("g0", 4), ("g4", 2))}
    found = dose(rows, made)
    (curve,) = found["curves"]
    assert (curve["factors"]["perturbation"], found["metric"], found["metrics"]) == (
        "drop_gold", "refusal_accuracy", ["refusal_accuracy"])
    assert (curve["areas"]["refusal_accuracy"]["mean"], curve["change"]["difference"]) == (0.75, -0.5)
