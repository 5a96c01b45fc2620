"""Refusals: how much is answered, against how much of that is wrong."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from experiments.report.axes import Axis, Tick, share_axis
from experiments.report.cells import Cell, Figure, Table
from experiments.report.scatter import Goal, Scatter, Spot, looks
from experiments.words import cut, percent


@dataclass(frozen=True, slots=True)
class Line:
    """A cell: its share of answered questions, and the share of wrong ones among them.

    Attributes:
        sweep: what it shares with cells that differ from it in the threshold alone; None where there are none.
        rightly, needlessly: the shares refused of the unanswerable and of the answerable questions; of a sweep.
    """

    cell: Cell
    answered: Figure
    risk: Figure
    sweep: str | None
    threshold: float | None
    rightly: Figure
    needlessly: Figure


@dataclass(frozen=True, slots=True)
class TradeOff:
    """The chart, where anything was refused, and the same as rows.

    Attributes:
        swept: the rows of sweeps, each sweep's in the order of its thresholds.
    """

    chart: Scatter | None
    lines: tuple[Line, ...]
    swept: tuple[Line, ...] = ()


def tradeoff(stored: Sequence[Mapping[str, Any]] | None, table: Table) -> TradeOff | None:
    """The summary's trade-off; None where it has none."""
    cells = {cell.id: cell for cell in table.cells}
    lines = tuple(Line(cells[row["cell"]], Figure.of(row["answered"]), Figure.of(row["risk"]), row.get("sweep"),
                       row.get("threshold"), Figure.of(row.get("rightly")), Figure.of(row.get("needlessly")))
                  for row in stored or () if row["cell"] in cells)
    return TradeOff(_chart(lines, table), lines, _swept(lines)) if lines else None


def _swept(lines: Sequence[Line]) -> tuple[Line, ...]:
    sweeps = list(dict.fromkeys(line.sweep for line in lines if line.sweep is not None))
    return tuple(sorted((line for line in lines if line.sweep is not None),
                        key=lambda line: (sweeps.index(line.sweep or ""), line.threshold or 0.0)))


def _chart(lines: Sequence[Line], table: Table) -> Scatter | None:
    placed = [line for line in lines if line.answered.mean is not None and line.risk.mean is not None]
    if all(line.answered.mean == 1 for line in placed):
        return None
    share = _answerable([line.cell for line in placed])
    x = _fitting([line.answered for line in placed], share)
    y = _fitting([line.risk for line in placed], 0.0)
    styles, keys = looks(table, [line.cell for line in placed])
    spots = tuple(Spot(line.cell, styles[line.cell.id], x.at(line.answered.mean or 0.0), y.down(line.risk.mean or 0.0),
                       _ends(line.answered, x.at), _ends(line.risk, y.down), _lines(line)) for line in placed)
    goal = None if share is None else Goal(
        x.at(share), y.down(0.0), "all are answerable" if share == 1 else f"{percent(share)} are answerable",
        "all that is answerable is answered, and nothing wrong")
    return Scatter(spots, x, y, "questions answered rather than refused", "wrong among those answered", keys,
                   _joined(_swept(placed), {spot.cell.id: (spot.x, spot.y) for spot in spots}), goal)


def _joined(swept: Sequence[Line],
            places: Mapping[str, tuple[float, float]]) -> tuple[tuple[float, float, float, float], ...]:
    """A line from each threshold of a sweep to the next."""
    return tuple((*places[one.cell.id], *places[following.cell.id])
                 for one, following in pairwise(swept) if one.sweep == following.sweep)


def _answerable(cells: Sequence[Cell]) -> float | None:
    """The share of answerable questions; None where it is not known, or cells have dropped the gold of some."""
    shares = set()
    for cell in cells:
        (_, over), (_, right) = (cell.of(name) or ("", Figure.of(None))
                                 for name in ("refused_answerable", "refusal_accuracy"))
        shares.add(over.n / (over.n + right.n) if over.n + right.n else None)
    return shares.pop() if len(shares) == 1 else None


def _fitting(figures: Sequence[Figure], ideal: float | None) -> Axis:
    """In percent, from 0 to 100 or the part of it that the intervals and the ideal take."""
    bounds = [bound for one in figures for bound in (ideal, one.mean, one.low, one.high) if bound is not None]
    low, high = max(min(bounds) - 0.05, 0.0), min(max(bounds) + 0.05, 1.0)
    if high - low > 0.8:
        return share_axis()
    step = 5 if high - low < 0.3 else 10 if high - low < 0.6 else 20
    axis = Axis(low, high, ())
    return Axis(low, high, tuple(Tick(axis.at(at / 100), f"{at} %") for at in range(0, 101, step)
                                 if low - 1e-9 <= at / 100 <= high + 1e-9))


def _ends(figure: Figure, at: Callable[[float], float]) -> tuple[float, float] | None:
    return None if figure.low is None or figure.high is None else (at(figure.low), at(figure.high))


def _lines(line: Line) -> tuple[str, ...]:
    answered, risk = line.answered, line.risk
    at = () if line.threshold is None else (f"threshold {line.threshold:g}",)
    return (cut(line.cell.label), *at, f"answers {percent(answered.mean or 0.0)} of {answered.n}",
            f"wrong in {percent(risk.mean or 0.0)} of {risk.n} answered")
