"""Cost against quality: one point a cell, drawn by Plotly in the reader's browser."""
from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from experiments.report.cells import Cell, Figure, Table

# Okabe and Ito's palette without its yellow and black, which one of the two backgrounds would swallow.
# Colour is never alone: every marker carries its cell's number.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SYMBOLS = ("circle", "square", "diamond", "hexagon", "octagon")
GAP, WIDEST = 0.026, 0.06  # shares of the largest cost: between neighbours, and over all that are moved


# Plotly turns `<b>` in a text into a style attribute, which the page's policy refuses; only `<br>` is used.
Point = tuple[Cell, str, Figure]


def plot(table: Table) -> str | None:
    """The figure as Plotly's JSON; None where no cell has the first column's figure and a token count."""
    import plotly.graph_objects as go

    points = [(cell, *found) for cell in table.cells if cell.tokens_each and (found := cell.of(table.quality))
              and found[1].mean is not None]
    if not points:
        return None
    places = apart([cell.tokens_each or 0.0 for cell, _, _ in points])
    figure = go.Figure([_point(point, at) for point, at in zip(points, places, strict=True)],
                       layout=_layout([column for _, column, _ in points], table.quality))
    figure.update_layout(annotations=[_number(point, at) for point, at in zip(points, places, strict=True)])
    return str(figure.to_json())


def apart(values: Sequence[float], gap: float = GAP) -> list[float]:
    """The values, moved as little as keeps neighbours `gap` times the largest value apart, and many by less.

    Strategies over the same evidence cost nearly the same, and their intervals would hide each other; but what is
    moved far looks cheaper or dearer than it is.
    """
    least = min(gap, WIDEST / max(len(values) - 1, 1)) * max(values, default=0.0)
    clusters: list[list[tuple[float, int]]] = []
    for value, index in sorted((value, index) for index, value in enumerate(values)):
        clusters.append([(value, index)])
        while len(clusters) > 1 and _start(clusters[-1], least) - _end(clusters[-2], least) < least:
            last = clusters.pop()
            clusters[-1] += last
    placed = {index: _start(cluster, least) + step * least
              for cluster in clusters for step, (_, index) in enumerate(cluster)}
    return [placed[index] for index in range(len(values))]


def _start(cluster: Sequence[tuple[float, int]], least: float) -> float:
    middle = sum(value for value, _ in cluster) / len(cluster)
    return middle - least * (len(cluster) - 1) / 2


def _end(cluster: Sequence[tuple[float, int]], least: float) -> float:
    return _start(cluster, least) + least * (len(cluster) - 1)


def _number(point: Point, at: float) -> dict[str, Any]:
    cell, _, value = point
    ink = "#ffffff" if cell.number % len(COLOURS) == 1 else "#000000"
    return {"x": at, "y": value.mean, "text": str(cell.number), "showarrow": False,
            "font": {"size": 11, "color": ink, "weight": 700}}


def _point(point: Point, at: float) -> dict[str, Any]:
    cell, column, value = point
    mean = value.mean or 0.0
    colour = COLOURS[(cell.number - 1) % len(COLOURS)]
    name = f"{cell.number}  {html.escape(_short(cell.label))}"
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": [at], "y": [mean],
        "marker": {"size": 19, "color": colour, "symbol": SYMBOLS[(cell.number - 1) % len(SYMBOLS)]},
        "error_y": _interval(value, mean, colour),
        "hovertemplate": f"{html.escape(_short(cell.label))}<br>{html.escape(column)} {_words(value)}"
                         f"<br>{cell.tokens_each:,.0f} tokens per question<extra></extra>",
    }


def _interval(value: Figure, mean: float, colour: str) -> dict[str, Any]:
    if value.low is None or value.high is None:
        return {"visible": False}
    return {"type": "data", "symmetric": False, "array": [value.high - mean], "arrayminus": [mean - value.low],
            "color": colour, "thickness": 2, "width": 6}


def _words(value: Figure) -> str:
    interval = "" if value.low is None or value.high is None else f" [{value.low:.2f}, {value.high:.2f}]"
    return f"{value.mean:.2f}{interval}, n = {value.n}"


def _short(label: str, most: int = 60) -> str:
    return label if len(label) <= most else label[:most - 1] + "…"


def _layout(columns: Sequence[str], quality: str) -> dict[str, Any]:
    names = sorted(set(columns))
    title = html.escape(names[0] if len(names) == 1 else f"{quality} (judges differ: see the table)")
    axis = {"automargin": True, "zeroline": False, "fixedrange": True, "ticks": "outside"}
    return {
        "template": {}, "height": 430, "margin": {"l": 10, "r": 10, "t": 10, "b": 10}, "dragmode": False,
        "hovermode": "closest", "showlegend": True,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        "xaxis": {**axis, "title": {"text": "tokens per question", "font": {"size": 13}}, "rangemode": "tozero",
                  "separatethousands": True},
        "yaxis": {**axis, "title": {"text": f"mean {title}", "font": {"size": 13}}},
    }
