"""The levels of a factor against each other over all levels of the others: by hand, as a t test, and simulated."""
import numpy as np
import pytest
from factored import RUN, by_name, cells, effects_of, simulated
from scipy import stats


def contrasts_of(found, factor="reasoning"):
    return {(one["first"], one["second"]): one for one in by_name(found)[factor]["contrasts"]}


def test_two_levels_differ_by_their_means_over_the_others():
    run = cells(reasoning=["direct", "chain_of_thought"], condition=["given", "full"])
    found = effects_of(run, [[0.2, 0.4], [0.4, 0.6], [0.6, 0.4], [1.0, 1.0]])  # means 0.3, 0.5, 0.5, 1
    made, = contrasts_of(found).values()
    assert made["difference"] == 0.35
    factor = by_name(found)["reasoning"]
    assert (made["p"], made["p_holm"]) == (factor["p"], factor["p"])  # one test, whether of the factor or of its levels


def test_each_is_the_paired_t_test_of_the_questions_means_over_the_other_factors_and_holm_is_within_the_factor():
    rng = np.random.default_rng(2)
    values = rng.uniform(size=(6, 30))
    values[4:] += 0.2
    found = contrasts_of(effects_of(RUN, values))
    means = dict(zip("abc", values.reshape(3, 2, 30).mean(axis=1), strict=True))
    expected = {pair: stats.ttest_rel(means[pair[1]], means[pair[0]]) for pair in (("a", "b"), ("a", "c"), ("b", "c"))}
    for pair, test in expected.items():
        between = test.confidence_interval()
        assert (found[pair]["difference"], found[pair]["p"], found[pair]["low"], found[pair]["high"]) == pytest.approx(
            (np.mean(means[pair[1]] - means[pair[0]]), test.pvalue, between.low, between.high), abs=1e-9)
    least, middle, most = sorted(found.values(), key=lambda one: one["p"])
    assert [least["p_holm"], middle["p_holm"]] == pytest.approx([3 * least["p"], max(3 * least["p"], 2 * middle["p"])])
    assert most["p_holm"] == pytest.approx(max(middle["p_holm"], most["p"]))


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 3])
def test_without_an_effect_any_is_found_as_rarely_as_it_should_be_and_intervals_cover(each):
    rng = np.random.default_rng(10 + each)
    made = [contrasts_of(effects_of(RUN, simulated(rng, 0.3, each), clusters=np.arange(60) // each)).values()
            for _ in range(200)]
    assert np.mean([min(one["p_holm"] for one in entry) <= 0.05 for entry in made]) <= 0.085
    assert 0.02 <= np.mean([one["p"] <= 0.05 for entry in made for one in entry]) <= 0.085
    assert 0.92 <= np.mean([one["low"] <= 0 <= one["high"] for entry in made for one in entry]) <= 0.98


def test_a_true_difference_is_found_and_told_of_the_right_levels():
    rng = np.random.default_rng(9)
    made = [contrasts_of(effects_of(RUN, simulated(rng, 0.4, 1, effect=0.15))) for _ in range(60)]
    assert np.mean([one["a", "c"]["p_holm"] < 0.05 and one["b", "c"]["p_holm"] < 0.05 for one in made]) > 0.9
    assert np.mean([one["a", "b"]["p_holm"] < 0.05 for one in made]) <= 0.1
    assert np.mean([one["b", "c"]["difference"] for one in made]) == pytest.approx(0.15, abs=0.02)
