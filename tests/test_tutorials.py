"""Tutorials are followed from top to bottom: files are written, commands run, and what the page shows is printed."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("tutorial-*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def missing(shown, printed):
    """The first line that a page shows and that is not printed in its place, or the other way round.

    `...` stands for lines that are left out, and at the end of a line for the rest of it.
    """
    left, skip = [line.rstrip() for line in printed], False
    for line in shown:
        if line == "...":
            skip = True
            continue
        begun = line.removesuffix("...")
        same = str.startswith if begun != line else str.__eq__
        while skip and left and not same(left[0], begun):
            left.pop(0)
        if not left or not same(left[0], begun):
            return line
        left.pop(0)
        skip = False
    return None if skip or not left else left[0]


def steps(page):
    """Files to write, as (name, text), and commands to run, as (command, lines shown), in the order of the page."""
    for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "console":
            for one in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *shown = one.splitlines()
                yield command, shown
        elif named := re.match(r"# (\w+\.\w+)\n", text):
            yield named[1], text


@pytest.fixture
def shell(tmp_path):
    """A shell in a folder that has what the repository bundles, where `ragbed` is this one."""
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "ragbed"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m experiments.cli "$@"\n')
    command.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    for name in ("tests", "experiments"):
        (work / name).symlink_to(ROOT / name)
    return work, {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(page, shell):
    work, environment = shell
    for said, shown in steps(page):
        if isinstance(shown, str):
            (work / said).write_text(shown, encoding="utf-8")
            continue
        done = subprocess.run(said, shell=True, cwd=work, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (said, done.stderr)
        assert missing(shown, done.stdout.splitlines()) is None, said
