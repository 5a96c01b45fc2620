"""Means, intervals and set-level metrics; figures of the papers that follow from their own formulas and counts."""

import math

import pytest
from factored import Row
from hypothesis import given
from hypothesis import strategies as st

from ragbed.experiments import Scored, Sub, aggregate, score
from ragbed.experiments.metrics import (
    calibration_error,
    chain_pattern,
    count_outcomes,
    estimate_clustered_share,
    estimate_share,
)

REFUSED = {"outcome": "refused", "text": "It is unanswerable.", "refused": True, "grade": "Wrong"}


def rows_of(correct, partial, wrong, refused_wrong, unanswerable, refused, scoring):
    answer = {"outcome": "answered", "text": "x"}
    answerable = [
        (correct, answer | {"grade": "Correct"}), (partial, answer | {"grade": "Partially Correct"}),
        (wrong - refused_wrong, answer | {"grade": "Wrong"}), (refused_wrong, REFUSED)]
    rows = [Row(score(Scored(answerable=True, answers=("x",), **kind), scoring))
            for count, kind in answerable for _ in range(count)]
    return rows + [Row(score(Scored(answerable=False, **kind), scoring), False) for count, kind in
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
    rows = [Row({"citation_precision": 0.4206, "citation_recall": 0.5547})]
    assert round(100 * aggregate(rows)["citation_f1"]["mean"], 2) == 47.84
    two = [Row({"citation_precision": 1.0, "citation_recall": 0.0}),
           Row({"citation_precision": 0.0, "citation_recall": 1.0})]
    assert aggregate(two)["citation_f1"]["mean"] == 0.5
    none = [Row({"citation_precision": 0.0, "citation_recall": 0.0})] * 2
    room = round(1 - 0.025 ** (1 / 2), 10)
    assert aggregate(none)["citation_f1"] == {"mean": 0.0, "low": 0.0, "high": room, "n": 2}


def test_metrics_that_do_not_apply_shrink_n_and_nothing_else():
    figures = aggregate([Row({"em": em, "f1": None}) for em in (1.0, 0.0, None)])
    assert (figures["em"]["mean"], figures["em"]["n"]) == (0.5, 2)
    assert figures["f1"] == {"mean": None, "low": None, "high": None, "n": 0}
    assert aggregate([]) == {}


def test_one_question_has_a_wide_interval():
    assert aggregate([Row({"em": 1.0})])["em"] == {"mean": 1.0, "low": 0.2065493144, "high": 1.0, "n": 1}
    assert aggregate([Row({"f1": 0.5})])["f1"] == {"mean": 0.5, "low": 0.0125, "high": 0.9875, "n": 1}


@pytest.mark.parametrize(("scoring", "refusing", "mean"), [
    ("corrected", True, 0.75), ("as-published", True, 0.375),
    ("corrected", False, 0.75), ("as-published", False, 0.75)])
def test_with_one_split_only_published_halves_it_where_the_rules_offer_a_refusal(scoring, refusing, mean):
    rows = [Row({"unified": 1.0}), Row({"unified": 0.5}), Row({"unified": None}, False)]
    assert aggregate(rows, scoring, refusing=refusing)["unified"]["mean"] == mean


def test_a_sample_without_spread_has_the_room_that_its_range_leaves():
    left = 1 - 0.025 ** (1 / 4)  # Clopper and Pearson's upper limit of none of 4 is 0.6023646
    assert left == pytest.approx(0.6023646, abs=1e-7)
    figures = aggregate([Row({"f1": 0.25, "unified": 0.25, "invalid_citations": 0.0})] * 4)
    assert (figures["f1"]["low"], figures["f1"]["high"]) == (pytest.approx(0.25 - left / 4),
                                                              pytest.approx(0.25 + left * 0.75))
    assert figures["unified"]["low"] == pytest.approx(0.25 - left * 1.25)
    # numbers without an upper bound: the Poisson rate that leaves 0 in 4 with a probability of 0.025
    assert (figures["invalid_citations"]["low"], figures["invalid_citations"]["high"]) == (
        0.0, pytest.approx(0.9222199, abs=1e-6))


def test_questions_of_one_cluster_are_drawn_together():
    rows = [Row({"f1": at // 5 / 5, "em": float(at % 10 < 5)}) for at in range(30)]
    apart, together = aggregate(rows), aggregate(rows, clusters=[str(at // 5) for at in range(30)])
    for name in ("f1", "em"):
        assert together[name]["mean"] == apart[name]["mean"]
        assert together[name]["high"] - together[name]["low"] > 1.8 * (apart[name]["high"] - apart[name]["low"])
    assert aggregate(rows, clusters=[str(at) for at in range(30)]) == apart
    assert aggregate(rows[::-1], clusters=[f"x{at // 5}" for at in range(29, -1, -1)]) == together


def test_a_share_of_clusters_without_spread_is_of_as_many_as_there_are():
    rows = [Row({"em": 0.0})] * 20
    assert aggregate(rows, clusters=[str(at // 2) for at in range(20)])["em"]["high"] == \
        pytest.approx(estimate_share(0, 10)["high"])
    assert estimate_clustered_share([False] * 20, [str(at // 2) for at in range(20)])["high"] == estimate_share(0,
                                                                                                                10)["high"]
    assert estimate_clustered_share([True, False], ["a", "b"]) == estimate_share(1, 2)


def test_equal_rows_give_equal_figures_in_any_order_and_the_seed_matters():
    rows = [Row({"f1": at / 40, "unified": float(at % 2)}, at % 3 > 0) for at in range(40)]
    assert aggregate(rows, seed=1) == aggregate(rows[::-1], seed=1)
    assert aggregate(rows, seed=1) != aggregate(rows, seed=2)


def test_every_outcome_is_counted():
    rows = [Row({}), Row({}, outcome="timeout"), Row({}, False, outcome="timeout")]
    assert count_outcomes(rows) == {"answered": 1, "refused": 0, "malformed": 0, "too_long": 0, "budget": 0,
                                    "timeout": 2,
                              "error": 0}


@given(st.lists(st.tuples(st.just(True), st.none() | st.floats(-1, 1))
                | st.tuples(st.just(False), st.none() | st.floats(0, 1)), max_size=20))
def test_intervals_hold_numbers_within_the_scores(pairs):
    rows = [Row({"unified": value}, answerable) for answerable, value in pairs]
    figure = aggregate(rows, resamples=30).get("unified", {"n": 0})
    values = [value for _, value in pairs if value is not None]
    assert figure["n"] == len(values)
    if values:
        assert -1 <= figure["low"] < figure["high"] <= 1
        assert figure["low"] - 1e-9 <= figure["mean"] <= figure["high"] + 1e-9 or len(values) > 2


OPTIONS = (("A", "yes"), ("B", "no"))
# MRCEval, Table 2: questions of each sub-task and GPT-4o's accuracy in percent.
GPT_4O = {
    "Context": [("entity", 132, 90.9), ("relation", 110, 38.2), ("event", 28, 46.4), ("counterfactual", 200, 12.0),
                ("unanswerable", 200, 75.0), ("inconsistent", 200, 35.5)],
    "Knowledge": [("commonsense", 200, 58.5), ("world", 200, 47.5), ("domain", 200, 41.5)],
    "Reasoning": [("logical", 184, 58.2), ("arithmetic", 200, 66.0), ("multi-hop", 200, 81.5),
                  ("temporal", 200, 71.5)]}
# MRKE, Table 5: per mille of the 300 questions with two hops, by (first sub-answer, second, final answer).
PATTERNS = [(True, True, True), (True, True, False), (True, False, True), (True, False, False),
            (False, True, True), (False, True, False), (False, False, True), (False, False, False)]
TABLE_5 = {"GPT-4": (363, 123, 20, 253, 57, 37, 3, 143), "GPT-3.5": (133, 93, 67, 243, 37, 37, 73, 317),
           "Bing Chat": (283, 77, 60, 163, 23, 30, 50, 313)}


def chosen(count, percent):
    right = round(count * percent / 100)
    assert abs(100 * right / count - percent) < 0.06
    return [Row(score(Scored("answered", True, f"({'A' if at < right else 'B'})", answers=("A",), options=OPTIONS,
                             rules="choice"), groups=("choice",))) for at in range(count)]


def test_mrcevals_averages_are_over_questions():
    tasks = {task: [row for _, count, percent in subtasks for row in chosen(count, percent)]
             for task, subtasks in GPT_4O.items()}
    everything = [row for rows in tasks.values() for row in rows]
    shown = [round(100 * aggregate(rows, resamples=2)["accuracy"]["mean"], 1) for rows in (*tasks.values(), everything)]
    assert shown == [48.3, 49.2, 69.5, 55.9]
    assert len(everything) == 2254


@pytest.mark.parametrize("scoring", ["corrected", "as-published"])
@pytest.mark.parametrize(("accuracy", "reasoning", "gm"), [(73.99, 27.43, 45.05), (40.58, 22.08, 29.93)])
def test_detectiveqas_gm(accuracy, reasoning, gm, scoring):
    rows = [Row({"accuracy": accuracy / 100, "reasoning_score": reasoning / 100})]
    assert round(100 * aggregate(rows, scoring)["gm"]["mean"], 2) == gm


def patterned(model):
    def item(first, second, final):
        said = ["x" if right else "y" for right in (first, second, final)]
        return Scored("answered", True, said[2], answers=("x",),
                      subs=tuple(Sub("answered", text, "x") for text in said[:2]))
    counts = [round(300 * share / 1000) for share in TABLE_5[model]]
    assert sum(counts) == 300
    return [item(*pattern) for count, pattern in zip(counts, PATTERNS, strict=True) for _ in range(count)]


@pytest.mark.parametrize(("model", "expected"), [("GPT-4", 1.52), ("GPT-3.5", 2.44), ("Bing Chat", 1.95)])
def test_mrkes_joint_em_at_two_hops(model, expected):
    items = patterned(model)
    rows = [Row(score(item, "as-published", ("overlap", "chain"))) for item in items]
    figures = aggregate(rows, "as-published")
    assert round(figures["joint_em_log"]["mean"], 2) == expected
    assert figures["joint_em_log"]["low"] < expected < figures["joint_em_log"]["high"]
    assert figures["joint_em_log"]["n"] == 300


def test_mrkes_shares_of_right_and_lucky_answers():
    items = patterned("GPT-3.5")
    rows = [Row(score(item, groups=("overlap", "chain"))) for item in items]
    figures = aggregate(rows, resamples=2)
    assert round(100 * figures["chain_correct"]["mean"], 1) == 13.3
    assert round(100 * figures["lucky"]["mean"], 1) == 17.7
    assert [chain_pattern(row.scores) for row in rows].count((True, False, False)) == 73
    assert "joint_em_log" not in figures


def test_calibration_error_is_the_root_mean_square_difference_over_bins_of_100_sorted_answers():
    low, high = [(0.2, 1.0)] * 50 + [(0.2, 0.0)] * 50, [(0.9, 1.0)] * 80 + [(0.9, 0.0)] * 70
    sure, right = zip(*high, *low, strict=True)
    assert calibration_error(sure[:99], right[:99]) is None
    # bins of 100 (0.2 sure, 0.5 right) and 150 (0.9 sure, 80 of 150 right)
    assert calibration_error(sure, right) == pytest.approx(math.sqrt(0.4 * 0.3**2 + 0.6 * (0.9 - 80 / 150) ** 2))
    assert calibration_error(sure, right, as_published=True) == pytest.approx(math.sqrt(0.4 * 0.3**2))
