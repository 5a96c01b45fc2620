"""Means, intervals and set-level metrics; the published integer checks of the unified score."""
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments import Scored, aggregate, score
from experiments.metrics import outcomes, share_among, share_of


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
    unified = aggregate(rows_of(0, 0, 40, 40, 30, 30, scoring), scoring)["unified"]
    assert (unified["mean"], unified["n"]) == (0.0, 70)
    # all 40 are -1, of -1 to 1, and all 30 are 1, of 0 to 1: half of each split's room
    assert unified["high"] == pytest.approx(1 - 0.025 ** (1 / 40), abs=1e-9)
    assert unified["low"] == pytest.approx(-(1 - 0.025 ** (1 / 30)) / 2, abs=1e-9)


def test_citation_f1_is_the_harmonic_mean_of_the_averages():
    rows = [Row(True, {"citation_precision": 0.4206, "citation_recall": 0.5547})]
    assert round(100 * aggregate(rows)["citation_f1"]["mean"], 2) == 47.84
    two = [Row(True, {"citation_precision": 1.0, "citation_recall": 0.0}),
           Row(True, {"citation_precision": 0.0, "citation_recall": 1.0})]
    assert aggregate(two)["citation_f1"]["mean"] == 0.5
    none = [Row(True, {"citation_precision": 0.0, "citation_recall": 0.0})] * 2
    room = round(1 - 0.025 ** (1 / 2), 10)
    assert aggregate(none)["citation_f1"] == {"mean": 0.0, "low": 0.0, "high": room, "n": 2}


def test_metrics_that_do_not_apply_shrink_n_and_nothing_else():
    figures = aggregate([Row(True, {"em": em, "f1": None}) for em in (1.0, 0.0, None)])
    assert (figures["em"]["mean"], figures["em"]["n"]) == (0.5, 2)
    assert figures["f1"] == {"mean": None, "low": None, "high": None, "n": 0}
    assert aggregate([]) == {}


def test_one_question_has_a_wide_interval():
    assert aggregate([Row(True, {"em": 1.0})])["em"] == {"mean": 1.0, "low": 0.2065493144, "high": 1.0, "n": 1}
    assert aggregate([Row(True, {"f1": 0.5})])["f1"] == {"mean": 0.5, "low": 0.0125, "high": 0.9875, "n": 1}


@pytest.mark.parametrize(("scoring", "refusing", "mean"), [
    ("corrected", True, 0.75), ("as-published", True, 0.375),
    ("corrected", False, 0.75), ("as-published", False, 0.75)])
def test_with_one_split_only_published_halves_it_where_the_rules_offer_a_refusal(scoring, refusing, mean):
    rows = [Row(True, {"unified": 1.0}), Row(True, {"unified": 0.5}), Row(False, {"unified": None})]
    assert aggregate(rows, scoring, refusing=refusing)["unified"]["mean"] == mean


def test_a_sample_without_spread_has_the_room_that_its_range_leaves():
    left = 1 - 0.025 ** (1 / 4)  # Clopper and Pearson's upper limit of none of 4 is 0.6023646
    assert left == pytest.approx(0.6023646, abs=1e-7)
    figures = aggregate([Row(True, {"f1": 0.25, "unified": 0.25, "invalid_citations": 0.0})] * 4)
    assert (figures["f1"]["low"], figures["f1"]["high"]) == (pytest.approx(0.25 - left / 4),
                                                              pytest.approx(0.25 + left * 0.75))
    assert figures["unified"]["low"] == pytest.approx(0.25 - left * 1.25)
    # numbers without an upper bound: the Poisson rate that leaves 0 in 4 with a probability of 0.025
    assert (figures["invalid_citations"]["low"], figures["invalid_citations"]["high"]) == (
        0.0, pytest.approx(0.9222199, abs=1e-6))


def test_questions_of_one_cluster_are_drawn_together():
    rows = [Row(True, {"f1": at // 5 / 5, "em": float(at % 10 < 5)}) for at in range(30)]
    apart, together = aggregate(rows), aggregate(rows, clusters=[str(at // 5) for at in range(30)])
    for name in ("f1", "em"):
        assert together[name]["mean"] == apart[name]["mean"]
        assert together[name]["high"] - together[name]["low"] > 1.8 * (apart[name]["high"] - apart[name]["low"])
    assert aggregate(rows, clusters=[str(at) for at in range(30)]) == apart
    assert aggregate(rows[::-1], clusters=[f"x{at // 5}" for at in range(29, -1, -1)]) == together


def test_a_share_of_clusters_without_spread_is_of_as_many_as_there_are():
    rows = [Row(True, {"em": 0.0})] * 20
    assert aggregate(rows, clusters=[str(at // 2) for at in range(20)])["em"]["high"] == \
        pytest.approx(share_of(0, 10)["high"])
    assert share_among([False] * 20, [str(at // 2) for at in range(20)])["high"] == share_of(0, 10)["high"]
    assert share_among([True, False], ["a", "b"]) == share_of(1, 2)


def test_equal_rows_give_equal_figures_in_any_order_and_the_seed_matters():
    rows = [Row(at % 3 > 0, {"f1": at / 40, "unified": float(at % 2)}) for at in range(40)]
    assert aggregate(rows, seed=1) == aggregate(rows[::-1], seed=1)
    assert aggregate(rows, seed=1) != aggregate(rows, seed=2)


def test_every_outcome_is_counted():
    rows = [Row(True), Row(True, outcome="timeout"), Row(False, outcome="timeout")]
    assert outcomes(rows) == {"answered": 1, "refused": 0, "malformed": 0, "too_long": 0, "budget": 0, "timeout": 2,
                              "error": 0}


@given(st.lists(st.tuples(st.just(True), st.none() | st.floats(-1, 1))
                | st.tuples(st.just(False), st.none() | st.floats(0, 1)), max_size=20))
def test_intervals_hold_numbers_within_the_scores(pairs):
    rows = [Row(answerable, {"unified": value}) for answerable, value in pairs]
    figure = aggregate(rows, resamples=30).get("unified", {"n": 0})
    values = [value for _, value in pairs if value is not None]
    assert figure["n"] == len(values)
    if values:
        assert -1 <= figure["low"] < figure["high"] <= 1
        assert figure["low"] - 1e-9 <= figure["mean"] <= figure["high"] + 1e-9 or len(values) > 2
