"""A finished run is scored again from its records alone, with its journal empty and its benchmark removed."""
import json
import shutil

import pytest

from ragbed.experiments import Plan, RunFolder, aggregate, read_settings
from ragbed.experiments.guests.rescoring.rescore import rescore


@pytest.fixture
def finished(town):
    """The folder of a finished run, whose server has ended, and its settings, cells and scheme."""
    settings = read_settings(town.run / "config.yaml")
    benchmark = settings.benchmark.load()
    shutil.rmtree(town.crest)
    folder = RunFolder.existing(town.run)
    folder.database.put("DELETE FROM calls", ())
    folder.database.put("DELETE FROM pins WHERE name = 'seal'", ())  # nothing shows that they are gone
    folder.database.flush()
    yield folder, settings, Plan.of(settings, benchmark).cells, benchmark.scheme
    folder.close()


def test_scoring_again_gives_the_scores_that_are_recorded(finished):
    folder, settings, cells, scheme = finished
    recorded = [record.result for record in folder.records(traces=True)]
    again = list(rescore(folder, cells, scheme, settings.scoring))
    assert again == [result.model_copy(update={"trace": ()}) for result in recorded]
    assert len(again) == 12


def test_the_other_scoring_is_had_without_asking_anybody(finished):
    folder, _, cells, scheme = finished
    published = list(rescore(folder, cells[:1], scheme, "as-published"))
    assert {result.cell for result in published} == {cells[0].id}
    assert [result.scores["unified"] for result in published if result.outcome == "malformed"] == [None]
    assert aggregate(published, "as-published")["unified"]["n"] == 5


def state(town):
    return town.hashes(), (town.run / "summary.json").read_bytes(), (town.run / "config.yaml").read_bytes()


def test_the_command_shows_what_differs_and_leaves_the_run_as_it_is(finished, town, ragbed):
    before = state(town)
    status, out, _ = ragbed("rescore", town.run)
    assert status == 0
    assert "No figure differs from the run's." in out
    status, out, err = ragbed("rescore", town.run, "--scoring", "as-published")
    assert "town: as-published scoring, recomputed, judge lexical" in out
    assert "in the run (corrected)" in out
    assert "the verdicts are those of the run" in err
    found = json.loads(ragbed("rescore", town.run, "--scoring", "as-published", "--json")[1])
    summary = json.loads(before[1])
    assert [cell["id"] for cell in found["cells"]] == [cell["id"] for cell in summary["cells"]]
    old, new = (rows[0]["metrics"]["unified"] for rows in (summary["cells"], found["cells"]))
    assert old["mean"] != new["mean"]
    assert {"cell": found["cells"][0]["id"], "name": "direct", "metric": "unified", "before": old["mean"],
            "before_low": old["low"], "before_high": old["high"], "now": new["mean"], "now_low": new["low"],
            "now_high": new["high"]} in found["changed"]
    assert state(town) == before


def test_a_metric_that_the_run_never_had_is_computed_from_its_records(finished, town, ragbed):
    before = state(town)
    named = "--metric", "support_f1", "--metric", "squad_em"
    found = json.loads(ragbed("rescore", town.run, *named, "--json")[1])
    assert found["columns"] == ["support_f1", "squad_em"]
    asked = [cell["metrics"]["squad_em"]["n"] for cell in found["cells"]]
    assert asked == [6, 6]
    assert {one["metric"] for one in found["changed"]} == {"support_f1", "squad_em"}
    assert {one["before"] for one in found["changed"]} == {None}
    out = ragbed("rescore", town.run, *named)[1]
    assert "support_f1" in out
    assert "unified" not in out
    assert "No figure differs" in ragbed("rescore", town.run, "--metric", "citation_f1")[1]
    assert "mrr: no question of this run has it" in ragbed("rescore", town.run, "--metric", "mrr")[2]
    ragbed.refuses("rescore", town.run, "--metric", "graded_em",
                   says=["graded_em needs verdicts by a rubric that this run does not use"])
    ragbed.refuses("rescore", town.run, "--metric", "squad", says=["unknown metric 'squad'"])
    assert state(town) == before


def test_without_a_finished_run_there_is_nothing_to_score(ragbed, finished, town, tmp_path):
    ragbed.refuses("rescore", tmp_path / "none", says=["holds no run"])
    (town.run / "summary.json").unlink()
    ragbed.refuses("rescore", town.run, says=["has not finished"])


def test_an_as_published_run_scored_again_corrected_has_the_figures_of_a_corrected_run(serve, town, ragbed):
    def cut(body):  # the published code takes all of a reply without tags for the answer
        return {"text": "Town 1 has 111 people [1], and", "finish_reason": "length"}

    figures = []
    for scoring in ("as-published", "corrected"):
        path = town.config(serve(cut).url, file=scoring, scoring=scoring, reasoning="chain_of_thought")
        assert ragbed("run", path)[0] == 0
        again = json.loads(ragbed("rescore", town.run.parent / scoring, "--scoring", "corrected", "--json")[1])
        figures.append({name: again["cells"][0]["metrics"].get(name) for name in ("unified", "correct", "wrong")})
    assert figures[0] == figures[1]
