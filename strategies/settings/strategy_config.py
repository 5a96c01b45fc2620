"""Strategies as settings name them: a name, or a mapping of `kind`, `name` and the strategy's own parameters.

`parse_strategy` checks what the user says, for which a plug-in is loaded, and so executed, and a file of worked
examples read. Of settings that were checked before, such as those that a run left behind, it executes and reads nothing
when told so: such a strategy is data, until `loaded` makes it one that can be played.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

from ragbed.documents.errors import SettingsError
from ragbed.strategies.catalogue import HISTORY, REASONING, RETRIEVAL, SEARCH_ONLY
from ragbed.strategies.settings.exemplars import Exemplars, open_exemplars
from ragbed.strategies.settings.parameters import (
    expand_sweep,
    is_strategy,
    parameter_default,
    parameter_hints,
    validate_parameters,
)
from ragbed.strategies.settings.plugins import Family as Family
from ragbed.strategies.settings.plugins import guard_recipe, load_plugin, parse_file_kind, plugin_label
from ragbed.strategies.types import Reasoning, Retrieval

_LONGEST_NAME = 80  # characters
_MOST_SAMPLES = 1_000  # of one question; limits count what they ask for, and all of them begin before the first asks

_KNOWN: Mapping[Family, Mapping[str, Callable[..., Any]]] = {
    "reasoning": REASONING, "retrieval": RETRIEVAL, "history": HISTORY}

Spec = str | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy with its parameters: `values`, those that are strategies themselves as such; of a plug-in that was not
    loaded, as `said` has them."""

    family: Family
    kind: str
    said: Spec  # how settings name it; where it was checked, as short as it can be
    label: str  # what tables call it
    values: Mapping[str, Any]
    content: str = ""  # a hash of the source of a plug-in that was loaded; else empty
    samples: int = 1  # how many it draws of one question, those that each draws itself counted

    @property
    def function(self) -> Callable[..., Any]:
        """The recipe with its parameters bound, of a strategy that was loaded."""
        function = _function(self.family, self.kind)
        function = guard_recipe(self.family, self.kind, function) if self.is_plugin else function
        values = {name: value.function if isinstance(value, Strategy) else value for name, value in self.values.items()}
        return partial(function, **values) if values else function

    @property
    def is_plugin(self) -> bool:
        """Whether it is none of the project's."""
        return self.kind not in built_in(self.family)

    @property
    def parts(self) -> tuple[Strategy, ...]:
        """It and all strategies that it is made of, as far as they are known without loading it."""
        inner = (value.parts for value in self.values.values() if isinstance(value, Strategy))
        return self, *chain.from_iterable(inner)

    @property
    def has_plugins(self) -> bool:
        """Whether a part of it is none of the project's."""
        return any(part.is_plugin for part in self.parts)

    @property
    def files(self) -> tuple[str, ...]:
        """Every `FILE.py:FUNCTION` in its settings: what is executed for its function."""
        return tuple(dict.fromkeys(_files(self.said)))

    @property
    def sources(self) -> dict[str, str]:
        """Hashes of the sources of its plug-ins, and of its files of worked examples, by name, once it was loaded."""
        return {part.kind: part.content for part in self.parts if part.content} | {
            one.file: one.content for one in self.exemplars}

    @property
    def exemplars(self) -> tuple[Exemplars, ...]:
        """The files of worked examples that it and its parts show, of a strategy that was loaded."""
        return tuple(value for part in self.parts for value in part.values.values() if isinstance(value, Exemplars))

    @property
    def is_loaded(self) -> bool:
        """Whether all that it needs to be played was executed and read."""
        return (all(part.content or not part.is_plugin for part in self.parts)
                and all(one.examples for one in self.exemplars))

    def loaded(self) -> Strategy:
        """Return the strategy ready to be played; SettingsError where a plug-in or a file cannot be loaded."""
        return self if self.is_loaded else parse_strategy(self.family, self.said)


def reasoning(said: str | Mapping[str, Any]) -> Reasoning:
    """Return the reasoning strategy of that name or with these settings; SettingsError says what does not fit."""
    return cast(Reasoning, parse_strategy("reasoning", said).function)


def retrieval(said: str | Mapping[str, Any]) -> Retrieval:
    """Return the retrieval strategy of that name or with these settings; SettingsError says what does not fit."""
    return cast(Retrieval, parse_strategy("retrieval", said).function)


def parse_strategy(family: Family, said: Any, execute: bool = True) -> Strategy:
    """Return the strategy that settings name. To `execute` is to load plug-ins and read files of worked examples;
    without it the settings were checked before: the parameters of a plug-in are taken as they are, and no file is read.
    Raises SettingsError in one line: it is unknown, a plug-in or a file cannot be loaded, or a parameter does not
    fit."""
    kind, name, given = _taken(family, said)
    try:
        if execute or kind in built_in(family):
            return _opened(family, said, execute)
        return Strategy(family, kind, said, name or _label(kind, given), given)
    except RecursionError:
        raise SettingsError(f"{family}: strategies within strategies beyond reason") from None


