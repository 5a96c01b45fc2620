"""Simulated scores whose truth is known: intervals cover, tests err, and plans find as often as they say."""
from statistics import NormalDist

import numpy as np
import pytest
from factored import Row

from ragbed.experiments import Gold, Question, aggregate
from ragbed.experiments.metrics import estimate_clustered_share
from ragbed.experiments.statistics import (
    bootstrap,
    cluster_questions,
    holm,
    mcnemar,
    pair_scores,
    permutation,
    planned_difference,
    share_difference_interval,
    smallest_difference,
    smallest_share_difference,
)

pytestmark = pytest.mark.slow

TIMES = 400  # the standard error of a share of 0.95 is 0.011


def pairs(metric, first, second, answerable=None, clusters=None):
    answerable = [True] * len(first) if answerable is None else answerable
    sides = [{f"q{place}": Row({metric: float(value)}, kind)
              for place, (value, kind) in enumerate(zip(values, answerable, strict=True))}
             for values in (first, second)]
    of = {} if clusters is None else {f"q{place}": str(cluster) for place,
                                               cluster in enumerate(clusters)}
    return pair_scores(metric, *sides, of)


def f1s(rng, n, better=0.0):
    """Skewed scores that hang together by question."""
    hard = rng.beta(0.6, 0.9, n)
    return [np.clip(hard + rng.normal(0, 0.25, n), -1, 2), np.clip(hard + better + rng.normal(0, 0.25, n), -1, 2)]


def unified(rng, better=0.0):
    """60 answerable questions and 30 others, whose differences vary less."""
    answerable = np.repeat([True, False], [60, 30])
    spread = np.where(answerable, 0.7, 0.4)
    first = rng.normal(0.3, 0.3, 90)
    return first, first + better + spread * rng.normal(size=90), answerable


def clustered(rng, better=0.0, documents=25, each=4):
    """A document shifts all of its questions."""
    shift = np.repeat(rng.normal(0, 0.3, documents), each)
    first = rng.uniform(size=documents * each)
    return first, first + better + shift + rng.normal(0, 0.1, len(first)), np.repeat(np.arange(documents), each)


def shares(rng, n, gained, lost):
    return rng.multinomial(n, [gained, lost, 1 - gained - lost])[:2]


def covers(interval, truth):
    return interval.low <= truth <= interval.high


@pytest.mark.parametrize("n", [15, 60])
def test_intervals_of_means_cover_at_their_rate(n):
    rng = np.random.default_rng(n)
    truth = np.subtract(*reversed(f1s(rng, 1_000_000, 0.1))).mean()
    covered = [covers(bootstrap(pairs("f1", *f1s(rng, n, 0.1)), seed, 1000).difference, truth) for seed in range(TIMES)]
    assert 0.925 <= np.mean(covered) <= 0.975


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_intervals_of_few_differences_cover_at_least_at_their_rate(n):
    rng = np.random.default_rng(n)
    covered = [covers(bootstrap(pairs("f1", *np.clip(f1s(rng, n), 0, 1)), seed, 400).difference, 0)
               for seed in range(200)]
    assert np.mean(covered) >= 0.925


def test_intervals_by_document_cover_where_those_by_question_would_not():
    rng = np.random.default_rng(3)
    drawn = [clustered(rng, 0.1) for _ in range(TIMES)]
    by_document = [covers(bootstrap(pairs("f1", first, second, clusters=of), 0, 1000).difference, 0.1)
                   for first, second, of in drawn]
    by_question = [covers(bootstrap(pairs("f1", first, second), 0, 1000).difference, 0.1)
                   for first, second, _ in drawn[:100]]
    assert 0.925 <= np.mean(by_document) <= 0.975
    assert np.mean(by_question) < 0.85


@pytest.mark.parametrize(("n", "gained", "lost"), [(20, 0.1, 0.1), (50, 0.15, 0.05), (100, 0.02, 0.02),
                                                   (400, 0.2, 0.1)])
def test_intervals_of_shares_cover_at_least_at_their_rate(n, gained, lost):
    rng = np.random.default_rng(n)
    covered = [covers(share_difference_interval(*shares(rng, n, gained, lost), n), gained - lost) for _ in range(4000)]
    assert np.mean(covered) >= 0.935
    assert np.mean(covered) <= (0.975 if n * (gained + lost) > 10 else 1.0)


def test_without_a_difference_the_tests_find_one_as_rarely_as_they_should():
    rng = np.random.default_rng(4)
    means = [permutation(pairs("f1", *f1s(rng, 40)), seed, 999) <= 0.05 for seed in range(TIMES)]
    splits = [permutation(pairs("unified", *unified(rng)), seed, 999) <= 0.05 for seed in range(TIMES)]
    exact = [mcnemar(*shares(rng, 100, 0.15, 0.15)) <= 0.05 for _ in range(2000)]
    assert 0.025 <= np.mean(means) <= 0.08
    assert 0.025 <= np.mean(splits) <= 0.08
    assert 0.015 <= np.mean(exact) <= 0.055


