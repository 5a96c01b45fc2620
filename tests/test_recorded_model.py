"""Recorded models: a cassette's calls answer beside a live model, and what it does not hold is a failure."""
import json

import pytest

from ragbed.experiments.guests.exports.cassettes import export_cassette
from ragbed.experiments.runs.finished import open_finished


@pytest.fixture
def recorded(serve, town, ragbed):
    """Records the town's run, closes its server, and returns the model that is in the file."""
    server = serve(town.reply)
    assert ragbed("run", town.config(server.url, "first", reasoning=["direct", "least_to_most"]))[0] == 0
    with open_finished(town.folder / "runs" / "first") as run:
        export_cassette(run, town.folder / "first.gz", {"model": "Tiny-1B, sha256 0a1b", "date": "2026-11-23"})
    server.close()
    server.close = lambda: None
    return f"recorded:{town.folder / 'first.gz'}"


def by_model(folder):
    with open_finished(folder) as run:
        models = {cell.id: cell.model for cell in run.cells}
        rows = [(models[one.result.cell], one) for one in run.folder.records()]
    return {name: [one for model, one in rows if model == name] for name in dict(rows)}


def test_a_recorded_model_answers_beside_a_live_one_and_says_that_it_is_recorded(serve, town, ragbed, recorded):
    live = serve(lambda _: "<Answer>Nobody knows [1]</Answer>")
    status, out, err = ragbed("run", town.config(live.url, reasoning=["direct", "least_to_most"],
                                                 models=[recorded, f"{live.url}#m2"]), "--full")
    assert status == 0, err
    assert f"The replies of {recorded} are recorded: Tiny-1B, sha256 0a1b, 2026-11-23." in " ".join(out.split())
    ours, theirs = (by_model(town.run)[name] for name in (recorded, f"{live.url}#m2"))
    before, = by_model(town.folder / "runs" / "first").values()
    assert [(one.result.text, one.result.usage) for one in ours] == [
        (one.result.text, one.result.usage) for one in before]
    assert {one.timing.attempts for one in ours} == {0}
    assert {one.result.text for one in theirs} == {"Nobody knows [1]"}


def test_what_was_not_recorded_is_a_failure_and_the_rest_is_answered(town, ragbed, recorded):
    town.write([*(town.row(number) for number in range(6)), town.row(6, query="Who is the mayor?")])
    assert ragbed("run", town.config("", models=[recorded]))[0] == 0
    *there, new = by_model(town.run)[recorded]
    assert "replay_miss" not in {one.result.outcome for one in there}
    assert (new.result.outcome, new.result.failure.kind) == ("error", "replay_miss")
    assert "has no reply to this call" in new.result.failure.message


def test_a_recording_that_is_none_is_refused_in_a_line(town, ragbed, tmp_path):
    ragbed.refuses("run", town.config("", models=["recorded:nobody"]), says=["recorded:nobody", "name a cassette file"])
    (tmp_path / "x.gz").write_text(json.dumps({}))
    ragbed.refuses("run", town.config("", models=[f"recorded:{tmp_path / 'x.gz'}"]), says=["is not a cassette"])
