"""`ragbed new strategy`: write a strategy to start from, and its test."""
from __future__ import annotations

import re
import sys
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from ragbed.documents.errors import SettingsError
from ragbed.strategies.catalogue import HISTORY, REASONING, RETRIEVAL


def new_strategy(name: Annotated[str, typer.Argument(help="Name of the strategy and its file: letters, digits and _.")],
                 retrieval: Annotated[bool, typer.Option("--retrieval", help="Create a retrieval strategy instead.")
                                      ] = False) -> None:
    """Create a custom strategy and its test in the current folder."""
    from ragbed.experiments.terminal.display import say

    family = "retrieval" if retrieval else "reasoning"
    write_strategy(name, family)
    say(f"wrote {name}.py and test_{name}.py; next:")
    say(f"  ragbed check strategy {name}.py:recipe")
    say(f"  ragbed run demo --limit 5 --name {name} --{family} {name}.py:recipe"
        f"{' --condition retrieved' if retrieval else ' --reasoning direct'}")
    say(f"  ragbed report runs/{name}")


def write_strategy(name: str, family: str) -> None:
    """Write `NAME.py` and `test_NAME.py` into the current folder.

    Raises SettingsError if the name is not allowed, or a file exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name.startswith("test_"):
        raise SettingsError(f"{name!r:.60} is not a strategy name; use at most 40 lower-case letters, digits and _, "
                            "such as look_twice")
    if name in (*REASONING, *RETRIEVAL, *HISTORY):
        raise SettingsError(f"{name} is a built-in strategy; choose another name")
    if name in sys.stdlib_module_names:
        raise SettingsError(f"{name} is a Python module; choose another name")
    templates = resources.files("ragbed.experiments").joinpath("data", "templates")
    texts = {Path(file): templates.joinpath(f"{template}.py.txt").read_text(encoding="utf-8")
             for file, template in ((f"{name}.py", family), (f"test_{name}.py", f"{family}_test"))}
    there = next((path for path in texts if path.exists()), None)
    if there is not None:
        raise SettingsError(f"{there} exists; choose another name, or remove it")
    for path, text in texts.items():
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text.replace("NAME", name))
        except OSError as error:
            raise SettingsError(f"{path}: cannot write: {error.strerror}") from error
