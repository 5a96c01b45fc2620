"""Main effects, interactions and the levels of a factor against each other: against statsmodels' own regression, as t
tests, by hand, and over simulated scores."""
import json

import numpy as np
import pytest
from factored import RUN, WAYS, by_name, cells, effects_of, rows, simulated, under_both
from scipy import stats
from statsmodels.regression.linear_model import OLS

from ragbed.experiments.guests.effects.factorial import make_design


def test_levels_have_their_means_and_effects_by_hand():
    run = cells(reasoning=["direct", "chain_of_thought"], condition=["provided", "full"])
    found = effects_of(run, [[0.2, 0.4], [0.4, 0.6], [0.6, 0.4], [1.0, 1.0]])  # means 0.3, 0.5, 0.5, 1
    named = by_name(found)
    assert [(level["level"], level["mean"], level["effect"], level["n"]) for level in named["reasoning"]["levels"]] == [
        ("direct", 0.4, -0.175, 4), ("chain_of_thought", 0.75, 0.175, 4)]
    assert [(level["mean"], level["effect"]) for level in named["condition"]["levels"]] == [(0.4, -0.175),
                                                                                           (0.75, 0.175)]
    both = named["reasoning", "condition"]
    assert [(cell["levels"], cell["mean"], cell["effect"]) for cell in both["cells"]] == [
        (["direct", "provided"], 0.3, 0.075), (["direct", "full"], 0.5, -0.075),
        (["chain_of_thought", "provided"], 0.5, -0.075), (["chain_of_thought", "full"], 1.0, 0.075)]


def regression(run, values, clusters):
    """Statsmodels' own, of every question in every cell, with a dummy for each question."""
    design = make_design([{name: str(row[name]) for name in ("reasoning", "condition")} for row in run],
                       ["reasoning", "condition"])
    count = values.shape[1]
    asked = np.tile(np.eye(count)[:, 1:], (len(run), 1))
    table = np.hstack([np.repeat(np.eye(len(run)), count, axis=0), asked - 1 / count])
    groups = np.unique(np.tile(clusters, len(run)), return_inverse=True)[1]
    fitted = OLS(values.ravel(), table).fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False},
                                            use_t=True)
    return design, fitted, len(set(clusters))


@pytest.mark.parametrize("each", [1, 3])
def test_effects_errors_and_tests_are_those_of_a_regression_with_a_dummy_for_each_question(each):
    rng = np.random.default_rng(each)
    run = cells(reasoning=["a", "b", "c"], condition=["provided", "full"])
    values = np.clip(rng.beta(0.6, 0.9, 30) + rng.normal(0, 0.2, (6, 30)), 0, 1)
    clusters = np.arange(30) // each
    design, fitted, groups = regression(run, values, clusters)
    named = by_name(effects_of(run, values, clusters=clusters))
    for term in (("reasoning",), ("reasoning", "condition")):
        entry = named[term[0] if len(term) == 1 else term]
        contrasts = np.pad(design.effects(term), [(0, 0), (0, 29)])
        tested = fitted.t_test(contrasts)
        levels = entry["levels"] if len(term) == 1 else entry["cells"]
        assert [level["effect"] for level in levels] == pytest.approx(tested.effect)
        errors = [(level["effect_high"] - level["effect_low"]) / 2 for level in levels]
        wide = (groups / (groups - 1)) ** 0.5 * T975[groups - 1]
        assert errors == pytest.approx(wide * tested.sd.ravel())
        wald = float(fitted.wald_test(contrasts[[0, 2]], use_f=False, scalar=True).statistic) * (groups - 1) / groups
        assert entry["p"] == pytest.approx(stats.f.sf(wald * (groups - 2) / (2 * (groups - 1)), 2, groups - 2))


T975 = {29: 2.0452296421, 9: 2.2621571628}


def test_two_levels_are_tested_as_a_paired_t_test_does():
    rng = np.random.default_rng(1)
    values = rng.uniform(size=(2, 20))
    found = effects_of(WAYS, under_both(values))
    assert found["factors"][0]["p"] == pytest.approx(stats.ttest_rel(*values).pvalue)


