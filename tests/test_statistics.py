"""Paired tests, intervals, effect sizes and clusters, by hand-computed figures."""
import math

import numpy as np
import pytest
from factored import Row

from ragbed.experiments import Gold, Question, aggregate
from ragbed.experiments.formatting import detectable, verdict
from ragbed.experiments.metrics.intervals import effective_units
from ragbed.experiments.statistics import (
    cluster_questions,
    compare,
    holm,
    mcnemar,
    mcnemar_power,
    pair_scores,
    permutation,
    planned_difference,
    share_difference_interval,
    smallest_difference,
    smallest_share_difference,
)


def cell(metric, values, unanswerable=()):
    rows = [Row({metric: value}) for value in values] + [Row({metric: value}, False) for value in unanswerable]
    return {f"q{place}": row for place, row in enumerate(rows)}


def test_holm_multiplies_the_smallest_most_and_never_falls():
    assert holm([0.01, 0.04, 0.03, None, 0.005]) == [pytest.approx(0.03), pytest.approx(0.06), pytest.approx(0.06),
                                                     None, pytest.approx(0.02)]
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([None]) == [None]


def test_few_pairs_are_swapped_in_every_way():
    assert permutation(pair_scores("f1", cell("f1", [0, 0, 0]), cell("f1", [0.1, 0.2, 0.3]), {})) == 2 / 8
    assert permutation(pair_scores("f1", cell("f1", [0, 0, 0, 0.5]), cell("f1", [0.1, 0.2, 0.3, 0.5]), {})) == 2 / 8
    assert permutation(pair_scores("f1", cell("f1", [0, 0, 0.3]), cell("f1", [0.1, 0.2, 0]), {})) == 1.0
    assert permutation(pair_scores("f1", cell("f1", [0.5]), cell("f1", [0.5]), {})) == 1.0


def test_many_pairs_are_swapped_at_random_the_same_each_time():
    pairs = pair_scores("f1", cell("f1", [0.0] * 20), cell("f1", [0.5] * 19 + [0.0]), {})
    assert permutation(pairs) == permutation(pairs) == 1 / 10_000
    assert permutation(pairs, swaps=99) == 1 / 100


def test_unified_is_swapped_within_the_splits_and_has_the_tables_statistic():
    first, second = cell("unified", [0, 0], [0]), cell("unified", [1, 0.5], [1])
    made, = compare([pair_scores("unified", first, second, {})])
    assert (made.before, made.after) == (0, 0.875)
    assert made.after == aggregate(list(second.values()))["unified"]["mean"]
    assert made.p == 2 / 8
    assert (made.gained, made.lost) == (3, 0)


def test_a_metric_of_sets_is_compared_by_its_own_formula():
    first = {f"q{n}": Row({"citation_precision": 0.5, "citation_recall": 1.0}) for n in range(2)}
    second = {f"q{n}": Row({"citation_precision": 1.0, "citation_recall": 1.0}) for n in range(2)}
    made, = compare([pair_scores("citation_f1", first, second, {})])
    assert (made.before, made.after, made.p) == (pytest.approx(2 / 3), 1.0, 0.5)
    assert (made.gained, made.lost, made.dz, made.odds) == (None, None, None, None)


def test_a_metric_that_rests_on_two_is_of_the_questions_that_have_both():
    first = {"a": Row({"accuracy": 1.0, "reasoning_score": 1.0}), "b": Row({"accuracy": 0.0, "reasoning_score": None})}
    made, = compare([pair_scores("gm", first, first, {})])
    assert (made.n, made.before, made.unpaired) == (1, 1.0, 0)


def test_shares_have_an_exact_test_flips_both_ways_and_odds():
    first, second = cell("em", [0] * 8 + [1] * 12), cell("em", [1] * 8 + [0] + [1] * 11)
    made, = compare([pair_scores("em", first, second, {})])
    assert (made.gained, made.lost, made.odds, made.test) == (8, 1, pytest.approx(8.5 / 1.5), "McNemar")
    assert made.p == pytest.approx(20 / 512)
    assert made.difference == 0.35
    assert made.dz is None


def test_the_interval_of_shares_has_a_width_without_any_flip():
    low, high = share_difference_interval(0, 0, 98)  # sqrt(0.02 / 100) is 0.0141421
    assert (low, high) == (pytest.approx(-0.0277181, abs=1e-6), pytest.approx(0.0277181, abs=1e-6))
    assert share_difference_interval(0, 0, 0) == (None, None)


def test_an_interval_holds_0_where_the_test_finds_no_difference():
    assert share_difference_interval(9, 2, 20).low > 0
    made, = compare([pair_scores("em", cell("em", [0] * 9 + [1] * 2 + [0] * 9), cell("em", [1] * 9 + [0] * 11), {})])
    # the quantile of p / 2 is 1.8425, and 0.35 x (1 - 1.95996 / 1.8425) is -0.0223
    assert (made.p, made.low) == (pytest.approx(0.0654, abs=1e-4), pytest.approx(-0.0223, abs=1e-4))
    assert made.high > made.difference
    made, = compare([pair_scores("f1", cell("f1", [0.0] * 100), cell("f1", [0.5] * 5 + [0.0] * 95), {})])
    assert (made.p, made.low) == (2 / 32, pytest.approx(0.025 * (1 - 1.95996 / 1.86273), abs=1e-5))


