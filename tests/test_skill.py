"""The skill for coding agents: its form, and each of its commands as it stands there, in order."""
import re
import shlex
from pathlib import Path

import yaml

SKILL = Path(__file__).parent.parent / "skills" / "ragbed" / "SKILL.md"
TEXT = SKILL.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_the_skill_has_the_form_that_agents_expect():
    assert len(TEXT.splitlines()) <= 150
    about = yaml.safe_load(TEXT.split("---\n")[1])
    assert set(about) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert about["name"] == SKILL.parent.name
    assert 0 < len(about["description"]) <= 1024
    assert len(about["compatibility"]) <= 500


def test_each_command_of_the_skill_works(ragbed, serve, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server = serve(lambda body: "<Answer>24 months, please [1]</Answer>")
    shown = dict(BLOCKS)
    (tmp_path / "questions.csv").write_text(shown["csv"])
    (tmp_path / "prompts.yaml").write_text(shown["yaml"].replace("MODEL", f"{server.url}#m", 1))
    (tmp_path / "polite.py").write_text(shown["python"])
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "terms.md").write_text("# Terms\n\nThe warranty lasts 24 months.\n")
    (tmp_path / "docs" / "refunds.md").write_text("# Refunds\n\nRefunds are paid within 14 days.\n")
    commands = [line for kind, block in BLOCKS if kind == "console" for line in block.splitlines()]
    assert len(commands) == 12
    for line in commands:
        status, out, err = ragbed(*shlex.split(line.removeprefix("$ ragbed ")))
        assert (status, bool(out or err)) == (0, True), f"{line}\n{err}"