def test_unified_has_the_tables_means_and_the_room_of_its_splits():
    values = [[1, 1, -1, 0.5, 0, 1], [0, 1, 0, 0.5, 1, 1]]
    found = effects_of(WAYS, under_both(values), "unified", answerable=[1, 1, 1, 1, 0, 0])
    assert [level["mean"] for level in found["factors"][0]["levels"]] == [(1.5 / 4 + 0.5) / 2, (1.5 / 4 + 1) / 2]
    one = effects_of(WAYS, under_both(values), "unified", answerable=[1] * 6, scoring="as-published")
    assert one["factors"][0]["levels"][0]["mean"] == pytest.approx(2.5 / 6 / 2)


def test_repeats_and_seeds_are_no_factors():
    run = cells(reasoning=["a", "b"], condition=["provided", "full"], repeat=[0, 1])
    found = effects_of(run, [*[[0, 1], [1, 1]] * 2, *[[0, 0]] * 4])
    assert [one["factor"] for one in found["factors"]] == ["reasoning", "condition"]
    assert [(level["mean"], level["n"]) for level in found["factors"][0]["levels"]] == [(0.75, 8), (0, 8)]


@pytest.mark.parametrize("run", [cells(reasoning=["a", "b"]), cells(repeat=[0, 1]),
                                 cells(reasoning=["a", "b"], repeat=[0, 1]), cells()])
def test_one_factor_has_no_effects_besides_its_comparisons(run):
    assert effects_of(run, [[0, 1], [1, 1], [0, 0], [0, 0]][:len(run)]) is None


def test_scores_without_any_difference_have_a_p_of_1_and_the_room_of_the_range():
    found = effects_of(WAYS, under_both([[1, 1, 1], [1, 1, 1]]))
    left = 1 - 0.025 ** (1 / 3)
    first, _ = found["factors"][0]["levels"]
    assert (first["mean"], first["low"], first["high"]) == (1, pytest.approx(1 - left), 1)
    assert (first["effect_low"], first["effect_high"]) == (pytest.approx(-left), pytest.approx(left))
    assert found["factors"][0]["p"] == 1.0


def test_without_documents_a_retriever_has_no_effect_and_its_own_is_of_the_other_cells():
    run = rows({"condition": "closed-book", "rules": "closed-book"},
               *({"condition": "retrieved", "retrieval": "once", "retriever": name} for name in ("near", "far")))
    found = effects_of(run, [[0.2, 0.2, 0.3], [0.8, 0.9, 0.8], [0.6, 0.5, 0.5]])
    named = by_name(found)
    assert set(named) == {"retriever", "condition"}
    assert [level["mean"] for level in named["retriever"]["levels"]] == [pytest.approx(2.5 / 3), pytest.approx(1.6 / 3)]
    assert [level["mean"] for level in named["condition"]["levels"]] == [pytest.approx(0.7 / 3), pytest.approx(4.1 / 6)]
    assert any("Interactions that cannot be estimated" in note for note in found["notes"])
    assert found["crossed"] is False


def test_factors_that_change_together_cannot_be_told_apart():
    run = [row for row in cells(model=["m", "n"], reasoning=["a", "b"], condition=["provided", "full"])
           if (row["model"], row["reasoning"]) in (("m", "a"), ("n", "b"))]
    found = effects_of(run, np.arange(12).reshape(4, 3) / 12)
    assert [one["factor"] for one in found["factors"]] == ["condition"]
    assert "The effects of these factors cannot be separated: model, reasoning." in found["notes"]


def test_excluded_cells_leave_main_effects_and_drop_the_interaction():
    run = cells(reasoning=["a", "b", "c"], condition=["provided", "full"])[:-1]
    rng = np.random.default_rng(3)
    found = effects_of(run, rng.uniform(size=(5, 40)))
    assert ([one["factor"] for one in found["factors"]], found["interactions"]) == (["reasoning", "condition"], [])
    assert any("reasoning and condition" in note for note in found["notes"])
    assert found["crossed"] is False
    assert sum("in which every level was run" in note for note in found["notes"]) == 2
    assert effects_of(RUN, rng.uniform(size=(6, 40)))["crossed"] is True


