"""Load strategies from a user's Python file or an installed package's entry point, and check that they follow the
protocol.

Loading one executes its code with the user's rights. A file is executed only if the user names it, directly or in a
settings file. Reading a stored run executes nothing.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ragbed import guests
from ragbed.documents.errors import RecipeFailed, SettingsError, did_you_mean
from ragbed.documents.types import digest
from ragbed.documents.user_code import UserCode
from ragbed.strategies.protocol import check_asked, check_draft
from ragbed.strategies.settings.parameters import parameter_hints
from ragbed.strategies.settings.source import execute_file, resolve_file
from ragbed.strategies.types import Family, Passage

DEFAULT_FUNCTION = "recipe"  # tables omit this function name
_GIVEN = {"reasoning": ("task",), "retrieval": ("task", "query"), "history": ("task",)}


def check_function(family: str, kind: str, function: Callable[..., Any]) -> None:
    """Check that a function is a strategy of the family. Raises SettingsError if it is not a generator function,
    belongs to the other family, or its settings are not annotated parameters after a star."""
    named = str(getattr(function, "__name__", DEFAULT_FUNCTION))
    where, shape = f"{family} strategy {kind}", f"def {named}({', '.join(_GIVEN[family])}, *, ...)"
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
        raise SettingsError(f"{where}: it is async; a recipe must be a plain generator function: write {shape}")
    if not inspect.isgeneratorfunction(function):
        what = "is a function without a yield" if callable(function) else f"is not a function but {function!r:.40}"
        raise SettingsError(f"{where}: {named} {what}; a recipe yields what it asks for, or ends with "
                            "`return (yield from ...)`")
    given, collects = _leading(function)
    if len(given) == len(_GIVEN[family]) and not collects:
        parameter_hints(function)
        return
    other = "reasoning" if family == "retrieval" else "retrieval"
    if given == _GIVEN[other]:
        raise SettingsError(f"{where}: it takes {' and '.join(given)}, as {other} strategies do; name it under {other}")
    raise SettingsError(f"{where}: expected {shape}, its settings after the star, not ({', '.join(given)}"
                        f"{', and what it collects with a star' if collects else ''})")


def _leading(function: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    known = inspect.signature(function).parameters.values()
    return (tuple(one.name for one in known if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)),
            any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in known))


def guard_recipe(family: Family, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a plug-in's recipe: check the values it yields and returns, and turn its errors into a one-line
    RecipeFailed. `kind` is its name in settings."""

    def failed(said: str) -> RecipeFailed:
        return RecipeFailed(f"{kind}: {said}")

    def checked(check: Callable[[Any], object], value: Any) -> Any:
        try:
            with UserCode(failed):  # formatting a value runs its code
                check(value)
        except RecipeFailed as error:
            raise error if error.__cause__ else failed(str(error)) from None
        return value

    @wraps(function)
    def recipe(*given: Any, **values: Any) -> Generator[Any, Any, Any]:
        inner, result = function(*given, **values), None
        try:
            while True:
                try:
                    with UserCode(failed, StopIteration):
                        asked = inner.send(result)
                except StopIteration as end:
                    return checked(_CHECKS[family], end.value)
                result = yield checked(check_asked, asked)
        finally:
            with UserCode(failed):
                inner.close()

    return recipe


def _check_answer(value: Any) -> None:
    if check_draft(value).gathered is not None:
        raise RecipeFailed("the strategy returned a draft with gathered, which only search_only may set")


def _check_evidence(value: Any) -> None:
    if not (isinstance(value, tuple) and all(isinstance(one, Passage) for one in value)):
        raise RecipeFailed(f"the strategy returned {value!r:.60}; it must return the evidence, a tuple of passages "
                           "that searches found")


