"""Strategies that are none of the project's: from a Python file, or from an installed package's entry point."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from documents.errors import SettingsError
from documents.types import digest


@dataclass(frozen=True, slots=True)
class Plugin:
    """A strategy from elsewhere.

    Attributes:
        kind: as settings name it: `my_strategy.py:recipe`, or an entry point's name.
        label: what tables call it.
        content: a hash of its source.
    """

    kind: str
    label: str
    function: Callable[..., Any]
    content: str


@cache
def plugin(family: str, kind: str) -> Plugin:
    """The strategy of a file `FILE.py:FUNCTION`, or of an entry point of that name.

    Raises:
        SettingsError: one line that says what is missing.
    """
    path, colon, name = kind.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise SettingsError(f"unknown {family} strategy {kind!r}")
    file = Path(path)
    spec = spec_from_file_location(f"ragbed_plugin_{digest(str(file.resolve()))[:8]}", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    label = file.stem if name == "recipe" else f"{file.stem}:{name}"
    return Plugin(kind, label, getattr(module, name), digest(file.read_text(encoding="utf-8")))
