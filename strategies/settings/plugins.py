"""Strategies that are none of the project's: from a Python file, or from an installed package's entry point.

To take one is to execute its code, with all that the user may do: a file is executed where the user names it, or a file
of settings that the user runs, and never for reading what a run left behind.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, get_args

from documents.errors import SettingsError
from documents.types import digest
from strategies.settings.signature import check_function, fitting_functions
from strategies.settings.source import (
    RAISED_BY_CODE,
    aside,
    executed,
    failing_line,
    leading_parameters,
    place_of,
)

Family = Literal["reasoning", "retrieval"]
FAMILIES: tuple[Family, ...] = get_args(Family)
GROUPS: dict[Family, str] = {"reasoning": "ragbed.reasoning", "retrieval": "ragbed.retrieval"}
"""The groups of entry points under which installed packages offer strategies."""
USUAL = "recipe"
"""The function of a file that needs no naming in tables."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A strategy from elsewhere.

    Attributes:
        kind: as settings name it: `my_strategy.py:recipe`, or an entry point's name.
        content: a hash of its source; of a package's, with the package's name and version.
        package: name and version of the package that offers it; empty for a file.
    """

    kind: str
    function: Callable[..., Any]
    content: str
    package: str = ""


def file_of(kind: str) -> tuple[Path, str] | None:
    """The file and the function that a kind names, or None where it names no file."""
    path, colon, name = kind.rpartition(":")
    return (Path(path), name) if colon and path.endswith(".py") else None


def label_of(kind: str) -> str:
    """What tables call a plug-in: the name of its file, with the function where that is not `recipe`."""
    place = file_of(kind)
    if place is None:
        return kind
    return place[0].stem if place[1] == USUAL else f"{place[0].stem}:{place[1]}"


def plugin(family: Family, kind: str, known: tuple[str, ...]) -> Plugin:
    """The strategy of a file `FILE.py:FUNCTION`, relative to the current folder, or of an entry point of that name.

    Args:
        known: the project's own strategies, for those who misspelt one.

    Raises:
        SettingsError: one line that says what is amiss, and where.
    """
    place = file_of(kind)
    if place is not None:
        return _of_file(family, kind, *place)
    if kind.endswith(".py"):
        raise SettingsError(f"{family} strategy {kind}: name its function too, as in {kind}:{USUAL}")
    found = [one for one in entry_points(group=GROUPS[family]) if one.name == kind]
    if not found:
        raise SettingsError(f"unknown {family} strategy {kind!r}; there are: {', '.join(known)}; one of your own is "
                            "FILE.py:FUNCTION")
    if len(found) > 1:
        raise SettingsError(f"{family} strategy {kind} is offered by {' and '.join(map(_package, found))}; uninstall "
                            "one of them")
    return _of_package(family, found[0])


def installed(family: Family, known: tuple[str, ...]) -> Iterator[Plugin | tuple[str, str, str]]:
    """The strategies that installed packages offer; of one that cannot be used, its name, its package and why."""
    for one in sorted(entry_points(group=GROUPS[family]), key=lambda one: (one.name, one.value)):
        if one.name in known:
            yield one.name, _package(one), f"not used: {one.name} is ragbed's own; offer it under another name"
            continue
        try:
            yield plugin(family, one.name, known)
        except SettingsError as error:
            yield one.name, _package(one), f"cannot be used: {error}"


def family_of(kind: str) -> Family:
    """Which family the strategy of a file or of an entry point is of, by how it reads: nothing is executed."""
    place = file_of(kind)
    if place is None:
        return next((family for family, group in GROUPS.items() if entry_points(group=group, name=kind)), "reasoning")
    file, name = place
    return "retrieval" if leading_parameters(place_of(file), str(file), name) == 2 else "reasoning"


def _of_file(family: Family, kind: str, file: Path, name: str) -> Plugin:
    module, content = executed(place_of(file), str(file))
    function = getattr(module, name, None)
    if function is None:
        there = fitting_functions(module, family)
        raise SettingsError(f"{family} strategy {kind}: the file has no function {name!r}; " +
                            (f"of this family it has: {', '.join(there)}" if there else f"it has no {family} strategy"))
    check_function(family, kind, function)
    return Plugin(kind, function, content)


@cache
def _of_package(family: Family, point: EntryPoint) -> Plugin:
    where = f"{family} strategy {point.name}, of {_package(point)}"
    try:
        with aside():
            function = point.load()
    except RAISED_BY_CODE as error:
        raise SettingsError(f"{where}: {point.value}: {failing_line(error)}") from error
    check_function(family, where.removeprefix(f"{family} strategy "), function)
    return Plugin(point.name, function, digest(_package(point), point.value, _source(function)), _package(point))


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _source(function: Callable[..., Any]) -> str:
    """The text of the module that a function is of; empty where it has none."""
    code = getattr(function, "__code__", None)
    file = Path(code.co_filename) if code else Path()
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
