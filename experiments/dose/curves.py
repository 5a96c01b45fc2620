"""Curves: the cells of a run that differ in the dose of negatives alone."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from experiments.comparing.variants import Variant
from retrieval.perturbations import Perturbation

Axis = Literal["negatives", "hardness"]
Levels = Mapping[str, str | None]
HARDNESS = ("easy", "medium", "hard")
_CHANGE = "perturbation"
_ANY = "any"  # the sort of negatives of no sort in particular


@dataclass(frozen=True, slots=True)
class Curve:
    """Cells in the order of their doses.

    Attributes:
        axis: what the dose is: the number of negatives, or their hardness at one number (0, 1 and 2 stand for
            `HARDNESS`).
        word: what is done with them: they are added (`negatives`), or searched among (`among`).
        levels: the factors that all cells share, by name: those of cells, of which `perturbation` is the rest of it,
            and of negatives the `sort` (`any` for none in particular), or over the hardness their `number`.
        plain: over the hardness, the cell without negatives, which is no dose of it: where there is one.
    """

    axis: Axis
    word: str
    levels: Levels
    doses: tuple[int, ...]
    cells: tuple[Variant, ...]
    plain: Variant | None = None

    @property
    def dosed(self) -> tuple[str, str, tuple[int, ...]]:
        """What two curves have in common whose areas mean the same."""
        return self.axis, self.word, self.doses

    def differs(self, other: Curve) -> list[str]:
        """The factors in which two curves differ, as cells do: what has no effect in one of them is none."""
        levels = ((name, self.levels.get(name), other.levels.get(name)) for name in self.levels)
        return [name for name, one, another in levels if one is not None and another is not None and one != another]


def curves_of(variants: Iterable[Variant]) -> list[Curve]:
    """Every curve of two doses or more, those over the number of negatives first.

    Without a perturbation the number is 0: of negatives that are added to what is shown, of any sort. What is searched
    (`among`) has no such cell, since without it other chunks are searched.
    """
    several = [(variant, Perturbation.parse(variant.levels[_CHANGE] or "none")) for variant in variants]
    without = {_shared(variant, change): variant for variant, change in several if not change.negatives + change.among}
    return [*_over("negatives", several, without), *_over("hardness", several, without)]


def _over(axis: Axis, variants: Iterable[tuple[Variant, Perturbation]],
          without: Mapping[tuple[str | None, ...], Variant]) -> list[Curve]:
    groups: dict[tuple[str | None, ...], dict[int, Variant]] = {}
    about: dict[tuple[str | None, ...], tuple[str, Levels, Variant | None]] = {}
    for variant, change in variants:
        placed = _placed(axis, change)
        if placed is None:
            continue
        word, name, level, dose = placed
        shared = _shared(variant, change)
        key = (word, level, *shared)
        groups.setdefault(key, {})[dose] = variant
        plain = without.get(shared) if word == "negatives" else None
        about[key] = (word, {**variant.levels, _CHANGE: shared[0], name: level}, plain)
    made = []
    for key, found in groups.items():
        word, levels, plain = about[key]
        if axis == "negatives" and plain is not None:
            found, plain = {0: plain, **found}, None
        if len(found) > 1:
            made.append(Curve(axis, word, levels, tuple(sorted(found)),
                              tuple(found[dose] for dose in sorted(found)), plain))
    return made


def _placed(axis: Axis, change: Perturbation) -> tuple[str, str, str, int] | None:
    """What is done with the negatives, the name and the level of the factor that the other axis is, and the dose; None
    for what has no place on the axis."""
    number, word = (change.among, "among") if change.among else (change.negatives, "negatives")
    if not number:
        return None
    if axis == "negatives":
        return word, "sort", change.sort or _ANY, number
    return (word, "number", str(number), HARDNESS.index(change.sort)) if change.sort in HARDNESS else None


def _shared(variant: Variant, change: Perturbation) -> tuple[str | None, ...]:
    """What is the same at every dose: the rest of the perturbation, and the levels of all other factors."""
    rest = str(replace(change, negatives=0, among=0, sort=""))
    return (rest, *(level for name, level in variant.levels.items() if name != _CHANGE))
