"""Cost against quality, one point a way of answering, with the Pareto front of those that compete."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from experiments.report.axes import Axis, cost_axis, quality_axis
from experiments.report.cells import Cell, Figure, Table
from experiments.report.contenders import contenders
from experiments.report.cost import Cost, front
from experiments.report.scatter import Scatter, Spot, beside, looks
from experiments.report.words import column_words, cut, interval, metric_words, plural

_LEAST = {"unified": -0.5}  # of metrics that go below 0


def plot(table: Table, cost: Cost) -> Scatter | None:
    """None where no cell has both the first column's figure and a cost.

    Args:
        table: of entrants, so that repeats of a cell do not compete with each other.
    """
    found = [(cell, *one) for cell in table.cells
             if cell.id in cost.of and (one := cell.of(table.quality)) and one[1].mean is not None]
    if not found:
        return None
    x = cost_axis([cost.of[cell.id] for cell, _, _ in found], cost.words)
    y = quality_axis([bound for _, _, one in found for bound in (one.mean, one.low, one.high)],
                     _LEAST.get(table.quality, 0.0))
    styles, keys = looks(table, [cell for cell, _, _ in found])
    rivals = contenders(table)
    best, competing = ({cell.id for cell in cells} for cells in (front(rivals, cost), rivals.cells))
    heights = [y.down(figure.mean or 0.0) for _, _, figure in found]
    places = beside([x.at(cost.of[cell.id]) for cell, _, _ in found], heights)
    spots = tuple(Spot(cell, styles[cell.id], place, height, None, _up(figure, y), _lines(cell, column, figure, cost),
                       cell.id in best, cell.id not in competing)
                  for (cell, column, figure), place, height in zip(found, places, heights, strict=True))
    title = column_words(table.judges[0]) if len(table.judges) == 1 else \
        f"{metric_words(table.quality)} (judges differ: see the table)"
    return Scatter(spots, x, y, cost.unit + (", logarithmic" if x.logarithmic else ""), f"mean {title}", keys,
                   _steps([spot for spot in spots if spot.front]))


def _up(figure: Figure, axis: Axis) -> tuple[float, float] | None:
    if figure.low is None or figure.high is None:
        return None
    return axis.down(figure.low), axis.down(figure.high)


def _lines(cell: Cell, column: str, figure: Figure, cost: Cost) -> tuple[str, ...]:
    return (cut(cell.label), f"{column_words(column)} {figure.mean or 0.0:z.2f} {interval(figure.low, figure.high)}, "
            f"{plural(figure.n, 'question')}", cost.full(cost.of[cell.id]))


def _steps(spots: Sequence[Spot]) -> tuple[tuple[float, float, float, float], ...]:
    """Up from the axis to the cheapest, then along and up from one to the next, and along from the best."""
    at = sorted((spot.x, spot.y) for spot in spots)
    if not at:
        return ()
    lines = [(at[0][0], 100.0, *at[0])]
    for (x, y), (further, higher) in pairwise(at):
        lines += [(x, y, further, y), (further, y, further, higher)]
    return (*lines, (*at[-1], 100.0, at[-1][1]))
