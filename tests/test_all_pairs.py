"""Which cells of a run are compared with which, what stands for repeats and seeds, and that a figure has one interval
in a run's table, over its repeats and in a comparison."""
import json
import random

import pytest
from factored import BASE, Row, cells

import ragbed.experiments.analysis.pairs as all_pairs
from ragbed.experiments import aggregate
from ragbed.experiments.analysis.pairs import compare_pairs
from ragbed.experiments.analysis.replicates import summarise_replicates
from ragbed.experiments.guests.effects.effects import estimate_effects
from ragbed.experiments.statistics import Clusters

CLOSED = {"condition": "closed-book", "rules": "closed-book"}


def compared(*cells, scores=None, metric="f1", clusters=None):
    """The comparisons of cells by name, each with the same scores where none are given."""
    run = [{**BASE, **cell, "id": name} for name, cell in cells]
    scores = scores or {row["id"]: [0.0, 0.5, 1.0] for row in run}
    answers = {name: {f"q{place}": Row({metric: value}) for place, value in enumerate(values)}
               for name, values in scores.items()}
    return compare_pairs(run, answers, Clusters(clusters or {}), metric, "corrected")


def pairs(found):
    return [(pair["factor"], pair["first"], pair["second"]) for pair in found["pairs"]]


def test_cells_that_differ_in_two_factors_are_no_pair():
    found = compared(("a", {}), ("b", {"reasoning": "cot"}), ("c", {"reasoning": "cot", "model": "n"}))
    assert pairs(found) == [("model", "b", "c"), ("reasoning", "a", "b")]


def test_what_has_no_effect_closed_book_is_no_difference():
    searched = {"condition": "retrieved", "retrieval": "once"}
    found = compared(("none", CLOSED), ("near", {**searched, "retriever": "near"}),
                     ("far", {**searched, "retriever": "far", "perturbation": "shuffle"}),
                     ("open", {"condition": "provided", "rules": "open"}))
    assert pairs(found) == [("condition", "none", "near"), ("condition", "none", "far"), ("condition", "none", "open")]


def test_a_perturbation_is_compared_with_none():
    found = compared(("plain", {}), ("shuffled", {"perturbation": "shuffle"}),
                     ("more", {"perturbation": "negatives@5"}))
    assert pairs(found) == [("perturbation", "plain", "shuffled"), ("perturbation", "plain", "more"),
                            ("perturbation", "shuffled", "more")]


def test_repeats_and_seeds_are_averaged_and_stand_under_the_first_cell():
    found = compared(("a0", {}), ("b0", {"reasoning": "cot"}), ("a1", {"repeat": 1}),
                     ("b1", {"reasoning": "cot", "repeat": 1}),
                     scores={"a0": [0, 1, 1], "a1": [1, 1, 0], "b0": [1, 1, 1], "b1": [1, 1, 0]}, metric="em")
    pair, = found["pairs"]
    assert (pair["first"], pair["second"], pair["n"]) == ("a0", "b0", 3)
    assert (pair["before"], pair["after"]) == (pytest.approx(2 / 3), pytest.approx(2.5 / 3))
    assert (pair["test"], pair["gained"], pair["lost"]) == ("permutation", 1, 0)
    assert 0 <= pair["before_low"] < pair["before"] < pair["before_high"] <= 1
    assert any("mean over repeats and seeds" in note for note in found["notes"])


def test_what_is_repeated_has_its_figures_over_all_repeats():
    rows = [{**BASE, "id": "a0"}, {**BASE, "id": "a1", "repeat": 1}, {**BASE, "id": "b", "reasoning": "cot"}]
    answers = {name: {f"q{place}": Row({"em": value}) for place, value in enumerate(values)}
               for name, values in {"a0": [1.0, 0.0], "a1": [0.0, 0.0], "b": [1.0, 1.0]}.items()}
    one, = summarise_replicates(rows, answers, Clusters({}), "corrected")
    assert (one["cell"], one["cells"], one["metrics"]["em"]["mean"], one["metrics"]["em"]["n"]) == ("a0", 2, 0.25, 2)
    assert one["metrics"]["em"]["low"] < 0.25 < one["metrics"]["em"]["high"]


