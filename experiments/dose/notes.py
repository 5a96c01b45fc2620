"""What a reader of curves and areas has to know, in sentences."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from experiments.dose.area import Areas
from experiments.dose.curves import Curve

MOST = 200  # comparisons of areas: each takes tens of milliseconds


def notes(curves: Sequence[Curve], own: Sequence[Areas], fewer: Mapping[str, int], metric: str, pairs: int,
          compared: int, changes: int) -> list[str]:
    """What the figures do not say by themselves.

    Args:
        fewer: by cell, the questions for which fewer negatives could be had than its dose.
        pairs: of curves that could be compared; `compared` of them have p, as `changes` of the curves have.
    """
    return ["An area is the mean height of a curve over its range of doses: that of each question's own scores, "
            "averaged over the questions; 1 is a score of 1 at every dose.",
            *_on_hardness(curves), *_on_left_out(own, metric), *_on_fewer(curves, fewer), *_on_doses(curves),
            *([f"{pairs} pairs of curves differ in one factor, more than are tested at once: the first {MOST} are "
               "compared."] if pairs > MOST else []),
            *([f"p (Holm) of areas is corrected for {compared} comparisons: all curves over the same doses that "
               "differ in one factor."] if compared > 1 else []),
            *([f"p (Holm) of changes is corrected for {changes} curves."] if changes > 1 else [])]


def _on_hardness(curves: Sequence[Curve]) -> list[str]:
    return ["Easy, medium and hard stand one step from each other; what has no negatives is no dose of hardness, and "
            "in no area over it."] if any(curve.axis == "hardness" for curve in curves) else []


def _on_left_out(own: Sequence[Areas], metric: str) -> list[str]:
    lacking = [found.left_out[metric] for found in own if found.left_out.get(metric)]
    return [f"{len(lacking)} of {len(own)} areas leave out questions that have {metric} at some doses only, up to "
            f"{max(lacking)}."] if lacking else []


def _on_fewer(curves: Sequence[Curve], fewer: Mapping[str, int]) -> list[str]:
    cells = {cell.row["id"]: cell for curve in curves for cell in curve.cells}
    short = [fewer[id] for id in cells if fewer.get(id)]
    return [f"In {len(short)} of {len(cells)} cells some questions have fewer negatives than the dose, up to "
            f"{max(short)}: there were no more of the sort."] if short else []


def _on_doses(curves: Sequence[Curve]) -> list[str]:
    apart = any(first.dosed[:2] == second.dosed[:2] and first.doses != second.doses
                and len(first.differs(second)) == 1 for first, second in combinations(curves, 2))
    return ["Curves over other doses are not compared with each other."] if apart else []
