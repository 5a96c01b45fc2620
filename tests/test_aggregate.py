"""Means, intervals and set-level metrics; the published integer checks of the unified score."""
import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.metrics import Scored, aggregate, outcomes, score


@dataclass
class Row:
    answerable: bool
    scores: dict = field(default_factory=dict)
    outcome: str = "answered"


REFUSED = {"outcome": "refused", "text": "It is unanswerable.", "refused": True, "grade": "Wrong"}


def rows_of(correct, partial, wrong, refused_wrong, unanswerable, refused, scoring):
    answer = {"outcome": "answered", "text": "x"}
    answerable = [
        (correct, answer | {"grade": "Correct"}), (partial, answer | {"grade": "Partially Correct"}),
        (wrong - refused_wrong, answer | {"grade": "Wrong"}), (refused_wrong, REFUSED)]
    rows = [Row(True, score(Scored(answerable=True, answers=("x",), **kind), scoring))
            for count, kind in answerable for _ in range(count)]
    return rows + [Row(False, score(Scored(answerable=False, **kind), scoring)) for count, kind in
                   ((refused, REFUSED), (unanswerable - refused, answer)) for _ in range(count)]


@pytest.mark.parametrize("scoring", ["corrected", "as-published"])
@pytest.mark.parametrize(("counts", "expected"), [
    ((315, 130, 81, 28, 522, 109), 0.4390),
    ((315, 130, 81, 27, 522, 109), 0.4400),
    ((315, 130, 81, 29, 522, 109), 0.4381),
    ((338, 302, 66, 22, 491, 113), 0.4458),
])
def test_the_published_unified_scores(counts, expected, scoring):
    unified = aggregate(rows_of(*counts, scoring), scoring, resamples=50)["unified"]
    assert round(unified["mean"], 4) == expected
    assert unified["n"] == sum(counts[:3]) + counts[4]
    assert unified["low"] < unified["mean"] < unified["high"]


@pytest.mark.parametrize("scoring", ["corrected", "as-published"])
def test_always_refusing_scores_zero(scoring):
    assert aggregate(rows_of(0, 0, 40, 40, 30, 30, scoring), scoring)["unified"] == \
        {"mean": 0.0, "low": None, "high": None, "n": 70}


def test_citation_f1_is_the_harmonic_mean_of_the_averages():
    rows = [Row(True, {"citation_precision": 0.4206, "citation_recall": 0.5547})]
    assert round(100 * aggregate(rows)["citation_f1"]["mean"], 2) == 47.84
    two = [Row(True, {"citation_precision": 1.0, "citation_recall": 0.0}),
           Row(True, {"citation_precision": 0.0, "citation_recall": 1.0})]
    assert aggregate(two)["citation_f1"]["mean"] == 0.5
    none = [Row(True, {"citation_precision": 0.0, "citation_recall": 0.0})] * 2
    assert aggregate(none)["citation_f1"] == {"mean": 0.0, "low": None, "high": None, "n": 2}


def test_metrics_that_do_not_apply_shrink_n_and_nothing_else():
    figures = aggregate([Row(True, {"em": em, "f1": None}) for em in (1.0, 0.0, None)])
    assert (figures["em"]["mean"], figures["em"]["n"]) == (0.5, 2)
    assert figures["f1"] == {"mean": None, "low": None, "high": None, "n": 0}
    assert aggregate([]) == {}


def test_one_question_has_no_interval():
    assert aggregate([Row(True, {"em": 1.0})])["em"] == {"mean": 1.0, "low": None, "high": None, "n": 1}


def test_with_one_split_only_corrected_takes_it_and_published_halves_it():
    rows = [Row(True, {"unified": 1.0}), Row(True, {"unified": 0.5})]
    assert aggregate(rows)["unified"]["mean"] == 0.75
    assert aggregate(rows, "as-published")["unified"]["mean"] == 0.375


def test_the_unified_score_of_rules_without_a_refusal_is_that_of_the_answerable_in_any_scoring():
    rows = [Row(True, {"unified": 1.0}), Row(True, {"unified": 0.5}), Row(False, {"unified": None})]
    for scoring in ("corrected", "as-published"):
        assert aggregate(rows, scoring, refusing=False)["unified"]["mean"] == 0.75


@pytest.mark.parametrize(("right", "n", "low", "high"), [
    (0, 10, 0.0, 0.2775328), (10, 10, 0.7224672, 1.0), (0, 2, 0.0, 0.6576198), (40, 100, 0.3094013, 0.4979974)])
def test_the_interval_of_a_share_is_wilsons(right, n, low, high):
    figure = aggregate([Row(True, {"em": float(at < right)}) for at in range(n)])["em"]
    assert (figure["low"], figure["high"]) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))


def test_a_sample_without_spread_and_a_split_of_one_question_have_no_bootstrap_interval():
    same = [Row(True, {"f1": 0.5, "unified": 0.5})] * 4
    one = [Row(False, {"f1": 0.1, "unified": 1.0}), *(Row(True, {"f1": at / 4, "unified": at / 4}) for at in range(4))]
    for rows in (same, one):
        assert [(figure["low"], figure["high"]) for figure in aggregate(rows).values()] == [(None, None)] * 2
    two = aggregate([*one, Row(False, {"f1": 0.0, "unified": 0.0})])
    assert two["unified"]["low"] < two["unified"]["mean"] < two["unified"]["high"]


def test_equal_rows_give_equal_figures_in_any_order_and_the_seed_matters():
    rows = [Row(at % 3 > 0, {"f1": at / 40, "unified": float(at % 2)}) for at in range(40)]
    assert aggregate(rows, seed=1) == aggregate(rows[::-1], seed=1)
    assert aggregate(rows, seed=1) != aggregate(rows, seed=2)


def test_citation_f1_stands_after_recall_in_view():
    rows = [Row(True, {"citation_precision": 1.0, "citation_recall": 1.0, "citation_recall_in_view": None, "em": 1.0})]
    assert list(aggregate(rows)) == ["citation_precision", "citation_recall", "citation_recall_in_view", "citation_f1",
                                     "em"]


def test_every_outcome_is_counted():
    rows = [Row(True), Row(True, outcome="timeout"), Row(False, outcome="timeout")]
    assert outcomes(rows) == {"answered": 1, "refused": 0, "malformed": 0, "too_long": 0, "budget": 0, "timeout": 2,
                              "error": 0}


@given(st.lists(st.tuples(st.booleans(), st.none() | st.floats(-1, 1)), max_size=20))
def test_intervals_hold_numbers_within_the_scores(pairs):
    rows = [Row(answerable, {"unified": value}) for answerable, value in pairs]
    figure = aggregate(rows, resamples=30).get("unified", {"n": 0})
    values = [value for _, value in pairs if value is not None]
    assert figure["n"] == len(values)
    if figure.get("low") is not None:
        assert figure["low"] < figure["high"]
        assert min(values) - 1e-9 <= figure["low"] <= figure["high"] <= max(values) + 1e-9


def test_ten_thousand_questions_take_seconds():
    item = Scored("answered", True, "Tybalt [1]", answers=("Tybalt",), grade="Correct", cited=(1,),
                  hits={1: frozenset({0})}, gold_total=2)
    started = time.process_time()
    rows = [Row(at % 2 == 0, score(item)) for at in range(10_000)]
    aggregate(rows)
    assert time.process_time() - started < 10
