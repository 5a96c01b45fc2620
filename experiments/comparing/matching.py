"""Which cells are compared with which."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from documents.errors import SettingsError
from experiments.cells import FACTORS, level
from experiments.comparing.every import tested_pairs
from experiments.comparing.side import Side
from experiments.comparing.variants import VARIED


@dataclass(frozen=True, slots=True)
class Match:
    """A cell, and the baseline that it is compared with, by what they are called in their runs.

    Attributes:
        factor: the only one in which they differ, where that is why they are compared.
    """

    baseline: str
    cell: str
    factor: str | None = None


def every(run: Side) -> tuple[list[Match], list[str]]:
    """The cells of one run that differ in exactly one factor, as its summary compares them; and notes on that.

    Raises:
        SettingsError: there are none.
    """
    pairs, notes = tested_pairs(list(run.cells.values()))
    if len(run.cells) == 1:
        raise SettingsError(f"{run.path}: there is no second cell to compare; give another run's folder too")
    if not pairs:
        raise SettingsError(f"{run.path}: no two cells differ in one factor alone; choose one with --baseline, out of: "
                            f"{', '.join(run.cells)}")
    called = {cell.row["id"]: label for label, cell in run.cells.items()}
    return [Match(called[first.row["id"]], called[second.row["id"]], factor) for factor, first, second in pairs], notes


def within(run: Side, wanted: Sequence[str], baseline: str | None) -> list[Match]:
    """The cells of one run against its baseline: the named one, or the first of those that are wanted.

    Raises:
        SettingsError: there is nothing to compare, or a name fits several cells.
        RunError: a name fits no cell.
    """
    chosen = _chosen(run, wanted)
    against = _one(run, baseline) if baseline else chosen[0] if len(chosen) > 1 else next(iter(run.cells))
    matches = [Match(against, label) for label in chosen if label != against]
    if not matches:
        raise SettingsError(f"{run.path}: there is no second cell to compare {against!r} with; give another run's "
                            "folder too" + (", or another --cell" if len(run.cells) > 1 else ""))
    return matches


def between(first: Side, second: Side, wanted: Sequence[str], baseline: str | None) -> list[Match]:
    """The cells of the second run against their like in the first, or against the first's named one.

    Cells are alike that agree in every factor but those in which the two runs have no value in common.

    Raises:
        SettingsError: no cell has its like, a cell has several, or a name fits several cells.
        RunError: a name fits no cell.
    """
    chosen = _chosen(second, wanted)
    if baseline:
        against = _one(first, baseline)
        return [Match(against, label) for label in chosen]
    if len(first.cells) == len(second.cells) == 1 and not wanted:
        return [Match(next(iter(first.cells)), chosen[0])]
    apart = differing(first, second)
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for label in (*first.cells, *first.replicates):
        alike[_key(first, label, apart)].append(label)
    matches = []
    for label in chosen:
        found = alike.get(_key(second, label, apart), [])
        if len(found) > 1:
            raise SettingsError(f"{label!r} of {second.path} could be compared with {' and '.join(map(repr, found))} "
                                f"of {first.path}; choose one with --baseline")
        matches += [Match(one, label) for one in found]
    if not matches:
        raise SettingsError(f"no cell of {second.path} has its like in {first.path}; choose one with --baseline, out "
                            f"of: {', '.join(first.cells)}")
    return matches


def differing(first: Side, second: Side) -> list[str]:
    """The factors in which the two runs have no value in common."""
    return [name for name in FACTORS if not _values(first, name) & _values(second, name)]


def _values(run: Side, name: str) -> set[str]:
    return {str(level(row, name)) for row in run.rows}


def _key(run: Side, label: str, apart: Sequence[str]) -> tuple[str, ...]:
    """The repeat and seed tell single cells apart, and nothing else."""
    names = VARIED if label in run.cells else FACTORS
    row = run.cell(label).row
    return tuple(str(level(row, name)) for name in names if name not in apart)


def _chosen(run: Side, wanted: Sequence[str]) -> list[str]:
    """The cells that any of the names fits, in the run's order; without names, all."""
    if not wanted:
        return list(run.cells)
    found = {label for name in wanted for label in run.named(name)}
    return [label for label in (*run.cells, *run.replicates) if label in found]


def _one(run: Side, name: str) -> str:
    found = run.named(name)
    if len(found) > 1:
        raise SettingsError(f"{name!r} fits several cells of {run.path}; choose one of: {', '.join(found)}")
    return found[0]
