"""Cost against quality: a point for each way of answering, with the Pareto front of those that compete."""
from __future__ import annotations

from experiments.analysis.view import Chart, Mark, Point
from experiments.report.cells import Table
from experiments.report.competition import CellCosts, front
from experiments.report.entrants import contenders
from experiments.words import column_words, cut, interval, metric_words, plural

_LEAST = {"unified": -0.5}  # of metrics that go below 0


def plot(table: Table, cost: CellCosts) -> Chart | None:
    """Return the chart; None where no cell has both the first column's figure and a cost.

    Args:
        table: of entrants, so that repeats of a cell do not compete with each other.
    """
    rivals = contenders(table)
    best, competing = ({cell.id for cell in cells} for cells in (front(rivals, cost), rivals.cells))
    points = []
    for cell in table.cells:
        found = cell.of(table.quality)
        if cell.id not in cost.of or found is None or found[1].mean is None:
            continue
        column, figure = found
        said = f"{column_words(column)} {found[1].mean:z.2f} {interval(figure.low, figure.high)}"
        words = cut(cell.label), f"{said}, {plural(figure.n, 'question')}", cost.full(cost.of[cell.id])
        mark: Mark = "front" if cell.id in best else "" if cell.id in competing else "faded"
        points.append(Point(cell.label, cost.of[cell.id], found[1].mean, figure.low, figure.high, cell=cell.id,
                            words=words, mark=mark))
    if not points:
        return None
    one = len(table.judges) == 1
    quality = column_words(table.judges[0]) if one else metric_words(table.quality)
    y = f"mean {quality}" if one else f"mean {quality} (judges differ: see the table)"
    merged = any(len(cell.ids) > 1 for cell in table.cells)
    title = f"Mean {quality} with its interval against {cost.unit}, " + (
        "one point for all repeats of a cell." if merged else
        "one point a cell. The table of all figures has the same.")
    return Chart("scatter", title, cost.unit, y, tuple(points), _LEAST.get(table.quality, 0.0),
                 costs="dollars" if cost.priced else "tokens",
                 caption=_caption(merged, bool(best), len(competing) < len(table.cells), cost))


def _caption(merged: bool, drawn: bool, rivals: bool, cost: CellCosts) -> str:
    said = ["Upright bars are 95 % intervals of the mean; higher is better, further left is cheaper."]
    if merged:
        said.append("Repeats of a cell are one point, with their mean, under the number of the first.")
    if drawn:
        of = " of the cells that could be put to use" if rivals else ""
        said.append(f"The stepped line is the Pareto front{of}: of those on it, which are ringed, none has another "
                    "with a higher mean for as little. It goes by means; which differences are real, the tests say.")
    if rivals:
        said.append("Faded cells do not compete: they are asked under other conditions, such as over the gold alone "
                    "(gold) or without any document (closed-book), or their evidence is changed.")
    what = "the price" if cost.priced else "prompt and completion tokens"
    why = "" if cost.priced else ", as not every cell has a price above 0"
    said.append(f"Cost is {what} per question{why}. Points of nearly the same cost are moved sideways a little so that "
                "they do not hide each other.")
    return " ".join(said)
