"""`from ragbed.experiments import run, open_run`: a run from Python, and its figures as a frame."""
import asyncio

import pytest
import yaml

from ragbed.documents import RunError, SettingsError
from ragbed.experiments import open_run, run


def test_a_run_from_a_file_is_the_run_of_the_command_line(serve, town, ragbed):
    config = town.config(serve(town.reply).url)
    with run(config) as made:
        frame = made.frame()
        assert [record.result.question for record in made.records()] == list(frame["question"])
        cell, = made.summary["cells"]
        assert list(made.cells) == ["direct"]
        assert [view["name"] for view in made.summary["views"]] == list(made.views)
        assert made.views["causes"].section
    assert len(frame) == cell["n"] == 6
    assert frame["outcome"].value_counts().to_dict() == {name: n for name, n in cell["outcomes"].items() if n}
    assert frame["score.correct"].mean() == pytest.approx(cell["metrics"]["correct"]["mean"])
    before = town.hashes()
    assert ragbed("run", config)[0] == 0
    assert town.hashes() == before
    with open_run(town.run) as opened:
        assert opened.frame().equals(frame)


def test_settings_may_be_a_dict_and_the_loop_of_a_notebook_may_be_running(serve, town):
    content = {"name": "town", **yaml.safe_load(town.config(serve(town.reply).url).read_text())}

    async def in_a_notebook():
        with run(content) as made:
            return made.path

    assert asyncio.run(in_a_notebook()) == town.run


def test_what_is_no_single_run_is_refused(tmp_path, town, serve):
    with pytest.raises(RunError, match="holds no run"):
        open_run(tmp_path)
    content = {"name": "two", **yaml.safe_load(town.config(serve(town.reply).url).read_text())}
    with pytest.raises(SettingsError, match="these settings describe 2 runs"):
        run({**content, "benchmark": [content["benchmark"]] * 2})
