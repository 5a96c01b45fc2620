"""A figure has one interval, whether it stands in a run's table, over its repeats, or in a comparison."""
import json
import random

from factored import Row, cells

from experiments import aggregate
from experiments.analysis.pairs import comparisons
from experiments.analysis.variants import repeated
from experiments.statistics import Clusters


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
        together = repeated(rows, answers, Clusters({}), "corrected")
        own = {row["id"]: row["metrics"]["f1"] for row in rows} | {
            row["cell"]: row["metrics"]["f1"] for row in together}
        found = comparisons(rows, answers, Clusters({}), "f1", "corrected", repeated=together)
        for cell, figures, _ in sides(found["pairs"]):
            assert list(figures.values()) == [own[cell][name] for name in ("mean", "low", "high")]


def test_a_comparison_of_some_questions_has_intervals_over_these(serve, town, ragbed):
    path = town.config(serve(town.reply).url, reasoning=["direct", "least_to_most"], conditions=["given"])
    assert ragbed("run", path)[0] == ragbed("run", path, "--limit", "4")[0] == 0
    found = json.loads(ragbed("compare", town.run, f"{town.run}-limit-4", "--json")[1])["comparisons"]
    rows = json.loads((town.run / "summary.json").read_text())["cells"]
    own = {row["id"]: row["metrics"]["unified"] for row in rows}
    for pair in found:
        assert pair["n"] == 4 < own[pair["first"]]["n"]
        assert (pair["before_low"], pair["before_high"]) != (own[pair["first"]]["low"], own[pair["first"]]["high"])
