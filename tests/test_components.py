"""Variance components: by hand, against statsmodels' mixed model, over simulated scores, and in a run's summary."""
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from factored import Row, cells
from scipy.special import ndtri
from statsmodels.regression.mixed_linear_model import MixedLM

from ragbed.experiments.analysis.wordings import on_wordings, wording_effects, wording_views
from ragbed.experiments.statistics import Clusters
from ragbed.experiments.statistics.components import components, difference, half_width, questions_for

TIMES = 500  # the standard error of a share of 0.95 is 0.01


def test_components_are_those_of_the_analysis_of_variance_by_hand():
    scores = np.array([[[0.0, 1.0, 0.5], [1.0, 1.0, 1.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.5]]])
    found = {name: one.variance for name, one in components(scores).items()}
    # each strategy's wordings have means 1/2 apart, and its questions suit them by a quarter more or less
    assert found == pytest.approx({"rest": 1 / 8, "wording": 1 / 8 - 1 / 24, "question": 1 / 16,
                                   "strategy x question": 0})
    assert difference(scores, 0, 1)["difference"] == pytest.approx(-0.5)


def drawn(rng, strategies, wordings, questions, wording, of=np.random.Generator.standard_normal, share=True):
    """Scores of strategies whose means are 0.35 to 0.55, and whose wordings have this standard deviation; 0 or 1, or
    any number."""
    means = np.linspace(0.35, 0.55, strategies)[:, None] + wording * of(rng, size=(strategies, wordings))
    hard = (rng.normal(size=questions) + 0.7 * rng.normal(size=(strategies, 1, questions))
            + 0.7 * rng.normal(size=(strategies, wordings, questions))) / 1.98**0.5
    return (hard < ndtri(means)[..., None]).astype(float) if share else means[..., None] + 0.3 * hard


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_components_are_those_of_a_mixed_model_by_restricted_maximum_likelihood():
    scores = drawn(np.random.default_rng(3), 2, 4, 12, 0.15, share=False)
    strategy, wording, question = (place.ravel() for place in np.indices(scores.shape))
    rows = pd.DataFrame({"y": scores.ravel(), "s": strategy, "w": strategy * 10 + wording, "q": question,
                         "sq": strategy * 100 + question, "all": 1})
    model = MixedLM.from_formula("y ~ C(s)", rows, groups="all", re_formula="0", vc_formula={
        "wording": "0 + C(w)", "question": "0 + C(q)", "strategy x question": "0 + C(sq)"})
    fitted = model.fit(reml=True, method="bfgs")
    theirs = {**dict(zip(model.exog_vc.names, fitted.vcomp, strict=True)), "rest": fitted.scale}
    ours = {name: one.variance for name, one in components(scores).items()}
    assert ours == pytest.approx(theirs, rel=0.01)


def uniform(rng, size):
    return 3**0.5 * rng.uniform(-1, 1, size)


def uneven(rng, size):
    """The wordings of some strategies matter three times as much as those of others."""
    apart = np.linspace(0.4, 1.4, size[0])[:, None]
    return rng.normal(size=size) * apart / np.sqrt((apart**2).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "wording", "of"), [
    ((5, 5, 100), 0.03, np.random.Generator.standard_normal), ((5, 5, 100), 0.0, np.random.Generator.standard_normal),
    ((5, 5, 40), 0.05, uniform), ((5, 5, 100), 0.06, uneven), ((2, 3, 60), 0.05, np.random.Generator.standard_normal),
    ((5, 2, 100), 0.05, np.random.Generator.standard_normal)])
def test_intervals_of_components_and_of_differences_over_all_wordings_cover_at_their_rate(shape, wording, of):
    rng = np.random.default_rng(sum(shape))
    strategies, wordings, _ = shape
    large = [components(drawn(rng, strategies, wordings, 20_000, 0.03)) for _ in range(3)]
    truth = {name: np.mean([one[name].variance for one in large]) for name in large[0]} | {"wording": wording**2}
    covered = dict.fromkeys((*truth, "difference"), 0)
    for _ in range(TIMES):
        scores = drawn(rng, *shape, wording, of)
        for name, one in components(scores).items():
            covered[name] += one.low <= truth[name] <= one.high
        change = difference(scores, 0, strategies - 1)
        covered["difference"] += change["low"] <= 0.2 <= change["high"]
    assert {name: count / TIMES for name, count in covered.items() if not 0.92 <= count / TIMES <= 0.985} == {}


