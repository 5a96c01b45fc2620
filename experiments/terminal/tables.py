"""The tables of a run, as the terminal shows them."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.analysis.published import published
from experiments.metrics import METRICS, family_of, measured_in, shown_name
from experiments.settings.cells import level, shortened, telling
from experiments.words import figure, price

_LONG = 15  # rows above which a view over several cells becomes a cross table
_LONGEST, _WIDEST = 64, 8  # rows of what a terminal shows at all, and columns of a cross table
_ROOM = 40  # lines of all views above which no further breakdown by a tag is shown

Table = tuple[list[str], list[list[str]]]


def run_table(cells: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the factors that tell cells apart, figures with their 95 % intervals, outcomes, passages
    shown for a question in the mean, cost.

    Shares that have a column together, joined by ` / `, stand there as counts. How many answers are unjudged has a
    column where any is, and so has what strategies measured themselves.

    Args:
        columns: of the benchmark's scheme.
    """
    factors = telling(cells)
    columns = [*columns, *measured_in(cells)]
    judge = "lexical" if cells and cells[0]["judge"] == "lexical" else None  # a model's name is long, and in the title
    unjudged = ["unjudged"] if any(map(_unjudged, cells)) else []
    header = [*factors, "n", *(_shown(column, judge) for column in columns), *unjudged, "outcomes",
              "passages", "calls", "tokens", "price"]
    return header, [_row(cell, factors, columns, bool(unjudged)) for cell in shortened(cells)]


def view_tables(views: Sequence[Mapping[str, Any]], judge: str | None) -> Iterator[tuple[str, Table | None]]:
    """`view_table` of each, with no table for a breakdown by a tag that all views together have no room for."""
    used = 0
    for view in views:
        title, table = view_table(_occurring(view) if view["name"] == "chain" else view, judge)
        lines = 0 if table is None else len(table[1]) + 2
        if used + lines > _ROOM and view["name"].startswith("by:"):
            title, table = _elsewhere(view), None
        else:
            used += lines
        yield title, table


def _occurring(view: Mapping[str, Any]) -> dict[str, Any]:
    """The chain outcomes without the patterns that no cell shows: of four hops there are 32."""
    keys, main = view["keys"] - 1, view["main"]  # the cell is the last key, the outcome the one before it
    seen = {tuple(row[:keys]) for row in view["rows"] if row[main]["mean"] or row[keys - 1][1] != " "}
    rows = [row for row in view["rows"] if tuple(row[:keys]) in seen]
    left = "" if len(rows) == len(view["rows"]) else " (patterns that never occurred are in the report)"
    return {**view, "rows": rows, "title": view["title"] + left}


def _elsewhere(view: Mapping[str, Any]) -> str:
    return f"{view['title']}: {len(view['rows'])} rows, in the report and with --json"


def view_table(view: Mapping[str, Any], judge: str | None) -> tuple[str, Table | None]:
    """Title and table of a view. A long one over several cells becomes a cross table of its main figure.

    Args:
        judge: of the run; a model's name is long, and in the title of the run's table.

    Returns:
        the title and header with rows; None for the table where it is too long or wide for a terminal.
    """
    keys, rows, title = view["keys"], view["rows"], view["title"]
    header = [name if judge == "lexical" else name.removesuffix(f" ({judge})") for name in view["header"]]
    cells = dict.fromkeys(row[keys - 1] for row in rows)
    if len(cells) == 1:
        header, rows = [*header[:keys - 1], *header[keys:]], [[*row[:keys - 1], *row[keys:]] for row in rows]
    elif len(rows) > _LONG:
        title = f"{title}: {header[view['main']]}"
        header, rows = _crossed(header, rows, keys, view["main"], list(cells))
    if len(rows) > _LONGEST or len(header) > max(len(view["header"]), keys + _WIDEST):
        return _elsewhere(view), None
    return title, (header, [[_value(value, view["shaded"]) for value in row] for row in rows])


