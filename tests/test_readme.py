"""What the README shows is what there is."""
import re
from pathlib import Path

import pytest
import yaml

from experiments.cli import app
from experiments.settings.file import check_settings
from experiments.settings.matrix import combinations_of
from strategies.catalogue import CRESTS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(containing):
    """The fenced block that holds a text."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return next(text for text in blocks if containing in text)


def test_every_file_of_the_annotated_tree_exists():
    folder = ROOT
    for line in block("documents/  ").splitlines():
        names = re.findall(r"[\w/]+\.(?:py|md)\b|^ *\w+/", line)
        if not line.startswith(" "):
            folder = ROOT / names[0] if names[0].endswith("/") else ROOT
        for name in names:
            place = (ROOT if not line.startswith(" ") else folder) / name.strip()
            assert place.exists(), line


def test_the_example_settings_are_valid():
    settings = check_settings({"name": "compare", **yaml.safe_load(block("benchmark: {kind"))}, "README.md")
    assert [one.said for one in settings.reasoning] == ["direct", "chain_of_thought", "least_to_most"]


def test_the_example_of_a_matrix_leaves_out_and_brings_in():
    settings = check_settings({"name": "matrix", **yaml.safe_load(block("# matrix.yaml"))}, "README.md")
    made = combinations_of(settings)
    assert len(settings.exclude) == len(settings.include) == 1
    assert len(made) == 2 * (5 * 3 - 1) * 2 * 2 + 2


def test_every_command_is_in_the_table():
    commands = {(command.name or command.callback.__name__).replace("_", "-") for command in app.registered_commands}
    shown = set(re.findall(r"^\| `ragbed ([\w-]+)", README, re.MULTILINE))
    groups = {group.name for group in app.registered_groups}
    assert commands | groups == shown


@pytest.mark.parametrize("name", CRESTS)
def test_every_strategy_is_in_the_tree(name):
    assert name in block("documents/  ")