def test_where_the_matrix_is_not_crossed_levels_are_compared_where_all_were_asked_and_over_their_own_questions():
    run = rows(*({"reasoning": way, "condition": "full"} for way in "abc"),
               *({"reasoning": way, "condition": "gold"} for way in "ab"))
    values = [[0.4, 0.6, 0.8], [0.1, 0.3, 0.2], [0.2, 0.4, 0.3], [1, 1, None], [0.9, 0.7, None]]
    found = effects_of(run, values)
    ways, conditions = found["factors"]
    assert [(one["level"], one["mean"], one["n"]) for one in ways["levels"]] == [("a", 0.6, 3), ("b", 0.2, 3),
                                                                                ("c", 0.3, 3)]
    assert {pair: one["difference"] for pair, one in contrasts_of(found).items()} == {
        ("a", "b"): -0.4, ("a", "c"): -0.3, ("b", "c"): 0.1}  # c - b in the cells that have both, not over the gold
    assert [(one["level"], one["mean"], one["n"]) for one in conditions["levels"]] == [("full", 0.35, 4),
                                                                                      ("gold", 0.9, 4)]
    assert "Interactions that cannot be estimated: reasoning and condition." in found["notes"]


def test_cells_and_questions_without_the_metric_are_left_out_and_counted():
    found = effects_of(RUN, under_both([[0, 1, 0.5], [1, 1, None], [None] * 3]))
    assert [level["n"] for level in found["factors"][0]["levels"]] == [4, 4]
    assert found["notes"][:2] == ["2 cells without f1 are left out.",
                                  "Up to 1 questions without f1 in some compared cell are left out."]
    nothing = effects_of(WAYS, [[1, None], [None, 1], [1, None], [None, 1]])
    assert (nothing["factors"], nothing["interactions"]) == ([], [])
    assert effects_of(WAYS, [[0, 1], [1, 1], [None] * 2, [None] * 2]) is None