def test_dz_of_unified_weighs_the_splits_as_its_figure_does():
    first = cell("unified", [0.5] * 4, [0, 0])
    made, = compare([pair_scores("unified", first, cell("unified", [0.5, 0.5, 0, 0], [1, 1]), {})])
    assert made.difference == 0.375  # -0.25 and 1
    spread = (2 * 0.375**2 + 2 * 0.875**2) / 8 + 2 * 0.625**2 / 4
    assert made.dz == pytest.approx(0.375 / (spread / (1 - 4 / 64 - 2 / 16)) ** 0.5)


def test_where_the_test_can_find_nothing_no_difference_is_named_that_it_could():
    found, *_ = compare([pair_scores("f1", cell("f1", [0] * 5), cell("f1", [0.9, 0.91, 0.92, 0.88, 0.89]), {})])
    assert (found.p, found.smallest) == (2 / 32, None)
    assert verdict(found) == "not significant"
    assert detectable(found) == "none (too few)"
    pairs = pair_scores("f1", cell("f1", [0] * 6), cell("f1", [0.9, 0.91, 0.92, 0.88, 0.89, -0.2]), {})
    assert compare([pairs])[0].smallest > 0
    assert [one.smallest for one in compare([pairs, pairs])] == [None, None]
    assert planned_difference("f1", 5) is planned_difference("f1", 6, comparisons=2) is None
    assert planned_difference("em", 40, clusters=[(8, 0)] * 5) is None


def test_what_one_cell_alone_has_is_counted():
    first = {"a": Row({"em": 1.0}), "b": Row({"em": None}), "c": Row({"em": 0.0}), "d": Row({"em": None})}
    second = {"a": Row({"em": 1.0}), "b": Row({"em": 1.0}), "d": Row({"em": None}), "e": Row({"em": 1.0})}
    pairs = pair_scores("em", first, second, {})
    assert (pairs.questions, pairs.unpaired) == (("a",), 3)


def test_a_question_whose_gold_one_cell_dropped_is_no_pair_of_unified():
    first, second = {"a": Row({"unified": 1.0, "accuracy": 1.0})}, {"a": Row({"unified": 1.0, "accuracy": 0.0}, False)}
    assert pair_scores("unified", first, second, {}).unpaired == 1
    pairs = pair_scores("accuracy", first, second, {})
    assert (pairs.n, pairs.observed()) == (1, (1.0, 0.0))


def test_nothing_in_common_has_no_figures():
    made, = compare([pair_scores("em", cell("em", [1, 0]), {}, {})])
    assert (made.n, made.before, made.difference, made.low, made.p, made.p_holm, made.smallest) == (0, *[None] * 6)


def test_questions_over_one_document_are_swapped_together():
    first, second = cell("em", [0] * 10), cell("em", [1] * 10)
    assert compare([pair_scores("em", first, second, {})])[0].p == pytest.approx(2 / 1024)
    two = {f"q{place}": f"document {place // 5}" for place in range(10)}
    made, = compare([pair_scores("em", first, second, two)])
    assert (made.test, made.clusters, made.n, made.p) == ("permutation", 2, 10, 0.5)


def question(id, *documents):
    return Question(id, "?", ("x",), True, gold=tuple(Gold(name) for name in documents))


def test_questions_that_share_a_gold_document_are_one_cluster():
    many = [question(f"s{n}", f"own {n}") for n in range(12)]
    found = cluster_questions([question("a", "x", "y"), question("b", "y"), question("c", "novel#1"), question("d",
                                                                                                               "novel#2"),
                      question("e"), question("f"), *many], "document")
    assert "new documents if these 14 are typical. 2 questions without one" in found.note
    groups = {}
    for name, cluster in found.of.items():
        groups.setdefault(cluster, set()).add(name)
    assert [group for group in groups.values() if len(group) > 1] == [{"a", "b"}, {"c", "d"}]


def test_a_collection_that_hangs_together_is_clustered_by_the_first_document():
    chain = [question(f"q{n}", f"d{n // 2}", f"d{n // 2 + 1}") for n in range(40)]
    found = cluster_questions(chain, "document")
    assert "Only the first gold document counts" in found.note
    assert len(set(found.of.values())) == 20


def test_the_smallest_difference_is_none_where_no_test_could_find_one():
    assert smallest_share_difference(5) is None  # five flips one way have a p of 0.0625
    assert mcnemar_power(6, 1.0) == pytest.approx(1.0)
    assert smallest_share_difference(6, 0.0) > 0.9
    assert smallest_difference(0.5, 1, 0) is None
    assert planned_difference("unified", 1, 1) is None
    assert smallest_share_difference(0) is None


