"""What a function has to look like to be a strategy."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from documents.errors import SettingsError
from strategies.settings.parameters import hints_of

_GIVEN = {"reasoning": ("task",), "retrieval": ("task", "query")}


def check_function(family: str, kind: str, function: Callable[..., Any]) -> None:
    """Make sure that a function is a strategy of the family.

    Raises:
        SettingsError: it is no generator function, is of the other family, or its settings are no annotated
            parameters after a star.
    """
    where, shape = f"{family} strategy {kind}", f"def {_named(function)}({', '.join(_GIVEN[family])}, *, ...)"
    if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
        raise SettingsError(f"{where}: it is async; a recipe is a plain generator, which ragbed plays: write {shape}")
    if not inspect.isgeneratorfunction(function):
        what = "is a function without a yield" if callable(function) else f"is no function, but {function!r:.40}"
        raise SettingsError(f"{where}: {_named(function)} {what}; a recipe yields what it asks for, or ends with "
                            "`return (yield from ...)`")
    given, others = _leading(function), [name for name in _GIVEN if name != family]
    if len(given) == len(_GIVEN[family]) and not _collects(function):
        hints_of(function)
        return
    if tuple(given) == _GIVEN[others[0]]:
        raise SettingsError(f"{where}: it takes {' and '.join(given)}, as {others[0]} strategies do; name it under "
                            f"{others[0]}")
    raise SettingsError(f"{where}: expected {shape}, its settings after the star, not ({', '.join(given)}"
                        f"{', and what it collects with a star' if _collects(function) else ''})")


def fitting_functions(module: ModuleType, family: str) -> list[str]:
    """The names of a module's own functions that have the form of strategies of a family."""
    return [name for name, value in vars(module).items() if inspect.isgeneratorfunction(value)
            and value.__module__ == module.__name__ and len(_leading(value)) == len(_GIVEN[family])]


def _leading(function: Callable[..., Any]) -> list[str]:
    """The parameters before the star."""
    return [one.name for one in inspect.signature(function).parameters.values()
            if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def _collects(function: Callable[..., Any]) -> bool:
    return any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
               for one in inspect.signature(function).parameters.values())


def _named(function: Any) -> str:
    return str(getattr(function, "__name__", "recipe"))
