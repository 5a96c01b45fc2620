"""The matrix of a run: the product of its lists, less what is excluded, and what is included."""
from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from documents.errors import SettingsError
from documents.types import Format
from experiments.factors import COLUMNS, Dense, Excluded, Included, Show
from experiments.settings import RunSettings
from retrieval.conditions import Condition
from strategies.types import Rules

Lists = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Combination:
    """One value of every list. Fields stand in the order of the product: the last one varies fastest."""

    repeat: int
    seed: int
    model: str
    condition: Condition
    perturbation: str
    show: Show
    format: Format
    retriever: str
    rules: Rules
    retrieval: str
    reasoning: str


# The key of the list that each value is out of.
_KEYS = {name: COLUMNS.get(name, name) for name in Combination.__dataclass_fields__}


def combinations_of(settings: RunSettings) -> list[Combination]:
    """The distinct combinations that the settings name, in their order; those that are included come last.

    Raises:
        SettingsError: an entry of `exclude` or `include` names what is not there, or changes nothing, or nothing is
            left.
    """
    base = _lists(settings)
    left = dict.fromkeys(_product(base))
    for place, entry in _entries(settings, settings.exclude):
        _drop(left, _given(entry), base, f"exclude.{place}")
    known = [one.name for one in retrievers_of(settings)]
    for place, entry in _entries(settings, settings.include):
        unknown = [name for name in _given(entry).get("retriever", ()) if name not in known]
        if unknown:
            raise SettingsError(f"include.{place}: no retriever is called {unknown[0]}; there are: "
                                f"{', '.join(known)}; or give the settings of one")
        added = dict.fromkeys(_product({**base, **_given(entry)}))
        if added.keys() <= left.keys():
            raise SettingsError(f"include.{place}: adds nothing to what is there already; leave it out")
        left |= added
    if not left:
        raise SettingsError("exclude: no combination is left; leave some")
    return list(left)


def models_of(settings: RunSettings) -> list[str]:
    """The models that any combination asks."""
    return list(dict.fromkeys(one.model for one in combinations_of(settings)))


def retrievers_of(settings: RunSettings) -> list[Dense]:
    """Every retriever that the settings describe, those that an entry of `include` brings last.

    Raises:
        SettingsError: two that differ have one name.
    """
    known = {one.name: one for one in settings.retriever}
    for place, entry in _entries(settings, settings.include):
        for one in entry.retriever or ():
            if isinstance(one, Dense) and known.setdefault(one.name, one) != one:
                raise SettingsError(f"include.{place}: another retriever is called {one.name}; give this one a "
                                    "`name` of its own")
    return list(known.values())


def _lists(settings: RunSettings) -> Lists:
    own = {"repeat": range(settings.repeats), "seed": settings.seeds,
           "retriever": [one.name for one in settings.retriever]}
    return {name: own[name] if name in own else getattr(settings, key) for name, key in _KEYS.items()}


def _entries(settings: RunSettings, entries: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The entries for the run's benchmark, each with its place, from 0."""
    for place, entry in enumerate(entries):
        if entry.benchmark is None or settings.benchmark.kind in entry.benchmark:
            yield place, entry


def _given(entry: Excluded | Included) -> dict[str, Sequence[Any]]:
    """The lists that an entry gives."""
    given = {name: values for name, key in _KEYS.items() if (values := getattr(entry, key, None)) is not None}
    if "retriever" in given:
        given["retriever"] = [one if isinstance(one, str) else one.name for one in given["retriever"]]
    if isinstance(entry, Included) and entry.repeats is not None:
        given["repeat"] = range(entry.repeats)
    return given


def _product(lists: Lists) -> Iterator[Combination]:
    return itertools.starmap(Combination, itertools.product(*(lists[name] for name in _KEYS)))


def _drop(left: dict[Combination, None], entry: Lists, base: Lists, where: str) -> None:
    """Leave out what agrees with the entry."""
    if not entry:
        raise SettingsError(f"{where}: names no list, which would leave nothing; give it some, as in "
                            "{conditions: closed-book, reasoning: least_to_most}")
    for name, values in entry.items():
        foreign = [str(value) for value in values if value not in base[name]]
        if foreign:
            raise SettingsError(f"{where}: {', '.join(foreign)} is not in the run's {_KEYS[name]}, so nothing is left "
                                f"out; there are: {', '.join(map(str, base[name]))}")
    dropped = [one for one in left if all(getattr(one, name) in values for name, values in entry.items())]
    if not dropped:
        raise SettingsError(f"{where}: leaves out nothing that the entries before it do not; leave it out")
    for one in dropped:
        del left[one]
