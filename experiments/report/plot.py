"""Cost against quality: one point a cell, drawn by Plotly in the reader's browser."""
from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from experiments.report.cells import Cell, Figure

# Okabe and Ito's palette without its yellow and black, which one of the two backgrounds would swallow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "pentagon", "hexagram", "cross", "triangle-down")


def plot(cells: Sequence[Cell]) -> str | None:
    """The figure as Plotly's JSON; None where no cell has a unified score and a token count."""
    import plotly.graph_objects as go

    points = [(cell, *found) for cell in cells if cell.tokens_each and (found := cell.unified())
              and found[1].mean is not None]
    if not points:
        return None
    figure = go.Figure([_point(cell, column, value) for cell, column, value in points],
                       layout=_layout([column for _, column, _ in points]))
    return str(figure.to_json())


def _point(cell: Cell, column: str, value: Figure) -> dict[str, Any]:
    mean = value.mean or 0.0
    colour = COLOURS[(cell.number - 1) % len(COLOURS)]
    name = f"{cell.number}  {html.escape(_short(cell.label))}"
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": [cell.tokens_each], "y": [mean],
        "marker": {"size": 14, "color": colour, "symbol": SYMBOLS[(cell.number - 1) % len(SYMBOLS)]},
        "error_y": _interval(value, mean, colour),
        "hovertemplate": f"<b>{html.escape(_short(cell.label))}</b><br>{html.escape(column)} {_words(value)}"
                         f"<br>%{{x:,.0f}} tokens per question<extra></extra>",
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


def _layout(columns: Sequence[str]) -> dict[str, Any]:
    names = sorted(set(columns))
    title = html.escape(names[0] if len(names) == 1 else "unified (judges differ: see the table)")
    axis = {"automargin": True, "zeroline": False, "fixedrange": True, "ticks": "outside"}
    return {
        "template": {}, "height": 430, "margin": {"l": 10, "r": 10, "t": 10, "b": 10}, "dragmode": False,
        "hovermode": "closest", "showlegend": True,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        "xaxis": {**axis, "title": {"text": "tokens per question (prompt and completion)"}, "rangemode": "tozero",
                  "separatethousands": True},
        "yaxis": {**axis, "title": {"text": f"mean {title}, 95 % interval"}},
    }
