"""Curves over the doses of a run: which cells make one, which are read together, and the area under each."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from ragbed.experiments.analysis.variants import Variant
from ragbed.experiments.cells import PART, shortened
from ragbed.experiments.metrics import ScoredQuestion, ScoredRow
from ragbed.retrieval.conditions import Perturbation

_TITLES = {("negatives", "negatives"): "negatives added to what is shown",
           ("negatives", "pool"): "negatives beside the gold in what is searched",
           ("hardness", "negatives"): "thirds of each question's own negatives, added to what is shown",
           ("hardness", "pool"): "thirds of each question's own negatives, beside the gold in what is searched"}
_THIRDS = {"easy": "easiest third of negatives", "medium": "middle third of negatives",
           "hard": "hardest third of negatives"}


@dataclass(frozen=True, slots=True)
class CurveGroup:
    """Curves of a summary's `dose` that share axis and word."""

    axis: str
    word: str
    curves: tuple[int, ...]  # their places in the summary
    labels: tuple[str, ...]  # what each is called, in the same order
    doses: tuple[int, ...]  # those of any of them; `words` for each
    words: tuple[str, ...]

    @property
    def title(self) -> str:
        return _TITLES.get((self.axis, self.word), f"{self.axis}, {self.word}")


def groups_of(dose: Mapping[str, Any]) -> list[CurveGroup]:
    """Return the groups of a summary's `dose`, in the order of its curves."""
    found: dict[tuple[str, str], list[int]] = {}
    for place, curve in enumerate(dose["curves"]):
        found.setdefault((curve["axis"], curve["word"]), []).append(place)

    made = []
    for (axis, word), places in found.items():
        curves = [dose["curves"][place] for place in places]
        doses = sorted({point["dose"] for curve in curves for point in curve["points"]})
        words = [dose["hardness"][one] if axis == "hardness" else str(one) for one in doses]
        made.append(CurveGroup(axis, word, tuple(places), tuple(labels([curve["factors"] for curve in curves])),
                               tuple(doses), tuple(words)))
    return made


def labels(levels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what curves are called: by the factors in which any of them differ, the strategy where there are none."""
    rows = shortened(levels)
    names = [name for name in dict.fromkeys(name for row in rows for name in row)
             if len({row[name] for row in rows if row.get(name) is not None}) > 1]
    return [PART.join(filter(None, (_level(name, row.get(name)) for name in names)))
            or str(row.get("reasoning") or "none") for row in rows]


def _level(name: str, level: Any) -> str:
    """Of no rest of a perturbation nothing is said."""
    if level is None or (name, level) == ("perturbation", "none"):
        return ""
    return _THIRDS.get(str(level), f"{level} negatives") if name in ("sort", "number") else str(level)


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
        word: what is done with them: they are added (`negatives`), or searched among (`pool`).
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
        """Return the factors in which two curves differ, as cells do: what has no effect in one of them is none."""
        levels = ((name, self.levels.get(name), other.levels.get(name)) for name in self.levels)
        return [name for name, one, another in levels if one is not None and another is not None and one != another]


def curves_of(variants: Iterable[Variant]) -> list[Curve]:
    """Return every curve of two doses or more, those over the number of negatives first.

    Without a perturbation the number is 0: of negatives that are added to what is shown, of any sort. What is searched
    (`pool`) has no such cell, since without it other chunks are searched.
    """
    several = [(variant, Perturbation.parse(variant.levels[_CHANGE] or "none")) for variant in variants]
    without = {_shared(variant, change): variant for variant, change in several if not change.negatives + change.pool}
    return [*_over("negatives", several, without), *_over("hardness", several, without)]


def _over(axis: Axis, variants: Iterable[tuple[Variant, Perturbation]],
          without: Mapping[tuple[str | None, ...], Variant]) -> Iterator[Curve]:
    groups: dict[tuple[str | None, ...], tuple[str, Levels, Variant | None, dict[int, Variant]]] = {}
    for variant, change in variants:
        if (placed := _placed(axis, change)) is None:
            continue
        word, name, level, dose = placed
        shared = _shared(variant, change)
        own: Levels = {**variant.levels, _CHANGE: shared[0], name: level}
        plain = without.get(shared) if word == "negatives" else None
        groups.setdefault((word, level, *shared), (word, own, plain, {}))[-1][dose] = variant
    for word, levels, plain, found in groups.values():
        if axis == "negatives" and plain is not None:
            found, plain = {0: plain, **found}, None
        if len(found) > 1:
            doses = sorted(found)
            yield Curve(axis, word, levels, tuple(doses), tuple(found[dose] for dose in doses), plain)


def _placed(axis: Axis, change: Perturbation) -> tuple[str, str, str, int] | None:
    """What is done with the negatives, the name and the level of the factor that the other axis is, and the dose; None
    for what has no place on the axis."""
    number, word = (change.pool, "pool") if change.pool else (change.negatives, "negatives")
    if not number:
        return None
    if axis == "negatives":
        return word, "sort", change.sort or _ANY, number
    return (word, "number", str(number), HARDNESS.index(change.sort)) if change.sort in HARDNESS else None


def _shared(variant: Variant, change: Perturbation) -> tuple[str | None, ...]:
    """What is the same at every dose: the rest of the perturbation, and the levels of all other factors."""
    rest = str(replace(change, negatives=0, pool=0, sort=""))
    return (rest, *(level for name, level in variant.levels.items() if name != _CHANGE))


def area(doses: Sequence[float], scores: Sequence[float]) -> float:
    """Return the area under straight lines between the points, over the range of doses: the mean height of the curve.

    With doses d_1 < ... < d_m and scores s_i it is sum((s_i + s_(i+1)) / 2 * (d_(i+1) - d_i)) / (d_m - d_1), the
    trapezoidal rule; 1 for a score of 1 at every dose, whatever the doses are.
    """
    parts = ((first + second) / 2 * (to - at)
             for (at, to), (first, second) in zip(pairwise(doses), pairwise(scores), strict=True))
    return sum(parts) / (doses[-1] - doses[0])


@dataclass(frozen=True, slots=True)
class Areas:
    """By question, the area under its own scores by each metric, None by one that it has not at every dose; and by
    metric, how many questions are left out: that have it at some dose and no area."""

    of: Mapping[str, ScoredRow]
    left_out: Mapping[str, int]


def areas(curve: Curve) -> Areas:
    """Return the areas of all questions that any cell of the curve has.

    A question that a cell lacks, or which is answerable in one cell and not in another, has none. Areas are weighted
    means of scores, with one set of weights, so that they have the range of the metric, and figures of a set are made
    of them as of scores: citation F1 is the harmonic mean of the averaged areas by precision and by recall.
    """
    made: dict[str, ScoredRow] = {}
    left_out: Counter[str] = Counter()
    for question in dict.fromkeys(question for cell in curve.cells for question in cell.answers):
        own = [cell.answers[question] for cell in curve.cells if question in cell.answers]
        whole = len(own) == len(curve.cells) and len({one.answerable for one in own}) == 1
        names = dict.fromkeys(name for one in own for name, score in one.scores.items() if score is not None)
        known = {name: [score for one in own if (score := one.scores.get(name)) is not None] for name in names}
        scores = {name: area(curve.doses, found) if whole and len(found) == len(own) else None
                  for name, found in known.items()}
        left_out.update(name for name, score in scores.items() if score is None)
        made[question] = ScoredQuestion(own[0].answerable, own[0].outcome, scores)
    return Areas(made, left_out)