@pytest.mark.slow
@pytest.mark.parametrize("pilot", [None, 100])
def test_a_planned_study_reaches_its_precision_on_wordings_and_questions_of_its_own(pilot):
    rng, parts = np.random.default_rng(5), ("wording", "strategy x question", "rest")
    known = components(drawn(rng, 5, 5, 40_000, 0.03))
    reached, within, planned = [], [], 0
    for _ in range(TIMES // 2):
        found = components(drawn(rng, 5, 5, pilot, 0.03)) if pilot else {}
        variances = [found[name].likely for name in parts] if pilot else [0.03**2, *(
            known[name].variance for name in parts[1:])]
        questions = questions_for(0.08, variances, strategies=5, wordings=5)
        if questions is None:
            continue
        planned += 1
        study = drawn(rng, 5, 5, questions, 0.03)
        compared = {pair: difference(study, *pair) for pair in combinations(range(5), 2)}
        reached += [one["high"] - one["low"] <= 0.16 for one in compared.values()]
        within.append(abs(compared[0, 4]["difference"] - 0.2) <= 0.08)
    assert planned > 0.8 * (TIMES // 2)
    assert np.mean(reached) >= 0.74  # of 0.8
    assert np.mean(within) >= 0.95


def test_more_questions_do_not_stand_in_for_wordings():
    spread = (0.04**2, 0.06, 0.06)
    assert [questions_for(0.06, spread, strategies=5, wordings=count) for count in (2, 3)] == [None, None]
    few = questions_for(0.06, spread, strategies=5, wordings=5)
    assert half_width(spread, strategies=5, wordings=5, questions=few) <= 0.06
    assert half_width(spread, strategies=5, wordings=5, questions=few - 1) > 0.06
    assert half_width((0.0, 0.06, 0.06), 5, 5, 400) == pytest.approx(1.97 * (0.3 / 400 * 0.48)**0.5, rel=0.05)


def worded(scores, **more):
    """What a run of two strategies in three wordings under two conditions has of these scores."""
    run = cells(condition=["given", "full"], reasoning=["direct", "chain_of_thought"], wording=[1, 2, 3])
    answers = {row["id"]: {f"q{place}": Row({"f1": float(value)}) for place, value in enumerate(line)}
               for row, line in zip(run, scores, strict=True)}
    return wording_effects(run, answers, Clusters(more.get("clusters", {})), "f1")


def test_a_summary_has_the_components_of_each_condition_and_strategies_over_all_wordings():
    scores = drawn(np.random.default_rng(1), 2, 3, 40, 0.1)
    found = worded([*scores.reshape(6, 40), *1 - scores.reshape(6, 40)])
    assert [one["of"] for one in found] == [{"condition": "given"}, {"condition": "full"}]
    one, other = found
    for name, part in one["components"].items():
        assert part == pytest.approx(other["components"][name])
    assert (one["wordings"], one["questions"], one["strategies"]) == (3, 40, ["direct", "chain_of_thought"])
    change = scores[1].mean() - scores[0].mean()
    assert [pair["difference"] for side in found for pair in side["differences"]] == pytest.approx([change, -change])
    what, over = wording_views(found)
    assert what.header == ("condition", "what varies", "standard deviation", "moves a difference by")
    moved, deviation = what.rows[0][3]["mean"], what.rows[0][2]["mean"]
    assert moved == pytest.approx(1.96 * 2**0.5 * deviation, abs=1e-4)
    assert over.rows[0][:4] == ("given", "chain_of_thought", "direct", 40)
    assert on_wordings(found)[0].startswith("Wording alone moves the difference of two strategies in token F1 (given) "
                                            f"by up to {moved:.2f} [")


def test_questions_over_one_document_count_as_one():
    scores = np.repeat(drawn(np.random.default_rng(2), 2, 3, 20, 0.1).reshape(6, 20), 2, axis=1)
    twice, = worded([*scores, *scores], clusters={f"q{place}": str(place // 2) for place in range(40)})[:1]
    alone, = worded([*scores[:, ::2], *scores[:, ::2]])[:1]
    assert (twice["units"], twice["questions"]) == (20, 40)
    assert twice["components"] == alone["components"]
