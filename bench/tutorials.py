"""Run the commands of the tutorials and of the README's example, and write their current output into the pages.

    python bench/tutorials.py [docs/tutorial-strategies.md ...]

A test checks that the pages match. Figures in the surrounding text are not updated: read the diff.
"""
from __future__ import annotations

import difflib
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("tutorial-*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def steps(page: Path) -> Iterator[tuple[str, str | list[str]]]:
    """Yield files to write, as (name, text), and commands to run, as (command, lines shown), in the order of the page.
    Of the README only commands whose output is shown."""
    for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "console":
            for one in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *shown = one.splitlines()
                if shown or page != README:
                    yield command, shown
        elif named := re.match(r"# (\w+\.\w+)\b", text):
            yield named[1], text


def follow(page: Path, folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Do what the page says in a folder that has what the repository bundles, and yield each command, the lines that
    the page shows and those that it prints. What a command leaves in the background (`&`) is ended with it."""
    environment = _environment(folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with ExitStack() as servers:
        for said, shown in steps(page):
            if isinstance(shown, str):
                (folder / said).write_text(shown.replace("8700", port), encoding="utf-8")
                continue
            command = said.replace("8700", port)
            if said.endswith("&"):
                server = subprocess.Popen(f"exec {command[:-1]}", shell=True, cwd=folder, env=environment)
                servers.callback(server.wait)
                servers.callback(server.terminate)
                continue
            done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, env={
                **environment, **({"COLUMNS": "400"} if page == README else {})})
            assert done.returncode == 0, (said, done.stderr)
            yield said, shown, [line.rstrip() for line in done.stdout.splitlines()]


def _environment(folder: Path) -> dict[str, str]:
    """Fill the folder, where `ragbed` and `python` are these, and return what its commands see."""
    (folder / "bin").mkdir()
    for name, module in (("ragbed", "-m ragbed"), ("python", "")):
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        command.chmod(0o755)
    for name in ("tests", "experiments"):
        (folder / name).symlink_to(ROOT / name)
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def renewed(page: Path, shown: list[str], printed: list[str]) -> list[str]:
    """Return the lines that replace those of the page.

    In tutorials `...` stands for lines that are left out, and at the end of a line for the rest of it; in the README a
    table has the columns and the first cells that it shows.
    """
    if page == README:
        return _columns(shown, printed)
    lines: list[str] = []
    for line in shown:
        if line == "...":
            lines.append(line)
            continue
        cut = len(line) - 3 if line.endswith("...") else None
        if lines[-1:] == ["..."] and printed:
            alike = [difflib.SequenceMatcher(None, *(re.sub(r"\d", "0", text[:cut]) for text in (line, one))).ratio()
                     for one in printed]  # whatever the figures: the first of those that are alike
            printed = printed[alike.index(max(alike)):]
        for now in printed[:1]:
            lines.append(now if cut is None or len(now) <= cut else f"{now[:cut]}...")
        printed = printed[1:]
    return [*lines, "..."] if printed and lines[-1:] != ["..."] else lines


def _columns(shown: list[str], printed: list[str]) -> list[str]:
    named, *rows = map(_cells, shown)
    for block in "\n".join(printed).split("\n\n"):
        lines = [_cells(line) for line in block.split("\n")]
        header = next((line for line in lines if set(named) <= set(line)), named)
        found = [dict(zip(header, line, strict=False)) for line in lines if line[0] in {row[0] for row in rows}]
        if found:
            table = [named, *([cells[name] for name in named] for cells in found)]
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    return []


def _cells(line: str) -> list[str]:
    return re.split(r"  +", line)


def main(pages: list[Path]) -> None:
    for page in pages:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            for said, shown, printed in follow(page, Path(folder)):
                before, now = ("\n".join([f"$ {said}", *lines]) for lines in (shown, renewed(page, shown, printed)))
                text = text.replace(before, now)
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main([Path(name).resolve() for name in sys.argv[1:]] or PAGES)