@pytest.mark.slow
@pytest.mark.parametrize(("difficulty", "each"), [(0.0, 1), (0.4, 1), (0.3, 3)])
def test_without_an_effect_tests_find_one_as_rarely_as_they_should_and_intervals_cover(difficulty, each):
    rng = np.random.default_rng(each)
    made = [by_name(effects_of(RUN, simulated(rng, difficulty, each), clusters=np.arange(60) // each))
            for _ in range(300)]
    for name in ("reasoning", "condition", ("reasoning", "condition")):
        assert 0.02 <= np.mean([one[name]["p"] <= 0.05 for one in made]) <= 0.085
    levels = [one["reasoning"]["levels"][0] for one in made]
    assert 0.92 <= np.mean([level["effect_low"] <= 0 <= level["effect_high"] for level in levels]) <= 0.98
    assert 0.92 <= np.mean([level["low"] <= 0.5 <= level["high"] for level in levels]) <= 0.985
    assert np.mean([min(one["p_holm"] for one in entry.values()) <= 0.05 for entry in made]) <= 0.085


GRADES = {"a": [-1.0, 0.0, 0.5, 1.0], "p": [0.1, 0.45, 0.2, 0.25]}  # of mean 0.25


def two_splits(rng, answerable, unanswerable):
    """No cell is better than another; scores hang together by question."""
    def drawn(values, n):
        shared = rng.choice(values["a"], p=values["p"], size=n)
        return np.where(rng.uniform(size=(6, n)) < 0.6, shared, rng.choice(values["a"], p=values["p"], size=(6, n)))

    return np.hstack([drawn(GRADES, answerable), drawn({"a": [0.0, 1.0], "p": [0.5, 0.5]}, unanswerable)])


@pytest.mark.slow
@pytest.mark.parametrize(("answerable", "unanswerable"), [(40, 2), (40, 3), (40, 5), (12, 4), (60, 20)])
def test_a_small_split_makes_no_effect_of_chance(answerable, unanswerable):
    rng = np.random.default_rng(unanswerable)
    splits = [True] * answerable + [False] * unanswerable
    made = [by_name(effects_of(RUN, two_splits(rng, answerable, unanswerable), "unified", answerable=splits))
            for _ in range(200)]
    for name in ("reasoning", "condition", ("reasoning", "condition")):
        found = [entry[name]["p"] for entry in made]
        assert None in found or np.mean([p <= 0.05 for p in found]) <= 0.085
        levels = [level for entry in made for level in entry[name].get("levels", entry[name].get("cells"))]
        assert np.mean([level["effect_low"] <= 1e-9 and level["effect_high"] >= -1e-9 for level in levels]) >= 0.92
        assert np.mean([level["low"] <= 0.375 <= level["high"] for level in levels]) >= 0.9
    corrected = [[one["p_holm"] for one in entry.values() if one["p_holm"] is not None] for entry in made]
    assert np.mean([min(entry) <= 0.05 for entry in corrected]) <= 0.085


def test_two_splits_are_tested_as_welch_does():
    rng = np.random.default_rng(5)
    values = two_splits(rng, 30, 6)[:2]
    found = effects_of(WAYS, under_both(values), "unified", answerable=[True] * 30 + [False] * 6)["factors"][0]
    change = values[1] - values[0]
    assert found["p"] == pytest.approx(stats.ttest_ind(change[:30], -change[30:], equal_var=False).pvalue)


def test_a_true_effect_and_a_true_interaction_are_found_and_told_apart():
    rng = np.random.default_rng(9)
    alone = [by_name(effects_of(RUN, simulated(rng, 0.4, 1, effect=0.15))) for _ in range(60)]
    assert np.mean([one["reasoning"]["p_holm"] < 0.05 for one in alone]) > 0.9
    assert np.mean([one["reasoning", "condition"]["p_holm"] < 0.05 for one in alone]) <= 0.1
    both = [by_name(effects_of(RUN, simulated(rng, 0.4, 1, both=0.3))) for _ in range(60)]
    found = [one["reasoning", "condition"] for one in both]
    assert np.mean([one["p_holm"] < 0.05 for one in found]) > 0.9
    effects = [one["cells"][5]["effect"] for one in found]
    assert np.mean(effects) == pytest.approx(0.3 - 0.15 - 0.1 + 0.05, abs=0.02)


@pytest.mark.slow
def test_the_command_shows_them_and_what_it_cannot_is_one_line(serve, town, ragbed):
    server = serve(town.reply)
    path = town.config(server.url, reasoning=["direct", "least_to_most"], conditions=["provided", "closed-book"])
    assert ragbed("run", path)[0] == 0
    status, out, err = ragbed("effects", town.run, "--metric", "f1")
    assert (status, err) == (0, "")
    assert "town, corrected scoring" in out
    assert "Main effects on f1" in out
    assert "closed-book" in out
    assert "Pairwise comparison of levels: f1" in out
    found = json.loads(ragbed("effects", town.run, "--json")[1])
    stored = json.loads((town.run / "summary.json").read_text())
    assert {name: found[name] for name in stored["effects"]} == stored["effects"]
    assert [(pair["factor"], pair["n"]) for pair in stored["comparisons"]["pairs"]] == [
        ("reasoning", 6), ("reasoning", 5), ("condition", 5), ("condition", 5)]
    ragbed.refuses("effects", town.run, "--metric", "citation_f1", says=["is a metric of a whole set"])
    ragbed.refuses("effects", town.run, "--metric", "accuracy", says=["has no metric accuracy", "unified"])
    assert ragbed("run", town.config(server.url, name="one", reasoning=["direct", "least_to_most"]))[0] == 0
    ragbed.refuses("effects", town.run.parent / "one", says=["at least two varying factors", "`ragbed compare "])
    alone = json.loads((town.run.parent / "one" / "summary.json").read_text())
    assert (len(alone["comparisons"]["pairs"]), alone["effects"]) == (1, None)


def contrasts_of(found, factor="reasoning"):
    return {(one["first"], one["second"]): one for one in by_name(found)[factor]["contrasts"]}


def test_two_levels_differ_by_their_means_over_the_others():
    run = cells(reasoning=["direct", "chain_of_thought"], condition=["provided", "full"])
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
