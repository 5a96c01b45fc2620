"""Curves: the cells of a run that differ in the dose of negatives alone."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from experiments.comparing.variants import Variant
from retrieval.perturbations import Perturbation

Axis = Literal["negatives", "hardness"]
HARDNESS = ("easy", "medium", "hard")
_CHANGE = "perturbation"


@dataclass(frozen=True, slots=True)
class Curve:
    """Cells in the order of their doses.

    Attributes:
        axis: what the dose is: the number of negatives, or their hardness at one number (0, 1 and 2 stand for
            `HARDNESS`).
        held: what of the negatives is the same in all: `among:hard`, `negatives@5`.
        rest: the rest of the perturbation, which all have; `none` for nothing.
        levels: the factors of all but the perturbation, by name.
    """

    axis: Axis
    held: str
    rest: str
    levels: Mapping[str, str | None]
    doses: tuple[int, ...]
    cells: tuple[Variant, ...]

    def differs(self, other: Curve) -> list[str]:
        """The factors in which two curves over the same doses differ; none where they are not of the same doses."""
        if (self.axis, self.held, self.rest, self.doses) != (other.axis, other.held, other.rest, other.doses):
            return []
        return [name for name, level in self.levels.items() if other.levels[name] != level]


def curves_of(variants: Iterable[Variant]) -> list[Curve]:
    """Every curve of two doses or more, those over the number of negatives first.

    Without a perturbation the number is 0: of negatives that are added to what is shown, of any sort. What is searched
    (`among`) has no such cell, since without it other chunks are searched.
    """
    several = list(variants)
    return [*_over("negatives", several), *_over("hardness", several)]


def _over(axis: Axis, variants: Sequence[Variant]) -> list[Curve]:
    groups: dict[tuple[str | None, ...], dict[int, Variant]] = {}
    about: dict[tuple[str | None, ...], tuple[str, str, Mapping[str, str | None]]] = {}
    for variant in variants:
        change = Perturbation.parse(variant.levels[_CHANGE] or "none")
        placed = _placed(axis, change)
        if placed is None:
            continue
        held, dose = placed
        levels = {name: level for name, level in variant.levels.items() if name != _CHANGE}
        rest = str(replace(change, negatives=0, among=0, sort=""))
        key = (held, rest, *levels.values())
        groups.setdefault(key, {}).setdefault(dose, variant)
        about[key] = (held, rest, levels)
    nothing = {_key(variant): variant for variant in variants if axis == "negatives" and _dose(variant) == 0}
    for key, found in groups.items():
        if str(key[0]).startswith("negatives") and key[1:] in nothing:
            found.setdefault(0, nothing[key[1:]])
    return [Curve(axis, *about[key], tuple(sorted(found)), tuple(found[dose] for dose in sorted(found)))
            for key, found in groups.items() if len(found) > 1]


def _placed(axis: Axis, change: Perturbation) -> tuple[str, int] | None:
    """What is held, and the dose, of a perturbation that has negatives; None for one that has no place on the axis."""
    number, word = (change.among, "among") if change.among else (change.negatives, "negatives")
    if not number:
        return None
    if axis == "negatives":
        return (f"{word}:{change.sort}" if change.sort else word), number
    return (f"{word}@{number}", HARDNESS.index(change.sort)) if change.sort in HARDNESS else None


def _dose(variant: Variant) -> int:
    change = Perturbation.parse(variant.levels[_CHANGE] or "none")
    return change.among or change.negatives


def _key(variant: Variant) -> tuple[str | None, ...]:
    """As the key of a group, without what is held."""
    return (variant.levels[_CHANGE] or "none", *(variant.levels[name] for name in variant.levels if name != _CHANGE))