def test_questions_over_one_document_do_not_pass_for_independent_ones():
    rng = np.random.default_rng(5)
    drawn = [clustered(rng) for _ in range(TIMES)]
    together = [permutation(pairs("f1", first, second, clusters=of), 0, 999) <= 0.05 for first, second, of in drawn]
    apart = [permutation(pairs("f1", first, second), 0, 999) <= 0.05 for first, second, _ in drawn[:100]]
    assert 0.025 <= np.mean(together) <= 0.08
    assert np.mean(apart) > 0.15


def test_of_many_comparisons_without_a_difference_none_is_found_in_19_of_20():
    rng = np.random.default_rng(6)
    families = [[mcnemar(*shares(rng, 100, 0.2, 0.2)) for _ in range(10)] for _ in range(500)]
    assert np.mean([min(p) <= 0.05 for p in families]) > 0.2
    assert np.mean([min(holm(p)) <= 0.05 for p in families]) <= 0.07


@pytest.mark.parametrize(("n", "discordance", "comparisons"), [(30, 0.25, 1), (100, 0.3, 1), (500, 0.1, 1),
                                                               (195, 0.25, 14)])
def test_the_smallest_share_is_found_in_four_of_five(n, discordance, comparisons):
    rng = np.random.default_rng(n)
    smallest = smallest_share_difference(n, discordance, comparisons)
    differ = max(discordance, smallest)
    gained, lost = (differ + smallest) / 2, (differ - smallest) / 2
    tables, times = np.unique([shares(rng, n, gained, max(lost, 0.0)) for _ in range(3000)], axis=0,
                              return_counts=True)
    found = [mcnemar(*map(int, table)) <= 0.05 / comparisons for table in tables]
    assert np.average(found, weights=times) == pytest.approx(0.8, abs=0.025)


def test_the_smallest_difference_of_means_is_found_in_four_of_five():
    rng = np.random.default_rng(7)
    smallest = smallest_difference(0.5 / 50**0.5, 50, 49)
    found = [permutation(pairs("f1", np.zeros(50), rng.normal(smallest, 0.5, 50)), seed, 999) <= 0.05
             for seed in range(TIMES)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.05)


