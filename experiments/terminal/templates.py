"""Writing the files that a strategy of one's own begins with."""
from __future__ import annotations

import re
import sys
from importlib import resources
from pathlib import Path

from documents.errors import SettingsError
from strategies.catalogue import REASONING, RETRIEVAL


def write_strategy(name: str, family: str) -> None:
    """Write `NAME.py` and `test_NAME.py` into the current folder.

    Raises:
        SettingsError: the name cannot be a strategy's, or a file is there already.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name.startswith("test_"):
        raise SettingsError(f"{name!r:.60} cannot name a strategy; give a name of at most 40 small letters, digits and "
                            "_, such as look_twice")
    if name in (*REASONING, *RETRIEVAL):
        raise SettingsError(f"{name} is a strategy of ragbed's own; give another name")
    if name in sys.stdlib_module_names:
        raise SettingsError(f"{name} is a module of Python's own; give another name")
    texts = {Path(f"{name}.py"): _template(family), Path(f"test_{name}.py"): _template("test")}
    there = next((path for path in texts if path.exists()), None)
    if there is not None:
        raise SettingsError(f"{there} is there already; give another name, or remove it first")
    for path, text in texts.items():
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text.replace("NAME", name))
        except OSError as error:
            raise SettingsError(f"{path}: cannot be written: {error.strerror}") from error


def _template(name: str) -> str:
    return resources.files("experiments").joinpath("data", "templates", f"{name}.py.txt").read_text(encoding="utf-8")
