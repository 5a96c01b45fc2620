"""What a reader of curves and areas has to know, in sentences."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from experiments.comparing.words import ON_INTERVALS
from experiments.dose.area import Areas
from experiments.dose.curves import HARDNESS, Curve
from experiments.dose.reached import Reached

MOST = 200  # comparisons of areas: each takes tens of milliseconds
_SAME = 0.01  # a mean hardness that differs by less is the same to two decimals


def notes(curves: Sequence[Curve], own: Sequence[Areas], reached: Mapping[str, Reached], metrics: Sequence[str],
          pairs: int, compared: int, changes: int) -> list[str]:
    """What the figures do not say by themselves.

    Args:
        reached: by cell.
        metrics: those that are shown, where any cell has them.
        pairs: of curves that could be compared; `compared` of them have p, as `changes` of the curves have.
    """
    return ["An area is the mean height of a curve over its range of doses: that of each question's own scores, "
            "averaged over the questions; 1 is a score of 1 at every dose.",
            *_on_hardness(curves), *_on_both(curves, reached), *_on_left_out(own, metrics),
            *_on_fewer(curves, reached), *_on_doses(curves), *([ON_INTERVALS] if compared + changes else []),
            *([f"{pairs} pairs of curves differ in one factor, more than are tested at once: the first {MOST} are "
               "compared."] if pairs > MOST else []),
            *([f"p (Holm) of areas is corrected for {compared} comparisons: all curves over the same doses that "
               "differ in one factor."] if compared > 1 else []),
            *([f"p (Holm) of changes is corrected for {changes} curves."] if changes > 1 else [])]


def _on_hardness(curves: Sequence[Curve]) -> list[str]:
    if not any(curve.axis == "hardness" or curve.levels.get("sort") in HARDNESS for curve in curves):
        return []
    return ["Easy, medium and hard are the thirds of each question's own mined negatives by their cosine with the "
            "question, not levels that questions share: the mean cosine of what each brought stands beside it. They "
            "stand one step from each other; what has no negatives is no dose of hardness, and in no area over it."]


def _on_both(curves: Sequence[Curve], reached: Mapping[str, Reached]) -> list[str]:
    """That a curve over the number of negatives is over their hardness too."""
    apart = []
    for curve in (curve for curve in curves if curve.axis == "negatives"):
        known = [one.hardness for cell in curve.cells
                 if (one := reached.get(cell.row["id"], Reached())).hardness is not None]
        if known:
            apart.append(max(known) - min(known))
    return [f"Number and hardness go together: the mean hardness of the negatives (their cosine with the question) is "
            f"not the same at each number of them, by up to {most:.2f} in one curve, so a change is of both."
            ] if (most := max(apart, default=0.0)) >= _SAME else []


def _on_left_out(own: Sequence[Areas], metrics: Sequence[str]) -> list[str]:
    lacking = {name: [found.left_out[name] for found in own if found.left_out.get(name)] for name in metrics}
    said = [f"{name} in {len(counts)} of {len(own)} areas, up to {max(counts)} questions"
            for name, counts in lacking.items() if counts]
    return [f"A point is of the questions that have the metric at its dose, an area of those that have it at every "
            f"dose. Areas leave out what has it at some doses only: {'; '.join(said)}."] if said else []


def _on_fewer(curves: Sequence[Curve], reached: Mapping[str, Reached]) -> list[str]:
    cells = {cell.row["id"]: cell for curve in curves for cell in curve.cells}
    short = [reached[id].fewer for id in cells if id in reached and reached[id].fewer]
    return [f"In {len(short)} of {len(cells)} cells some questions have fewer negatives than the dose, up to "
            f"{max(short)}: there were no more of the sort. Points and areas stand at the dose that was asked for, so "
            "that a curve goes on flat where nothing was added."] if short else []


def _on_doses(curves: Sequence[Curve]) -> list[str]:
    apart = any(first.dosed[:2] == second.dosed[:2] and first.doses != second.doses
                and len(first.differs(second)) == 1 for first, second in combinations(curves, 2))
    return ["Curves over other doses are not compared with each other."] if apart else []
