"""Curves that are read together: over the same axis, each called by what tells it from the others."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.cells import PART, shortened

_TITLES = {("negatives", "negatives"): "negatives added to what is shown",
           ("negatives", "among"): "negatives beside the gold in what is searched",
           ("hardness", "negatives"): "thirds of each question's own negatives, added to what is shown",
           ("hardness", "among"): "thirds of each question's own negatives, beside the gold in what is searched"}
_THIRDS = {"easy": "easiest third of negatives", "medium": "middle third of negatives",
           "hard": "hardest third of negatives"}


@dataclass(frozen=True, slots=True)
class Group:
    """Curves of a summary's `dose`.

    Attributes:
        axis, word: as every curve of it has them.
        curves: their places in the summary.
        labels: what each is called, in the same order.
        doses: those of any of them; `words` for each.
    """

    axis: str
    word: str
    curves: tuple[int, ...]
    labels: tuple[str, ...]
    doses: tuple[int, ...]
    words: tuple[str, ...]

    @property
    def title(self) -> str:
        return _TITLES.get((self.axis, self.word), f"{self.axis}, {self.word}")


def groups_of(dose: Mapping[str, Any]) -> list[Group]:
    """The groups of a summary's `dose`, in the order of its curves."""
    places: dict[tuple[str, str], list[int]] = {}
    for place, curve in enumerate(dose["curves"]):
        places.setdefault((curve["axis"], curve["word"]), []).append(place)
    return [_group(dose, axis, word, found) for (axis, word), found in places.items()]


def _group(dose: Mapping[str, Any], axis: str, word: str, places: Sequence[int]) -> Group:
    curves = [dose["curves"][place] for place in places]
    doses = sorted({point["dose"] for curve in curves for point in curve["points"]})
    words = [dose["hardness"][one] if axis == "hardness" else str(one) for one in doses]
    return Group(axis, word, tuple(places), tuple(labels([curve["factors"] for curve in curves])), tuple(doses),
                 tuple(words))


def labels(levels: Sequence[Mapping[str, Any]]) -> list[str]:
    """What curves are called: by the factors in which any of them differ, the strategy where there are none."""
    rows = shortened(levels)
    names = [name for name in dict.fromkeys(name for row in rows for name in row)
             if len({row[name] for row in rows if row.get(name) is not None}) > 1]
    return [PART.join(filter(None, (_level(name, row.get(name)) for name in names))) or _only(row) for row in rows]


def _only(row: Mapping[str, Any]) -> str:
    return str(row.get("reasoning") or "none")


def _level(name: str, level: Any) -> str:
    """Of no rest of a perturbation nothing is said."""
    if level is None or (name, level) == ("perturbation", "none"):
        return ""
    if name in ("sort", "number"):
        return _THIRDS.get(str(level), f"{level} negatives")
    return str(level)