def _crossed(header: Sequence[str], rows: Sequence[Sequence[Any]], keys: int, main: int,
             cells: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """Keys by cells with the main figure of each; cells by keys where there are many cells and few keys."""
    figures = {(tuple(row[:keys - 1]), row[keys - 1]): row[main] for row in rows}
    sizes: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        sizes.setdefault(tuple(row[:keys - 1]), []).append(row[keys])
    if len(cells) > _WIDEST >= len(sizes):
        return ([header[keys - 1], *(f"{' '.join(key)}, n {_span(sizes[key])}" for key in sizes)],
                [[cell, *(figures.get((key, cell)) for key in sizes)] for cell in cells])
    return ([*header[:keys - 1], "n", *cells],
            [[*key, _span(sizes[key]), *(figures.get((key, cell)) for cell in cells)] for key in sizes])


def _span(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return str(least) if least == most else f"{least} to {most}"


def _value(value: Any, shaded: bool) -> str:
    if isinstance(value, Mapping):
        return _counts([value]) if shaded else _interval(value)
    return "-" if value is None else str(value)


def on_published(names: Sequence[str]) -> list[str]:
    """Which of the paper's tables stand in the report."""
    by_paper: dict[str, list[str]] = {}
    for table in map(published, names):
        by_paper.setdefault(table.paper, []).append(table.table)
    return [f"The report has the paper's own figures beside these, marked as published: {paper}, {', '.join(tables)}."
            for paper, tables in by_paper.items()]


def _shown(column: str, judge: str | None) -> str:
    """The column's header: its metrics in words, and the judge's name once."""
    names = column.split(" / ")
    judged = shown_name(names[0], judge).removeprefix(names[0])
    return column.replace("_", " ") + judged


def _row(cell: Mapping[str, Any], factors: Sequence[str], columns: Sequence[str], unjudged: bool) -> list[str]:
    metrics, usage = cell["metrics"], cell["usage"]
    return [*("-" if (value := level(cell, name)) is None else str(value) for name in factors), str(cell["n"]),
            *(_figures(metrics, column) for column in columns), *([str(_unjudged(cell))] if unjudged else []),
            _outcomes(cell["outcomes"]), _passages(cell.get("passages")), str(usage["calls"]),
            str(usage["prompt_tokens"] + usage["completion_tokens"]), price(usage["price"], "?")]


def _figures(metrics: Mapping[str, Any], column: str) -> str:
    names = column.split(" / ")
    if len(names) > 1 and all(METRICS[family_of(name)].share for name in names):
        return _counts([metrics.get(name) for name in names])
    return " / ".join(_interval(metrics.get(name)) for name in names)


def _counts(shares: Sequence[Mapping[str, Any] | None]) -> str:
    """Shares as the numbers that they are of, such as `1 / 1 / 6 of 8`: several intervals have no room."""
    sizes = {0 if share is None else share["n"] for share in shares}
    if len(sizes) == 1:
        n, = sizes
        return f"{' / '.join(map(_count, shares))} of {n}" if n else "-"
    return " / ".join("-" if share is None or not share["n"] else f"{_count(share)} of {share['n']}"
                      for share in shares)


def _count(share: Mapping[str, Any] | None) -> str:
    return "-" if share is None or share["mean"] is None else str(round(share["mean"] * share["n"]))


def _unjudged(cell: Mapping[str, Any]) -> int:
    count = _count(cell["metrics"].get("unjudged"))
    return int(count) if count != "-" else 0


def _interval(metric: Mapping[str, Any] | None) -> str:
    return "-" if metric is None else figure(metric["mean"], metric["low"], metric["high"])


def _passages(mean: float | None) -> str:
    """How many a question's prompts showed; summaries of earlier versions do not say."""
    return "-" if mean is None else f"{mean:.3g}"


def _outcomes(counts: Mapping[str, int]) -> str:
    return "\n".join(f"{count} {name}" for name, count in counts.items() if count)