def test_more_comparisons_need_larger_differences():
    assert smallest_share_difference(100) < smallest_share_difference(100, comparisons=10)
    assert planned_difference("f1", 100) < planned_difference("f1", 100, comparisons=10)
    assert planned_difference("em", 100) == smallest_share_difference(100)
    assert planned_difference("unified", 50, 50) == pytest.approx(planned_difference("f1", 100), rel=0.01)


def test_questions_that_share_documents_detect_less():
    assert planned_difference("f1", 210, clusters=[(7, 0)] * 30) == pytest.approx(
        smallest_difference((0.25 * (1 + 6 * 0.2) / 210) ** 0.5, 210, 209), rel=0.04)  # but for 29 degrees of freedom
    assert planned_difference("f1", 210, clusters=[(1, 0)] * 210) == planned_difference("f1", 210)
    assert planned_difference("em", 210, clusters=[(7, 0)] * 30) == planned_difference("f1", 210, clusters=[(7,
                                                                                                             0)] * 30)
    assert planned_difference("unified", 60, 60, clusters=[(4, 0), (0, 4)] * 15) < planned_difference("unified", 60, 60,
                                                                               clusters=[(4, 4)] * 15)


def test_as_published_and_corrected_agree_with_the_tables_means():
    first, second = cell("unified", [1, -1, 0.5]), cell("unified", [1, 1, 0.5])
    for scoring, refusing in (("corrected", True), ("as-published", True), ("as-published", False)):
        made, = compare([pair_scores("unified", first, second, {}, scoring, refusing)])
        means = [aggregate(list(rows.values()), scoring, refusing=refusing)["unified"]["mean"]
                 for rows in (first, second)]
        assert [made.before, made.after] == means


def chained(final, first, second):
    joint = final * first * second
    return {"em": final, "sub_em@1": first, "sub_em@2": second, "joint_em": joint, "joint_f1": joint}


def test_the_published_log_of_a_chain_is_compared_and_has_no_interval_where_a_resample_has_none():
    before = {f"q{n}": Row(chained(1.0, 1.0, float(n % 2))) for n in range(4)}
    after = {f"q{n}": Row(chained(1.0, 1.0, 1.0)) for n in range(4)}
    made, = compare([pair_scores("joint_em_log", before, after, {}, "as-published")])
    assert (made.before, made.after) == (pytest.approx(math.log(2.5)), pytest.approx(math.log(1.5)))
    assert (made.n, made.low, made.high, made.p) == (4, None, None, 0.5)
    nothing, = compare([pair_scores("joint_em_log", before, after, {})])
    assert (nothing.n, nothing.before) == (0, None)


@pytest.mark.slow
def test_the_formulas_are_those_of_the_libraries():
    from scipy.stats import permutation_test
    from statsmodels.stats.contingency_tables import mcnemar as table_test
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.power import TTestPower
    from statsmodels.stats.proportion import proportion_confint

    for right, n in ((0, 2), (0, 3), (7, 20), (40, 100), (98, 98)):
        share = aggregate([Row({"em": float(at < right)}) for at in range(n)])["em"]
        assert (share["low"], share["high"]) == pytest.approx(proportion_confint(right, n, method="wilson"), abs=1e-9)
    for gained, lost in ((0, 0), (3, 3), (0, 5), (8, 1), (30, 44)):
        assert mcnemar(gained, lost) == pytest.approx(table_test([[9, gained], [lost, 9]], exact=True).pvalue)
    tests = [0.01, 0.04, 0.03, 0.005, 0.6, 0.04]
    assert holm(tests) == pytest.approx(list(multipletests(tests, method="holm")[1]))
    first, second = [0.1, 0.5, 0.2, 0.9, 0.4, 0.3, 0.35], [0.2, 0.4, 0.6, 1.0, 0.45, 0.9, 0.3]
    swapped = permutation_test((first, second), lambda one, other, axis: other.mean(axis) - one.mean(axis),
                               permutation_type="samples", vectorized=True)
    assert permutation(pair_scores("f1", cell("f1", first), cell("f1", second), {})) == pytest.approx(swapped.pvalue)
    detected = TTestPower().solve_power(nobs=200, alpha=0.05, power=0.8) * 0.5
    assert smallest_difference(0.5 / 200**0.5, 200, 199) == pytest.approx(detected, rel=0.005)


def test_two_splits_are_worth_what_the_one_with_more_of_the_variance_is():
    # of [0, 1] a mean has the variance 1/4, of [0, 1, 0, 1] 1/12: (1/3)^2 / ((1/4)^2 / 1 + (1/12)^2 / 3) and one
    sums = np.array([[0, 0], [1, 0], [0, 0], [0, 1], [0, 0], [0, 1]], dtype=float)
    counts = np.array([[1, 0]] * 2 + [[0, 1]] * 4, dtype=float)
    assert effective_units(sums, counts) == pytest.approx(12 / 7 + 1)
    assert effective_units(np.zeros((6, 2)), counts) == 6