def test_the_planned_difference_of_two_splits_is_found_in_four_of_five():
    rng = np.random.default_rng(8)
    answerable = [True] * 60 + [False] * 30
    smallest = planned_difference("unified", 60, 30)
    found = [permutation(pairs("unified", np.zeros(90), rng.normal(smallest, 0.5, 90), answerable), seed, 999) <= 0.05
             for seed in range(TIMES)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("metric", ["f1", "em"])
def test_the_planned_difference_of_questions_over_shared_documents_is_found_in_four_of_five(metric):
    rng = np.random.default_rng(10)
    smallest = planned_difference(metric, 210, clusters=[(7, 0)] * 30)
    of = np.repeat(np.arange(30), 7)
    found = []
    for seed in range(200):
        drawn = np.sqrt(0.2) * np.repeat(rng.normal(size=30), 7) + np.sqrt(0.8) * rng.normal(size=210)
        first, second = np.zeros(210), smallest + 0.5 * drawn
        if metric == "em":  # a quarter differ, in as many as the difference says one way
            first = drawn < NormalDist().inv_cdf((0.25 - smallest) / 2)
            second = drawn > NormalDist().inv_cdf(1 - (0.25 + smallest) / 2)
        found.append(permutation(pairs(metric, first, second, clusters=of), seed, 999) <= 0.05)
    assert 0.73 <= np.mean(found) <= 0.91  # answers that differ hang together less than what decides them


SETS = 250  # the standard error of a share of 0.95 is 0.014
LEAST, MOST = 0.915, 0.985


def covered(sets, name, truth, clusters=None, resamples=400):
    found = [aggregate(rows, resamples=resamples, clusters=clusters)[name] for rows in sets]
    return np.mean([one["low"] <= truth <= one["high"] for one in found])


def by_document(rng, documents, each, part):
    """Values of 0 to 1, a part of whose variance is between documents."""
    shared = np.repeat(rng.normal(size=documents), each)
    own = rng.normal(size=documents * each)
    return np.sqrt(part) * shared + np.sqrt(1 - part) * own


def names(documents, each):
    return [str(document) for document in np.repeat(np.arange(documents), each)]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
def test_intervals_of_few_grades_cover_at_least_nearly_at_their_rate(n):
    rng = np.random.default_rng(n)
    sets = [[Row({"f1": float(value)}) for value in rng.beta(0.6, 0.9, n)] for _ in range(SETS)]
    assert covered(sets, "f1", 0.4) >= 0.9


@pytest.mark.parametrize(("part", "each"), [(0.3, 4), (0.7, 3)])
def test_intervals_of_clustered_grades_cover_where_those_by_question_do_not(part, each):
    rng = np.random.default_rng(100 + each)
    sets = [[Row({"f1": float(value)}) for value in np.clip(0.5 + by_document(rng, 25, each, part) / 8, 0, 1)]
            for _ in range(SETS)]
    assert LEAST <= covered(sets, "f1", 0.5, names(25, each)) <= MOST
    assert covered(sets, "f1", 0.5) < 0.9


@pytest.mark.parametrize(("share", "part"), [(0.03, 0.3), (0.2, 0.5), (0.5, 0.8)])
def test_intervals_of_clustered_shares_cover_where_wilsons_does_not(share, part):
    rng = np.random.default_rng(int(100 * share))
    edge = np.quantile(rng.normal(size=1_000_000), share)
    sets = [[Row({"em": float(value < edge)}) for value in by_document(rng, 30, 4, part)] for _ in range(2 * SETS)]
    found = covered(sets, "em", share, names(30, 4), resamples=2)
    assert LEAST <= found <= 0.99
    assert found > covered(sets, "em", share, resamples=2)
    alone = [estimate_clustered_share([row.scores["em"] == 1 for row in rows], names(30, 4)) for rows in sets]
    assert np.mean([one["low"] <= share <= one["high"] for one in alone]) == found


@pytest.mark.parametrize("documents", [6, 9])
def test_intervals_over_few_documents_cover_where_those_by_question_do_not(documents):
    rng = np.random.default_rng(documents)
    sets = [[Row({"f1": float(np.clip(0.5 + value / 6, 0, 1)), "em": float(value < 0)})
             for value in by_document(rng, documents, 20, 0.3)] for _ in range(SETS)]
    of = cluster_questions([Question(str(at), "?", ("x",), True, gold=(Gold(name),))
                   for at, name in enumerate(names(documents, 20))], "document").of
    for name in ("f1", "em"):
        assert covered(sets, name, 0.5, list(of.values())) >= LEAST
        assert covered(sets, name, 0.5) < 0.85


def cited(rng, documents, each):
    """Precision and recall that hang together, and by document."""
    found = np.clip(0.4 + by_document(rng, documents, each, 0.4) / 6, 0, 1)
    more = np.clip(0.6 + (found - 0.4) + rng.normal(0, 0.1, len(found)), 0, 1)
    return [Row({"citation_precision": float(one), "citation_recall": float(other)})
            for one, other in zip(found, more, strict=True)]


def test_intervals_of_a_metric_of_sets_cover_by_question_and_by_document():
    rng = np.random.default_rng(1)
    truth = aggregate(cited(rng, 30_000, 1), resamples=2)["citation_f1"]["mean"]
    assert LEAST <= covered([cited(rng, 40, 1) for _ in range(SETS)], "citation_f1", truth) <= MOST
    assert LEAST <= covered([cited(rng, 25, 4) for _ in range(SETS)], "citation_f1", truth, names(25, 4)) <= MOST


def graded(rng, refused, unanswerable, answerable=40):
    """Answerable questions, of mean 0.25, and others."""
    graded = rng.choice([-1.0, 0.0, 0.5, 1.0], p=[0.1, 0.45, 0.2, 0.25], size=answerable)
    return [*(Row({"unified": float(value)}) for value in graded),
            *(Row({"unified": float(value)}, False) for value in rng.uniform(size=unanswerable) < refused)]


@pytest.mark.parametrize(("refused", "unanswerable"), [(0.5, 20), (0.05, 12), (0.5, 1), (0.0, 5)])
def test_intervals_of_two_splits_cover_where_one_is_small_or_without_spread(refused, unanswerable):
    rng = np.random.default_rng(unanswerable)
    sets = [graded(rng, refused, unanswerable) for _ in range(SETS)]
    assert covered(sets, "unified", (0.25 + refused) / 2) >= (LEAST if unanswerable > 12 or refused != 0.05 else 0.9)


@pytest.mark.parametrize(("answerable", "unanswerable"), [(5, 40), (8, 100), (100, 8), (100, 5)])
def test_intervals_of_two_splits_cover_where_one_has_few_questions(answerable, unanswerable):
    rng = np.random.default_rng(answerable)
    sets = [graded(rng, 0.5, unanswerable, answerable) for _ in range(SETS)]
    assert covered(sets, "unified", 0.375) >= LEAST
