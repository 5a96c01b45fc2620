"""The best level of one factor under each level of another, such as the best strategy under each condition."""
from __future__ import annotations

from collections.abc import Sequence

from experiments.report.cells import Cell, Table
from experiments.report.comparisons import Comparisons
from experiments.report.contenders import in_words, rank
from experiments.report.grid import crossed, level_of
from experiments.report.standing import figures, leaders, standing
from experiments.report.words import listed

_MOST = 6  # sentences


def on_parts(table: Table, tested: Comparisons | None) -> list[str]:
    """A sentence for each level of the second of two crossed factors; none where a third one varies.

    Conditions stand in the order in which they compete.
    """
    factors = crossed(table)
    if factors is None or tested is None or len(table.varying) > 2 or len(table.judges) > 1:
        return []
    parts: dict[str, list[Cell]] = {}
    for cell in table.cells:
        parts.setdefault(level_of(cell, factors[1]), []).append(cell)
    several = [(_called(factors[1], level), cells) for level, cells in parts.items() if len(cells) > 1]
    if factors[1] == "condition":
        several.sort(key=lambda part: rank(part[1][0].factors.get("condition") or ""))
    return [f"{words}: {_best(cells, factors[0], table, tested)}." for words, cells in several
            ] if 1 < len(several) <= _MOST else []


def _called(factor: str, level: str) -> str:
    return in_words(level) if factor == "condition" else f"{factor.capitalize()} {level}"


def _best(cells: Sequence[Cell], factor: str, table: Table, tested: Comparisons) -> str:
    best = leaders(table, cells)
    if not best:
        return "no figure"
    mean = f"{figures(table)[best[0].id].mean or 0.0:z.2f}"
    if len(best) > 1:
        return f"{listed([level_of(cell, factor) for cell in best])} alike, {mean}"
    found = standing(best[0], tested, factor)
    parts = [(words, [level_of(cell, factor) for cell in found.others(pairs)]) for words, pairs in
             (("really better than", found.below), ("different on its own from", found.alone),
              ("no difference seen from", found.level),
              ("really below, over the questions that both have,", found.above))]
    said = "; ".join(f"{words} {listed(names)}" for words, names in parts if names)
    return f"{level_of(best[0], factor)}, {mean}, {said or 'tested against none'}"
