"""An installed guest adds a benchmark to settings, their JSON Schema and `ragbed list`."""
import os
import subprocess
import sys

import pytest

from ragbed import guests
from ragbed.documents import SettingsError
from ragbed.experiments.benchmarks import registry
from ragbed.guests import Guest

RIDDLES = '''
from typing import Literal
from ragbed.experiments.benchmarks.base import About, Selection
from ragbed.experiments.question import Benchmark, Question
from ragbed.guests import Guest

class Riddles(Selection):
    """Ask two riddles."""
    about = About(paper="none", licence="CC0", size="2 questions", get="the package")
    kind: Literal["riddles"] = "riddles"
    path: str = "here"

    def whole(self):
        asked = {"a": "What has keys?", "b": "What has teeth?"}
        return Benchmark("riddles", tuple(Question(id, text, True, ("a comb",)) for id, text in asked.items()), {})

GUEST = Guest("riddles", {"benchmark": {"riddles": "riddles:Riddles"}})
'''
USE = """
from ragbed.experiments import read_settings
from ragbed.experiments.settings.schema import settings_schema
from ragbed.experiments.terminal.lists import benchmarks
from ragbed.experiments.settings.run import RunSettings
settings = RunSettings.model_validate({"name": "r", "models": "m", "benchmark": {"kind": "riddles", "limit": 1}})
print([question.id for question in settings.benchmark.load().questions], "Riddles" in settings_schema()["$defs"],
      [row["is"] for row in benchmarks() if row["name"] == "riddles"])
"""


def test_the_benchmark_of_an_installed_guest_is_a_kind_of_settings(tmp_path):
    about = tmp_path / "riddles-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: riddles\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[ragbed.guests]\nriddles = riddles:GUEST\n")
    (tmp_path / "riddles.py").write_text(RIDDLES)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.stdout == "['a'] True ['Ask two riddles.']\n", done.stderr


@pytest.mark.parametrize(("name", "target", "message"), [
    ("new", "ragbed.experiments.question:Benchmark", r"'new' of a guest is not a subclass of .*Literal\['new'\]"),
    ("new", "ragbed.experiments.benchmarks.crest:Crest", "'new' of a guest is not a subclass"),
    ("crest", "ragbed.experiments.benchmarks.crest:Crest", "'crest' of a guest has the name of one of ragbed's")])
def test_a_class_that_cannot_be_a_benchmark_is_refused(monkeypatch, name, target, message):
    monkeypatch.setattr(guests, "installed", lambda: (Guest("theirs", {"benchmark": {name: target}}),))
    with pytest.raises(SettingsError, match=message):
        registry._with_guests()
