"""The test that holds however often one looks: published numbers, exactness by enumeration, and its error simulated."""
import itertools

import numpy as np
import pytest

from ragbed.experiments.guests.traffic.anytime import anytime_test, blocks_of, log_e_of_test, log_ratios


def e_values(blocks, difference=0.0, **more):
    """The interval's e-value after each block."""
    return np.exp(np.cumsum(np.concatenate(log_ratios(np.array(blocks), np.array([difference]), **more))))


def test_e_values_are_those_that_safestats_tests_itself_by():
    # tests/testthat/test-savi2x2Helpers.R, eGauss: 1 of 1 against 0 of 1, five times
    assert np.exp(log_e_of_test(np.array([[1, 1, 1, 0]] * 5))) == pytest.approx(
        [1, 1.173516143432372, 1.520548430297116, 2.105509009062085, 3.057222176662974], rel=1e-9)
    assert np.exp(log_e_of_test(np.array([[3, 3, 1, 1], [1, 0, 4, 0]]))) == pytest.approx([1, 1])  # which say nothing
    # likewise, eBeta: uniform priors, twice
    assert e_values([[1, 1, 1, 0]] * 2, prior=1.0) == pytest.approx([1, 16 / 9])
    # tests of safeTwoProportionsTest: where both sides are all ones, or all zeros, e stays 1
    assert e_values([[1, 1, 1, 1]] * 10) == pytest.approx(np.ones(10))
    assert e_values([[1, 0, 1, 0]] * 10) == pytest.approx(np.ones(10))


@pytest.mark.parametrize("difference", [-0.3, 0.0, 0.25])
def test_no_pair_of_shares_with_the_difference_lets_a_block_grow_in_the_mean(difference):
    # all outcomes of a block of 3 and 2, after blocks that made the bet (2.18 / 4.36 against 1.18 / 2.36, and others)
    for history in ([[4, 2, 2, 1]], [[4, 4, 2, 0]], [[1, 0, 9, 8]]):
        outcomes = list(itertools.product(range(4), range(3)))
        growth = [np.exp(log_ratios(np.array([*history, [3, a, 2, b]]), np.array([difference]))[0][-1, 0])
                  for a, b in outcomes]
        for x in np.linspace(max(0, -difference), min(1, 1 - difference), 41):
            y = min(max(x + difference, 0.0), 1.0)
            likely = [[1, 3, 3, 1][a] * x**a * (1 - x)**(3 - a) * [1, 2, 1][b] * y**b * (1 - y)**(2 - b)
                      for a, b in outcomes]
            assert np.dot(likely, growth) <= 1 + 1e-9


def test_a_block_of_the_test_is_a_fair_bet_where_the_sides_are_alike():
    for history in ([1, 1, 1, 0], [4, 3, 1, 0], [1, 0, 5, 4]):
        grown = [np.exp(np.diff(log_e_of_test(np.array([history, [3, hits - lone, 1, lone]])))[0])
                 for hits in (1, 2, 3) for lone in (1, 0)]
        for hits in (1, 2, 3):  # of four observations, so that the lone one has one of them with hits / 4
            won, lost = grown[2 * hits - 2:2 * hits]
            assert hits / 4 * won + (1 - hits / 4) * lost == pytest.approx(1)


def test_blocks_end_as_soon_as_both_sides_are_there():
    sides, hits = [0, 0, 1, 1, 1, 0, 0], [1, 0, 1, 0, 1, 1, 1]
    assert blocks_of(sides, hits).tolist() == [[2, 1, 1, 1], [1, 1, 2, 1]]  # the last waits for the other side
    nothing = anytime_test([], [])
    assert (nothing.difference, nothing.low, nothing.high, nothing.p, nothing.blocks) == (None, -1.0, 1.0, 1.0, 0)


def test_the_interval_holds_the_truth_and_a_difference_once_found_stays_found():
    half = anytime_test([False, True] * 100, [True, True, False, True] * 50)  # 50 % of one side, all of the other
    assert (half.difference, half.low, half.high) == (0.5, 0.33, 0.68)
    assert half.p < 1e-9
    again = anytime_test([False, True] * 200, [True, True, False, True] * 50 + [True, True, True, False] * 50)
    assert again.p == half.p
    same = anytime_test([False, True] * 100, [True, True, False, False] * 50)
    assert (same.difference, same.low, same.high, same.p) == (0.0, -0.19, 0.19, pytest.approx(1))


@pytest.mark.parametrize(("first", "then", "found"), [
    ([1, 1, 0, 0], [1, 0, 1, 0], (-0.51, -0.64, -0.36)),  # no difference, then -1: was -0.50 [-0.31, -0.29]
    ([1, 0, 1, 0], [1, 1, 0, 0], (-0.5, -0.67, -0.3)),
    ([1, 1, 0, 1], [1, 1, 1, 0], (0.0, -0.17, 0.17)),  # +0.5, then -0.5
    ([0, 1, 1, 1], [1, 1, 1, 1], (0.25, 0.16, 0.37))])
def test_where_the_difference_drifts_the_estimate_is_its_mean_and_within_its_interval(first, then, found):
    drift = anytime_test([False, True] * 200, [hit == 1 for hit in first * 50 + then * 50])
    assert (drift.difference, drift.low, drift.high) == found


@pytest.mark.parametrize(("explored", "difference"), [(0.1, 0.0), *(
    pytest.param(*one, marks=pytest.mark.slow) for one in ((0.5, 0.0), (0.2, 0.15)))])
def test_looking_after_every_observation_errs_in_at_most_five_percent(explored, difference):
    rng = np.random.default_rng(7)
    errors = []
    for _ in range(300):
        sides = rng.random(500) < explored
        hits = rng.random(500) < np.where(sides, 0.6 + difference, 0.6)
        blocks = blocks_of(sides, hits)
        errors.append((e_values(blocks, difference).max() >= 20, np.exp(log_e_of_test(blocks).max()) >= 20))
    interval, tested = np.mean(errors, axis=0)  # bench/peeking.py has more of it
    assert interval <= 0.05
    assert tested >= 0.3 if difference else tested <= 0.05
