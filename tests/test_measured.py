"""What a strategy measures on its way: kept in the record, averaged like a score, and never its own score."""
import csv

import pytest

from ragbed.agents import Scripted
from ragbed.agents.scripted import answer_reply, unsatisfied_reply
from ragbed.experiments import METRICS, Scored, find_metric, score
from ragbed.experiments.metrics import custom_metrics
from ragbed.experiments.metrics.judged import MEASURED
from ragbed.strategies import REASONING

PLUGIN = '''
from dataclasses import replace
from ragbed.strategies.reasoning.direct import direct
from ragbed.strategies.types import Recipe, Task


def recipe(task: Task) -> Recipe:
    draft = yield from direct(task)
    return replace(draft, figures={"length": float(len(draft.text)), "unified": 1.0})
'''


@pytest.mark.parametrize(("figures", "scores"), [
    ({"agreement": 0.4}, {"agreement": 0.4}), ({"revised": True}, {"revised": 1.0}),
    ({"em": 1.0, "recall": 0.5}, {"figure_em": 1.0, "figure_recall": 0.5}), ({"my own@5": 2}, {"my_own_5": 2.0}),
    ({"Hops": 3, "hops": 4}, {"hops": 3.0}), ({"2nd": 1, "": 2, "é": 3}, {"figure_2nd": 1.0, "figure_": 2.0}),
    ({"a" * 99: 1.0}, {"a" * 40: 1.0})])
def test_figures_are_scores_under_names_that_no_metric_has(figures, scores):
    item = Scored("answered", True, "x", figures=figures)
    assert score(item, groups=()) == scores
    assert score(item, groups=("form",)) == {"well_formed": 1.0, "tagged": None, **scores}


def test_those_of_ragbeds_strategies_are_metrics_by_name_and_of_no_group():
    assert all(str(find_metric(name)) == name for name in ("agreement", "sentences_supported", "samples"))
    assert custom_metrics([{"metrics": {"em": {}, "agreement": {}}}, {"metrics": {"recall@5": {}, "own": {}}}]) == [
        "agreement", "own"]
    assert "recall" in METRICS


def test_every_figure_of_ragbeds_strategies_is_a_metric_and_every_such_metric_a_figure():
    def good(call):
        return answer_reply(call, "Paris [1]")

    def lines(call):
        text = '[1] "Paris is the capital of France."\n| Paris | is | the capital | [1] |\nwhole = 2 + 2'
        return good(call) if call.purpose == "answer" else text

    found = set()
    for said in [name for name in REASONING if name != "few_shot"] + [{"kind": "self_consistency", "tokens": 500}]:
        for reply in (good, lines, unsatisfied_reply):
            answer = Scripted(reply, ["Paris is the capital of France."]).play(said, "What is the capital of France?")
            found.update(answer.figures)
    assert found == {metric.name for metric in MEASURED}


def test_a_plugins_figures_are_columns_of_its_cells_alone_and_cannot_make_its_score(serve, town, ragbed, tmp_path):
    file = tmp_path / "long.py"
    file.write_text(PLUGIN)
    kind = f"{file}:recipe"
    direct, own = ragbed.json("run", town.config(serve(town.reply).url, reasoning=["direct", kind]))["cells"]
    assert set(own["metrics"]) - set(direct["metrics"]) == {"length", "figure_unified"}
    lengths = [len(one["result"]["text"]) for one in town.records() if one["result"]["cell"] == own["id"]]
    assert own["metrics"]["length"]["mean"] == pytest.approx(sum(lengths) / 6)
    assert own["metrics"]["length"]["low"] < own["metrics"]["length"]["mean"] < own["metrics"]["length"]["high"]
    assert own["metrics"]["unified"] == direct["metrics"]["unified"]
    status, shown, _ = ragbed("run", town.folder / "town.yaml", "--full")
    assert (status, "length" in shown) == (0, True)
    assert ragbed("export", town.run, tmp_path / "all.csv")[0] == 0
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert [row["score.length"] for row in rows if row["cell"] == direct["id"]] == [""] * 6
    assert "measured" in ragbed("show", town.run, "2")[1]
    assert ragbed("verify", town.run)[0] == 0