def _check_question(value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        raise RecipeFailed(f"the strategy returned {value!r:.60}; it must return the question as a string")


_CHECKS = {"reasoning": _check_answer, "retrieval": _check_evidence, "history": _check_question}


def offered_strategies(family: Family) -> list[EntryPoint]:
    """Return the entry points of installed strategies, by name."""
    group = f"ragbed.{family}"
    of_guests = [EntryPoint(name, target, group) for guest in guests.installed()
                 for name, target in guest.adds.get(family, {}).items()]
    return sorted([*entry_points(group=group), *of_guests], key=lambda one: (one.name, one.value))


@dataclass(frozen=True, slots=True)
class Plugin:
    """A loaded strategy of a file or package."""

    kind: str  # in settings: `my_strategy.py:recipe`, or an entry point's name
    function: Callable[..., Any]
    content: str  # hash of its source, and of name and version of its package
    package: str = ""  # name and version of its package; empty for a file


def parse_file_kind(kind: str) -> tuple[Path, str] | None:
    """Split `FILE.py:FUNCTION`; return None if a kind does not name a file."""
    path, colon, name = kind.rpartition(":")
    return (Path(path), name) if colon and path.endswith(".py") else None


def plugin_label(kind: str) -> str:
    """Return a plug-in's name in tables: the file's name, and the function unless it is `recipe`."""
    place = parse_file_kind(kind)
    if place is None:
        return kind
    return place[0].stem if place[1] == DEFAULT_FUNCTION else f"{place[0].stem}:{place[1]}"


def load_plugin(family: Family, kind: str, known: tuple[str, ...]) -> Plugin:
    """Load the strategy of `FILE.py:FUNCTION`, relative to the current folder, or of an entry point. Raises
    SettingsError with the reason and the place; for an unknown name, the message lists the `known` ones."""
    place = parse_file_kind(kind)
    if place is not None:
        return _of_file(family, kind, *place)
    if kind.endswith(".py"):
        raise SettingsError(f"{family} strategy {kind}: name its function too, as in {kind}:{DEFAULT_FUNCTION}")
    found = [one for one in offered_strategies(family) if one.name == kind]
    if not found:
        raise SettingsError(f"unknown {family} strategy {kind!r}; "
                            f"{did_you_mean(kind, known)}choose from: {', '.join(known)}; write your own "
                            "strategy as FILE.py:FUNCTION")
    if len(found) > 1:
        raise SettingsError(f"{family} strategy {kind} is provided by {' and '.join(map(_package, found))}; uninstall "
                            "one of them")
    return _of_package(family, found[0])


def installed_plugins(family: Family, known: tuple[str, ...]) -> Iterator[Plugin | tuple[str, str, str]]:
    """Yield the strategies of installed packages. If a strategy cannot be used, yield its name, its package and the
    reason."""
    for one in offered_strategies(family):
        if one.name in known:
            yield one.name, _package(one), f"not used: {one.name} is ragbed's own; offer it under another name"
            continue
        try:
            yield load_plugin(family, one.name, known)
        except SettingsError as error:
            yield one.name, _package(one), f"cannot be used: {error}"


def _of_file(family: Family, kind: str, file: Path, name: str) -> Plugin:
    module, content = execute_file(resolve_file(file), str(file))
    function = getattr(module, name, None)
    if function is None:
        there = [name for name, value in vars(module).items() if inspect.isgeneratorfunction(value)
                 and value.__module__ == module.__name__ and len(_leading(value)[0]) == len(_GIVEN[family])]
        raise SettingsError(f"{family} strategy {kind}: the file has no function {name!r}; " +
                            (f"its {family} strategies: {', '.join(there)}" if there else
                             f"it has no {family} strategy"))
    check_function(family, kind, function)
    return Plugin(kind, function, content)


@cache
def _of_package(family: Family, point: EntryPoint) -> Plugin:
    where = f"{family} strategy {point.name}, of {_package(point)}"
    with UserCode(lambda said: SettingsError(f"{where}: {point.value}: {said}")):
        function = point.load()
    check_function(family, where.removeprefix(f"{family} strategy "), function)
    return Plugin(point.name, function, digest(_package(point), point.value, _source(function)), _package(point))


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _source(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    file = Path(code.co_filename) if code else Path()
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
