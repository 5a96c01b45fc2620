"""Dose and response: curves over the number and the hardness of negatives, and the areas under them."""
from __future__ import annotations

import pytest

from experiments.comparing.variants import Averaged, variants_of
from experiments.dose import dose_of
from experiments.dose.area import area
from experiments.dose.curves import curves_of
from experiments.statistics import Clusters


def row(id, perturbation, **levels):
    return {"id": id, "benchmark": "b", "model": "m", "reasoning": "direct", "retrieval": None, "retriever": None,
            "rules": "grounded", "condition": "evidence", "perturbation": perturbation, "show": "question",
            "format": None, "repeat": 0, "seed": None, "metrics": {}, **levels}


def answers(*scores):
    return {f"q{at}": Averaged(True, "answered", {"em": score}) for at, score in enumerate(scores)}


def curves(*rows):
    return [(curve.axis, curve.held, curve.doses, [cell.row["id"] for cell in curve.cells])
            for curve in curves_of(variants_of(list(rows), {}))]


def test_an_area_is_the_mean_height_over_the_range_of_doses():
    assert area((0, 2, 10), (1, 1, 1)) == 1
    assert area((0, 10), (1, 0)) == 0.5
    assert area((0, 2, 10), (1.0, 0.5, 0.5)) == pytest.approx((0.75 * 2 + 0.5 * 8) / 10)


def test_cells_that_differ_in_the_number_alone_are_a_curve_that_begins_with_none():
    assert curves(row("n5", "negatives@5"), row("n0", None), row("n2", "negatives@2")) == [
        ("negatives", "negatives", (0, 2, 5), ["n0", "n2", "n5"])]


def test_each_sort_is_a_curve_of_its_own_and_begins_with_none_too():
    found = curves(row("n0", None), row("h2", "negatives@2:hard"), row("e2", "negatives@2:easy"))
    assert found == [("negatives", "negatives:hard", (0, 2), ["n0", "h2"]),
                     ("negatives", "negatives:easy", (0, 2), ["n0", "e2"]),
                     ("hardness", "negatives@2", (0, 2), ["e2", "h2"])]


def test_what_is_searched_has_no_dose_of_none():
    found = curves(row("n0", None, condition="retrieved", retriever="bm25"),
                   row("a5", "among@5", condition="retrieved", retriever="bm25"),
                   row("a9", "among@9", condition="retrieved", retriever="bm25"))
    assert found == [("negatives", "among", (5, 9), ["a5", "a9"])]


def test_cells_that_differ_in_more_are_apart():
    assert curves(row("n0", None), row("c5", "negatives@5", reasoning="chain_of_thought")) == []
    assert curves(row("n0", None), row("s5", "shuffle+negatives@5")) == []
    assert curves(row("n0", "shuffle"), row("s5", "shuffle+negatives@5")) == [
        ("negatives", "negatives", (0, 5), ["n0", "s5"])]


def test_areas_are_of_questions_and_curves_are_compared_by_them():
    names = ("d0", "d4", "c0", "c4")
    rows = [row(name, "negatives@4" if name[1] == "4" else None,
                reasoning="direct" if name[0] == "d" else "chain_of_thought") for name in names]
    made = {"d0": answers(*[1] * 8), "d4": answers(*[0] * 8), "c0": answers(*[1] * 8), "c4": answers(*[1] * 8)}
    found = dose_of(rows, made, Clusters({}, None), "em", "corrected")
    direct, chained = found["curves"]
    assert direct["areas"]["em"]["mean"] == 0.5
    assert chained["areas"]["em"]["mean"] == 1.0
    assert (direct["areas"]["em"]["n"], chained["factors"]["reasoning"]) == (8, "chain_of_thought")
    (pair,) = found["comparisons"]
    assert (pair["factor"], pair["first"], pair["second"]) == ("reasoning", 0, 1)
    assert pair["difference"] == pytest.approx(0.5)
    assert pair["p"] == pytest.approx(2 / 2**8, abs=1e-3)


def test_a_question_without_a_score_at_a_dose_has_no_area_and_a_note_says_so():
    rows = [row("n0", None), row("n4", "negatives@4")]
    found = dose_of(rows, {"n0": answers(1, 1, 0), "n4": answers(1, None, 0)}, Clusters({}, None), "em", "corrected")
    assert found["curves"][0]["areas"]["em"]["n"] == 2
    assert any("leave out questions" in note for note in found["notes"])


def test_a_run_without_doses_has_no_curve():
    assert dose_of([row("n0", None)], {"n0": answers(1)}, Clusters({}, None), "em", "corrected") is None
