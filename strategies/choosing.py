"""Strategies as settings name them: a name, or a mapping of `kind`, `name` and the strategy's own parameters."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

from documents.errors import SettingsError
from strategies.catalogue import REASONING, RETRIEVAL, SEARCH_ONLY
from strategies.parameters import Inner, checked, default_of, hints_of, is_strategy, spread
from strategies.plugins import Plugin, plugin
from strategies.types import Reasoning, Retrieval

_LONGEST_NAME = 80  # characters

Family = Literal["reasoning", "retrieval"]
Said = str | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy with its parameters.

    Attributes:
        said: how settings name it, as short as it can be: a name where nothing differs from the defaults.
        label: what tables call it.
        function: the recipe with its parameters bound.
        parts: the strategies that it is made of.
        plugin: where it comes from, where it is none of the project's.
    """

    said: Said
    label: str
    function: Callable[..., Any]
    parts: tuple[Strategy, ...] = ()
    plugin: Plugin | None = None

    @property
    def plugins(self) -> dict[str, str]:
        """The hash of the source of every part that is none of the project's, by its kind."""
        own = {self.plugin.kind: self.plugin.content} if self.plugin else {}
        return own | {kind: content for part in self.parts for kind, content in part.plugins.items()}


def reasoning(said: str | Mapping[str, Any]) -> Reasoning:
    """The reasoning strategy of that name or with these settings; SettingsError says what does not fit."""
    return cast(Reasoning, chosen("reasoning", said).function)


def retrieval(said: str | Mapping[str, Any]) -> Retrieval:
    """The retrieval strategy of that name or with these settings; SettingsError says what does not fit."""
    return cast(Retrieval, chosen("retrieval", said).function)


def chosen(family: Family, said: Any) -> Strategy:
    """The strategy that settings name.

    Raises:
        SettingsError: one line: it is unknown, a plug-in cannot be loaded, or a parameter does not fit.
    """
    kind, name, given = _taken(family, said)
    found = plugin(family, kind) if kind not in _known(family) else None
    function = _known(family)[kind] if found is None else found.function
    opened = checked(kind, function, given, _INNER)
    values = {one: value.function if isinstance(value, Strategy) else value for one, value in opened.items()}
    shown = {one: _shown(opened[one], given[one]) for one in opened
             if values[one] != default_of(function, one)}
    plain = found.label if found else kind
    parts = tuple(value for value in opened.values() if isinstance(value, Strategy))
    label = name or plain + _in_brackets(function, shown, opened)
    settings: Said = {"kind": kind, **({"name": name} if name else {}), **shown} if shown or name else kind
    return Strategy(settings, label, partial(function, **values) if values else function, parts, found)


def sweep(family: Family, said: Any) -> Iterator[Any]:
    """The strategies that settings name: several, where a parameter that is no list is given one."""
    if not isinstance(said, Mapping):
        yield said
        return
    kind, name, given = _taken(family, said)
    known = _known(family).get(kind)
    rows = list(spread(known if known else plugin(family, kind).function, given))
    if name and len(rows) > 1:
        raise SettingsError(f"{family}: {name} would name {len(rows)} strategies; leave its name out")
    yield from ({"kind": kind, **({"name": name} if name else {}), **row} for row in rows)


def _inner(family: Family, said: Any) -> Strategy:
    """A strategy that is a parameter of another."""
    if said == SEARCH_ONLY:
        raise SettingsError(f"reasoning: {SEARCH_ONLY} asks for no answer, and can be no part of another strategy")
    return chosen(family, said)


_INNER = Inner(partial(_inner, "reasoning"), partial(_inner, "retrieval"))


def _taken(family: Family, said: Any) -> tuple[str, str, dict[str, Any]]:
    """Kind, name and parameters."""
    if isinstance(said, str):
        return said, "", {}
    if not isinstance(said, Mapping) or not isinstance(said.get("kind"), str):
        raise SettingsError(f"{family}: expected a name, or settings such as {{kind: NAME}}, not {said!r:.80}")
    name = said.get("name") or ""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        raise SettingsError(f"{family}: a name is a text of at most {_LONGEST_NAME} characters, not {name!r:.80}")
    return said["kind"], name, {one: value for one, value in said.items() if one not in ("kind", "name")}


def _known(family: Family) -> Mapping[str, Callable[..., Any]]:
    return REASONING if family == "reasoning" else RETRIEVAL


def _shown(value: Any, given: Any) -> Any:
    """A parameter as settings have it: a strategy as short as it can be, a number as it was understood."""
    if isinstance(value, Strategy):
        return value.said
    return value if isinstance(value, bool | int | float | str) else given


def _in_brackets(function: Callable[..., Any], shown: Mapping[str, Any], opened: Mapping[str, Any]) -> str:
    """What differs from the defaults; the strategies that it is made of come first, without their parameter's name."""
    hints = hints_of(function)
    inner = [opened[name].label for name in shown if is_strategy(hints[name])]
    said = [f"{name}={value}" for name, value in shown.items() if not is_strategy(hints[name])]
    return f"({', '.join([*inner, *said])})" if shown else ""