def built_in(family: Family) -> Mapping[str, Callable[..., Any]]:
    """Return the project's own strategies of a family, by name."""
    return _KNOWN[family]


def sweep(family: Family, said: Any) -> Iterator[Any]:
    """Yield the strategies that settings name: several, where a parameter that is no list is given one."""
    if not isinstance(said, Mapping):
        yield said
        return
    kind, name, given = _taken(family, said)
    rows = list(expand_sweep(_function(family, kind), given))
    if name and len(rows) > 1:
        raise SettingsError(f"{family}: {name} would name {len(rows)} strategies; leave its name out")
    yield from ({"kind": kind, **({"name": name} if name else {}), **row} for row in rows)


def _opened(family: Family, said: Any, execute: bool) -> Strategy:
    kind, name, given = _taken(family, said)
    function, content = _function(family, kind), ""
    if kind not in built_in(family):
        content = load_plugin(family, kind, tuple(built_in(family))).content
    values = validate_parameters(kind, function, given, partial(_value, execute))
    shown: dict[str, Any] = {}
    for one, value in values.items():
        default = parameter_default(function, one)
        if isinstance(value, Strategy):  # as short as it can be
            shown |= {one: value.said} if value.said != getattr(default, "__name__", None) else {}
        elif value != default:  # a number as it was understood
            shown[one] = value if isinstance(value, bool | int | float | str) else given[one]
    label = name or (_label(kind, shown) if content else kind + _in_brackets(function, shown, values))
    settings: Spec = {"kind": kind, **({"name": name} if name else {}), **shown} if shown or name else kind
    own = values.get("samples", (function.__kwdefaults__ or {}).get("samples", 1))
    parts = [value.samples for value in values.values() if isinstance(value, Strategy)]
    samples = (own if isinstance(own, int) else 1) * max(parts, default=1)
    if samples > _MOST_SAMPLES:
        raise SettingsError(f"{family} strategy {kind}: it draws {samples:,} samples of one question, one within "
                            f"another; {_MOST_SAMPLES:,} are the most")
    return Strategy(family, kind, settings, label, values, content, samples)


def _files(said: Any) -> Iterator[str]:
    if isinstance(said, str):
        yield from [said] if parse_file_kind(said) else []
    elif isinstance(said, Mapping | list):
        for value in said.values() if isinstance(said, Mapping) else said:
            yield from _files(value)


def _value(execute: bool, what: str, said: Any) -> Strategy | Exemplars:
    if what == "exemplars":
        return open_exemplars(said, execute)
    found = parse_strategy(cast(Family, what), said, execute)
    if found.kind == SEARCH_ONLY:
        raise SettingsError(f"reasoning: {SEARCH_ONLY} asks for no answer, and can be no part of another strategy")
    return found


def _function(family: Family, kind: str) -> Callable[..., Any]:
    own = built_in(family)
    return own[kind] if kind in own else load_plugin(family, kind, tuple(own)).function


def _taken(family: Family, said: Any) -> tuple[str, str, dict[str, Any]]:
    if isinstance(said, str):
        return said, "", {}
    if not isinstance(said, Mapping) or not isinstance(said.get("kind"), str):
        raise SettingsError(f"{family}: expected a name, or settings such as {{kind: NAME}}, not {said!r:.80}")
    name = said.get("name") or ""
    if not isinstance(name, str) or len(name) > _LONGEST_NAME or not name.isprintable() or name.isspace():
        raise SettingsError(f"{family}: a name is one line of at most {_LONGEST_NAME} characters that can be printed, "
                            f"not {name!r:.80}")
    return said["kind"], name, {one: value for one, value in said.items() if one not in ("kind", "name")}


def _in_brackets(function: Callable[..., Any], shown: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """What differs from the defaults: first strategies, without their parameter's name where it is the only one."""
    hints = parameter_hints(function)
    alone = sum(map(is_strategy, hints.values())) == 1
    inner = [f"{'' if alone else f'{name}='}{values[name].label}" for name in shown if is_strategy(hints[name])]
    said = [f"{name}={Path(value).name if isinstance(values[name], Exemplars) else value}"
            for name, value in shown.items() if not is_strategy(hints[name])]
    return f"({', '.join([*inner, *said])})" if shown else ""


def _label(kind: str, shown: Mapping[str, Any]) -> str:
    """What tables call a plug-in, which its settings alone say: to look at its function is to execute it."""
    plain = plugin_label(kind)
    plain = f"{plain}.py" if plain != kind and plain in (*REASONING, *RETRIEVAL, *HISTORY) else plain
    said = [f"{name}={_plainly(value)}" for name, value in shown.items()]
    return f"{plain}({', '.join(said)})" if said else plain


def _plainly(value: Any) -> str:
    """A parameter of a plug-in in a label: settings of a strategy as a label too."""
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        return str(value)
    rest = {name: inner for name, inner in value.items() if name not in ("kind", "name")}
    return str(value.get("name") or _label(value["kind"], rest))
