"""Write docs/commands.md: every command with its arguments and options, from `ragbed COMMAND --help`.

    python bench/commands.py

`make docs` runs it, and a test checks that the page is up to date.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperOption

from ragbed.experiments.cli import PANELS, build_app
from ragbed.experiments.commands.help import leaves, left, right

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
_HEAD = """# Commands

Every command, its arguments and its options. This page is made by `make docs` from the text of `ragbed COMMAND --help`:
do not edit it here. Commands that print a table print JSON with `--json`, which is not listed here. Relative
paths count from the current
folder.

**Exit status.** 0: success. 1: the command worked, but the result is negative: no answer, no reply to any question, a
replay that differs, a failing gate, a figure that `verify` computes differently. 2: an error that you can fix,
explained in one line on stderr, or an exhausted budget.

**Environment.**

| variable | meaning |
|---|---|
| `OPENAI_API_KEY`, `OPENAI_BASE_URL` | for `openai:NAME`; the key is sent to no other host |
| `RAGBED_API_KEY` | for `http(s)://host/v1#NAME` without `key_env`; other keys: [models](models.md) |
| `RAGBED_MODELS` | a folder that is searched for models first |
| `RAGBED_CACHE` | folder for embeddings and pulled models; default: the platform's cache folder |
| `RAGBED_CALL_CACHE` | folder of the calls that all runs share; `off` turns the cache off |
| `RAGBED_INDEX` | the index that `langgraph dev` opens |
| `RAGBED_DATA` | for tests and bench scripts: a folder with public datasets that are not shipped |
"""


def page() -> str:
    """Return the text of docs/commands.md."""
    parts: dict[str, list[str]] = {}
    for words, command in leaves(build_app(), None):
        panel = next((title for title, names in PANELS.items() if " ".join(words) in names), "Guests")
        parts.setdefault(panel, []).append(section(["ragbed", *words], command))
    return "\n".join([_HEAD, *(f"## {panel}\n\n" + "\n".join(found) for panel, found in parts.items())])


def section(words: list[str], command: Any) -> str:
    """Return the section of one command: what it does, and a list of its arguments and options."""
    taken = [one for one in command.params
             if not getattr(one, "hidden", False) and one.name != "help" and getattr(one, "opts", []) != ["--json"]]
    arguments = [one for one in taken if isinstance(one, TyperArgument)]
    options = [one for one in taken if isinstance(one, TyperOption)]
    lines = [f"### {' '.join(words)}", "", " ".join((command.help or "").split()), ""]
    rows = [f"- `{left(one)}`: {right(one)}" for one in [*arguments, *options]]
    return "\n".join(lines + ([*rows, ""] if rows else []))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