def test_shares_are_tested_exactly_and_clusters_together():
    scores = {"a": [0.0] * 8, "b": [1.0] * 8}
    cells = ("a", {}), ("b", {"reasoning": "cot"})
    one, = compared(*cells, scores=scores, metric="em")["pairs"]
    assert (one["test"], one["p"], one["p_holm"], one["clusters"]) == ("McNemar", 2 / 256, 2 / 256, 8)
    two, = compared(*cells, scores=scores, metric="em", clusters={f"q{n}": str(n // 2) for n in range(8)})["pairs"]
    assert (two["test"], two["p"], two["clusters"]) == ("permutation", 2 / 16, 4)


def test_all_have_an_interval_and_p_is_corrected_over_all():
    found = compared(*((name, {"reasoning": name}) for name in "abcd"),
                     scores={name: [0.1 * place + 0.05 * at for at in range(9)] for place, name in enumerate("abcd")})
    assert len(found["pairs"]) == 6
    assert all(pair["low"] < pair["difference"] < pair["high"] for pair in found["pairs"])
    assert {pair["p"] for pair in found["pairs"]} == {2 / 512}
    assert {pair["p_holm"] for pair in found["pairs"]} == {12 / 512}
    assert found["notes"][-1].startswith("p (Holm) is corrected for 6 comparisons")


def test_one_cell_has_no_comparison_and_cells_without_the_metric_are_counted():
    assert compared(("a", {})) is None
    found = compared(("a", {}), ("b", {"reasoning": "cot"}), scores={"a": [1.0, 1.0], "b": [None, None]})
    assert (found["pairs"], found["notes"]) == ([], ["1 pairs of cells have no question with f1 in both."])


def test_of_too_many_pairs_those_against_the_first_are_tested(monkeypatch):
    cells = [(f"{way}{model}", {"reasoning": way, "model": model}) for way in "abcd" for model in "mno"]
    assert len(compared(*cells)["pairs"]) == 3 * 6 + 4 * 3
    monkeypatch.setattr(all_pairs, "MAX_PAIRS", 20)
    found = compared(*cells)
    assert len(found["pairs"]) == 3 * 3 + 4 * 2
    assert any(" of 30 pairs of cells that differ in one factor are tested" in note for note in found["notes"])
    monkeypatch.setattr(all_pairs, "MAX_PAIRS", 10)
    assert {pair[1] for pair in pairs(compared(*cells))} == {"am"}


POOL = [{"reasoning": way, "repeat": repeat, **shown} for way in "ab" for repeat in (0, 1)
        for shown in (CLOSED, {"rules": "open"}, {"perturbation": "shuffle"}, {"condition": "full"})]


def random_run(rng):
    """A few cells of few questions, some of them without a score, some unanswerable, some over one document."""
    run = [{**BASE, **cell, "id": str(place)} for place, cell in enumerate(rng.sample(POOL, rng.randint(2, 6)))]
    metric, count = rng.choice(["unified", "f1", "em", "invalid_citations"]), rng.choice([1, 2, 3, 12])
    value = rng.choice([lambda: 1.0, lambda: float(rng.random() < 0.5), lambda: float(rng.randint(0, 4)) / 4])
    value = (lambda: float(rng.random() < 0.5)) if metric == "em" else value
    splits = [rng.random() < 0.7 for _ in range(count)]
    answers = {row["id"]: {f"q{place}": Row({metric: None if rng.random() < 0.1 else value()}, kind)
                           for place, kind in enumerate(splits)} for row in run}
    return run, answers, metric, Clusters({f"q{place}": str(place // rng.choice([1, 2])) for place in range(count)})


def test_whatever_the_scores_no_figure_stands_without_an_interval_that_holds_it_and_no_p_is_0():
    rng = random.Random(1)
    for _ in range(80):
        run, answers, metric, of = random_run(rng)
        cells = [aggregate(list(rows.values()), clusters=[of.of[name] for name in rows], resamples=200)[metric]
                 for rows in answers.values()]
        found = estimate_effects(run, answers, of, metric)
        entries = [] if found is None else [*found["factors"], *found["interactions"]]
        levels = [level for entry in entries for level in entry.get("levels", entry.get("cells"))]
        made = compare_pairs(run, answers, of, metric, "corrected")["pairs"]
        figures = [*((cell["low"], cell["mean"], cell["high"]) for cell in cells if cell["mean"] is not None),
                   *((level["low"], level["mean"], level["high"]) for level in levels),
                   *((level["effect_low"], level["effect"], level["effect_high"]) for level in levels),
                   *((pair["low"], pair["difference"], pair["high"]) for pair in made)]
        if metric != "invalid_citations":  # whose range has no end
            assert all(low - 1e-9 <= value <= high + 1e-9 and low < high for low, value, high in figures)
        assert all(one["p"] is None or 0 < one["p"] <= one["p_holm"] <= 1 for one in [*entries, *made])


def sides(pairs):
    return [(pair[side], {name: pair[name] for name in (when, f"{when}_low", f"{when}_high")}, pair["n"])
            for pair in pairs for side, when in (("first", "before"), ("second", "after"))]


def test_a_comparison_of_all_questions_has_the_intervals_of_its_cells(serve, town, ragbed):
    for repeats in (1, 2):
        path = town.config(serve(town.reply).url, name=f"asked{repeats}", reasoning=["direct", "least_to_most"],
                           repeats=repeats)
        assert ragbed("run", path)[0] == 0
        folder = town.run.parent / f"asked{repeats}"
        summary = json.loads((folder / "summary.json").read_text())
        metric = summary["comparisons"]["metric"]
        own = {row["id"]: row["metrics"][metric] for row in summary["cells"]}
        own |= {row["cell"]: row["metrics"][metric] for row in summary["repeated"]}
        assert len(summary["repeated"]) == (0 if repeats == 1 else 2)
        printed = json.loads(ragbed("compare", folder, "--json")[1])["comparisons"]
        for cell, figures, n in sides([*summary["comparisons"]["pairs"], *printed]):
            assert own[cell]["n"] == n
            assert list(figures.values()) == [own[cell][name] for name in ("mean", "low", "high")]


def test_over_repeats_and_without_them_the_intervals_are_those_of_the_table():
    rng = random.Random(1)
    for repeats in ([0], [0, 1]):
        run = cells(reasoning=["a", "b"], repeat=repeats)
        answers = {row["id"]: {f"q{place}": Row({"f1": rng.random()}) for place in range(12)} for row in run}
        rows = [{**row, "metrics": aggregate(list(answers[row["id"]].values()))} for row in run]
        together = summarise_replicates(rows, answers, Clusters({}), "corrected")
        own = {row["id"]: row["metrics"]["f1"] for row in rows} | {
            row["cell"]: row["metrics"]["f1"] for row in together}
        found = compare_pairs(rows, answers, Clusters({}), "f1", "corrected", repeated=together)
        for cell, figures, _ in sides(found["pairs"]):
            assert list(figures.values()) == [own[cell][name] for name in ("mean", "low", "high")]


def test_a_comparison_of_some_questions_has_intervals_over_these(serve, town, ragbed):
    path = town.config(serve(town.reply).url, reasoning=["direct", "least_to_most"], conditions=["provided"])
    assert ragbed("run", path)[0] == ragbed("run", path, "--limit", "4")[0] == 0
    found = json.loads(ragbed("compare", town.run, f"{town.run}-limit-4", "--json")[1])["comparisons"]
    rows = json.loads((town.run / "summary.json").read_text())["cells"]
    own = {row["id"]: row["metrics"]["unified"] for row in rows}
    for pair in found:
        assert pair["n"] == 4 < own[pair["first"]]["n"]
        assert (pair["before_low"], pair["before_high"]) != (own[pair["first"]]["low"], own[pair["first"]]["high"])
