"""Simulated sets whose truth is known: the intervals of their means cover, and of many comparisons few are found."""

import numpy as np
import pytest
from factored import Row

from experiments import Gold, Question, aggregate
from experiments.metrics import share_among
from experiments.statistics import clusters

pytestmark = pytest.mark.slow

TIMES = 250  # the standard error of a share of 0.95 is 0.014
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
    sets = [[Row({"f1": float(value)}) for value in rng.beta(0.6, 0.9, n)] for _ in range(TIMES)]
    assert covered(sets, "f1", 0.4) >= 0.9


@pytest.mark.parametrize(("part", "each"), [(0.3, 4), (0.7, 3)])
def test_intervals_of_clustered_grades_cover_where_those_by_question_do_not(part, each):
    rng = np.random.default_rng(100 + each)
    sets = [[Row({"f1": float(value)}) for value in np.clip(0.5 + by_document(rng, 25, each, part) / 8, 0, 1)]
            for _ in range(TIMES)]
    assert LEAST <= covered(sets, "f1", 0.5, names(25, each)) <= MOST
    assert covered(sets, "f1", 0.5) < 0.9


@pytest.mark.parametrize(("share", "part"), [(0.03, 0.3), (0.2, 0.5), (0.5, 0.8)])
def test_intervals_of_clustered_shares_cover_where_wilsons_does_not(share, part):
    rng = np.random.default_rng(int(100 * share))
    edge = np.quantile(rng.normal(size=1_000_000), share)
    sets = [[Row({"em": float(value < edge)}) for value in by_document(rng, 30, 4, part)] for _ in range(2 * TIMES)]
    found = covered(sets, "em", share, names(30, 4), resamples=2)
    assert LEAST <= found <= 0.99
    assert found > covered(sets, "em", share, resamples=2)
    alone = [share_among([row.scores["em"] == 1 for row in rows], names(30, 4)) for rows in sets]
    assert np.mean([one["low"] <= share <= one["high"] for one in alone]) == found


@pytest.mark.parametrize("documents", [6, 9])
def test_intervals_over_few_documents_cover_where_those_by_question_do_not(documents):
    rng = np.random.default_rng(documents)
    sets = [[Row({"f1": float(np.clip(0.5 + value / 6, 0, 1)), "em": float(value < 0)})
             for value in by_document(rng, documents, 20, 0.3)] for _ in range(TIMES)]
    of = clusters([Question(str(at), "?", ("x",), True, gold=(Gold(name),))
                   for at, name in enumerate(names(documents, 20))]).of
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
    assert LEAST <= covered([cited(rng, 40, 1) for _ in range(TIMES)], "citation_f1", truth) <= MOST
    assert LEAST <= covered([cited(rng, 25, 4) for _ in range(TIMES)], "citation_f1", truth, names(25, 4)) <= MOST


def unified(rng, refused, unanswerable, answerable=40):
    """Answerable questions, of mean 0.25, and others."""
    graded = rng.choice([-1.0, 0.0, 0.5, 1.0], p=[0.1, 0.45, 0.2, 0.25], size=answerable)
    return [*(Row({"unified": float(value)}) for value in graded),
            *(Row({"unified": float(value)}, False) for value in rng.uniform(size=unanswerable) < refused)]


@pytest.mark.parametrize(("refused", "unanswerable"), [(0.5, 20), (0.05, 12), (0.5, 1), (0.0, 5)])
def test_intervals_of_two_splits_cover_where_one_is_small_or_without_spread(refused, unanswerable):
    rng = np.random.default_rng(unanswerable)
    sets = [unified(rng, refused, unanswerable) for _ in range(TIMES)]
    assert covered(sets, "unified", (0.25 + refused) / 2) >= (LEAST if unanswerable > 12 or refused != 0.05 else 0.9)


@pytest.mark.parametrize(("answerable", "unanswerable"), [(5, 40), (8, 100), (100, 8), (100, 5)])
def test_intervals_of_two_splits_cover_where_one_has_few_questions(answerable, unanswerable):
    rng = np.random.default_rng(answerable)
    sets = [unified(rng, 0.5, unanswerable, answerable) for _ in range(TIMES)]
    assert covered(sets, "unified", 0.375) >= LEAST
