"""Print the table of a run and its views, limited to what fits a terminal."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragbed.experiments.analysis.view import View, format_value
from ragbed.experiments.cells import SEPARATOR, distinguishing_factors, short_name, shorten_models
from ragbed.experiments.formatting import (
    BOUNDS,
    UNKNOWN,
    estimate,
    fmt2,
    format_bounds,
    format_p,
    format_price,
    join_names,
    metric_title,
    plural,
)
from ragbed.experiments.metrics import METRICS, custom_metrics, family_of, name_with_judge
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.report.cell_table import Table, table
from ragbed.experiments.report.pareto import merge_replicates
from ragbed.experiments.report.summary_table import SummaryRow, summary_rows
from ragbed.experiments.report.summary_text import summary_text
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.terminal.display import Column, console, print_rows, print_table, print_text, say

_MESSAGE = 300  # largest number of characters of a message
_NO_REPLY = ("error", "timeout", "budget", "too_long")


def print_summary(summary: Mapping[str, Any], full: bool = False) -> None:
    """Print the table of a run, a row per cell, and at most five sentences; with `full` all metrics, views and notes.

    In a narrow terminal, some columns are left out, and a line names them.
    """
    cells = merge_replicates(table(summary["cells"], summary["columns"]), summary.get("repeated") or ())
    sentences = summary_text(summary, cells)
    if summary.get("unjudged"):
        print_text(sentences.pop(0))
    dropped = print_rows(_columns(summary_rows(summary, cells), cells.asks_a_model), _title(summary, cells))
    if len(cells.cells) > 1:
        pairs = len((summary.get("comparisons") or {}).get("pairs") or ())
        print_text("diff: score minus the first row's, on questions scored in both; p: Holm-corrected for "
                   f"{plural(pairs, 'comparison')}" if pairs else "no differences were tested")
    if cells.quality == "right":
        print_text("score: share of all questions answered correctly, or rightly refused; correct: of the answerable "
                   "questions; refusals: of the unanswerable ones")
    say("")
    print_text(" ".join(sentences))
    failed = dict.fromkeys(summary.get("failed_metrics", {}).values())
    for text in (*failed, *(text for key in ("ungraded", "cut", "inert") for text in summary.get(key, ()))):
        print_text(text)
    if not full:
        notes = [plural(len(summary["notes"]), "note")] if summary["notes"] else []
        print_text(f"--full shows more: {join_names([*dropped, 'all metrics', 'causes', *notes], 9)}.")
        return
    say("")
    shown = {cells.quality, "citation_f1"}
    columns = [column for column in summary["columns"] if column not in shown]
    print_table(*run_table(summary["cells"], columns))
    if views := [View.of(one) for one in summary["views"] if one["name"] == "causes" or one["section"] == "Breakdowns"]:
        say("")
        print_views(views, summary["cells"][0]["judge"])
    papers = [view["title"].partition(":")[0] for view in summary["views"] if view["name"].startswith("paper:")]
    also = [f"The report also has the published figures: {'; '.join(papers)}."] if papers else []
    for text in [*summary["notes"], *also]:
        print_text(text)


def _title(summary: Mapping[str, Any], cells: Table) -> str:
    first = summary["cells"][0]
    judge = f", judge {short_name(first['judge'])}" if first["judge"] else ""
    sizes = {cell.n for cell in cells.cells}
    questions = f", {plural(sizes.pop(), 'question')}" if len(sizes) == 1 else ""
    return f"{summary['name']}{questions}: {metric_title(cells.quality)}, {first['scoring']} scoring{judge}"


def _columns(rows: Sequence[SummaryRow], asks_a_model: bool) -> list[Column]:
    """Return the columns of the summary table. Columns with the same text in every row are the first to be dropped,
    shares of the headline apart. Failures are always shown."""
    scores = [row.score for row in rows]
    tests = [row.difference for row in rows]
    titles = dict.fromkeys(title for row in rows for title in row.shares)
    f1s = [row.citation_f1 for row in rows]
    columns = [
        Column("cell", [row.cell.label for row in rows], share=0.4, right=False),
        Column("n", [str(row.score.n if row.score else row.cell.n) for row in rows], 2),
        Column("score [95 % CI]", ["-" if one is None else estimate(one.mean, one.low, one.high).removesuffix(
            f" {UNKNOWN}") for one in scores]),
        *([Column(BOUNDS, ["-" if one is None else format_bounds(one.bounds) or "-" for one in scores])]
          if any(one and one.bounds for one in scores) else []),
        *([Column("diff", ["-" if one is None else f"{one.difference:+z.2f}" for one in tests]),
           Column("p", ["-" if one is None else format_p(one.p_holm) for one in tests])] if any(tests) else []),
        *(Column(title, [row.shares.get(title, "-") for row in rows], 1) for title in titles),
        *(Column(name, [row.own.get(name, "-") for row in rows], 1) for name in dict.fromkeys(
            name for row in rows for name in row.own)),
        *([Column("cit. F1", ["-" if one is None else fmt2(one) for one in f1s], 3)] if any(f1s) else []),
        *([Column("refused", [f"{row.cell.refused:,}" for row in rows], 2),
           Column("tokens", [f"{row.cell.tokens_each:,.0f}" if row.cell.tokens_each else "?" if row.cell.calls else "0"
                             for row in rows], 4),
           Column("price", [format_price(row.cell.price, "?") for row in rows], 5)] if asks_a_model else []),
        Column("failed", [f"{row.cell.failed:,}" for row in rows], 0 if any(row.cell.failed for row in rows) else 6)]
    return [replace(one, priority=one.priority + 10) if one.priority > 1 and len(set(one.texts)) == 1 else one
            for one in columns]


def run_table(cells: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows with every factor that differs, every metric with its interval, outcomes and cost.

    Shares joined by ` / ` are shown as counts.
    """
    factors = distinguishing_factors(cells)
    columns = [*columns, *(name for name in custom_metrics(cells) if name not in columns)]
    judge = "lexical" if cells and cells[0]["judge"] == "lexical" else None  # else the title has the model's name
    unjudged = ["unjudged"] if any(map(_unjudged, cells)) else []
    names = [column.split(" / ")[0] for column in columns]
    shown = [column.replace("_", " ") + name_with_judge(name, judge).removeprefix(name)
             for column, name in zip(columns, names, strict=True)]
    cached = ["cached"] if any("cached_tokens" in cell["usage"] for cell in cells) else []
    header = [*factors, "n", *shown, *unjudged, "outcomes", "passages", "calls", "tokens", *cached, "price"]
    return header, [_row(cell, factors, columns, bool(unjudged), bool(cached)) for cell in shorten_models(cells)]



def on_failures(folder: RunFolder, retry: str) -> list[str]:
    """Return a line per kind of failure with its first message, and the command `retry` that asks again."""
    counts: dict[str, int] = {}
    messages: dict[str, str] = {}
    again = False
    for kind, message, outcome in folder.failures():
        counts[kind] = counts.get(kind, 0) + 1
        line = " ".join(message.split())
        messages.setdefault(kind, line if len(line) <= _MESSAGE else line[:_MESSAGE - 3] + "...")
        again = again or outcome in ("error", "timeout")
    lines = [f"{count} failed with {kind}, the first: {messages[kind]}" for kind, count in counts.items()]
    lines += [f"{retry} asks them again"] if again else []
    said = folder.summary().get("unjudged", {}).get("said", "")
    return [*lines, f"{retry} asks the judge again where its call failed"] if "call failed" in said else lines


def all_failed(folder: RunFolder) -> bool:
    """Return whether no question got a reply, or the judge graded no answer of a cell."""
    summary = folder.summary()
    return bool(summary.get("unjudged", {}).get("cells")) or all(
        sum(cell["outcomes"][outcome] for outcome in _NO_REPLY) == cell["n"] for cell in summary["cells"])


def _row(cell: Mapping[str, Any], factors: Sequence[str], columns: Sequence[str], unjudged: bool,
         cached: bool) -> list[str]:
    metrics, usage = cell["metrics"], cell["usage"]
    share = usage.get("cached_tokens", 0) / (usage["prompt_tokens"] or 1)  # of the prompts' tokens
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]  # 0 although there were calls: not reported
    return [*("-" if (value := cell.get(name)) is None else str(value) for name in factors), str(cell["n"]),
            *(_figures(metrics, column) for column in columns), *([str(_unjudged(cell))] if unjudged else []),
            "\n".join(f"{count} {name}" for name, count in cell["outcomes"].items() if count),
            "-" if cell["passages"] is None else f"{cell['passages']:.3g}", str(usage["calls"]),
            str(tokens) if tokens or not usage["calls"] else "?", *([f"{share:.0%}"] if cached else []),
            format_price(usage["price"], "?")]


def _figures(metrics: Mapping[str, Any], column: str) -> str:
    names = column.split(" / ")
    if len(names) > 1 and all(METRICS[family_of(name)].share for name in names):
        return _counts([metrics.get(name) for name in names])
    found = [metrics.get(name) for name in names]
    return " / ".join("-" if one is None else estimate(one["mean"], one["low"], one["high"]) + format_bounds(
        one.get("bounds"), f" {BOUNDS} ") for one in found)


def _counts(shares: Sequence[Mapping[str, Any] | None]) -> str:
    """Return shares as counts, such as `1 / 1 / 6 of 8`."""
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


_LONG = 15  # with more rows, a view over several cells becomes a cross table
_LONGEST, _WIDEST = 64, 8  # largest number of rows of any table, and of columns of a cross table
_ROOM = 40  # with more lines of views than this, no further breakdown by a tag is shown
_MANY = 12  # with more comparisons than this, only significant ones are shown

Grid = tuple[list[str], list[list[str]]]  # header and rows


# How early a narrow terminal drops columns of comparisons. The change, the difference and the corrected p are kept.
_PRIORITIES = {"verdict": 1, "n": 2, "detectable": 3, "p": 4, "after": 5, "cell's": 5, "before": 6,
               "baseline's": 6, "down": 7, "up": 8, "unpaired": 9, "effect": 10, "test": 11}
_WORDS = ("test", "effect", "verdict")  # columns that are aligned to the left


def print_views(views: Sequence[View], judge: str | None = None, whole: bool = False) -> None:
    """Print views, then the notes of all of them. `whole` prints every comparison, not only the significant ones.

    `judge` is the run's judge, whose name is left out of column names.
    """
    hidden: dict[str, None] = {}
    for place, (view, (title, grid)) in enumerate(zip(views, tables_of(views, judge, whole), strict=True)):
        if place:
            say("")
        if grid is None:
            say(title)
        elif "verdict" in view.header:
            hidden |= dict.fromkeys(print_rows(_comparison_columns(view, *grid), title))
        else:
            print_table(*grid, title=title, keys=min(view.keys, len(grid[0]) - 1))
        if left := len(view.rows) - len(_real(view)) if grid and _is_cut(view, whole) else 0:
            say(f"{left} of {len(view.rows)} comparisons are not significant.")
    notes = list(dict.fromkeys(note for view in views for note in view.notes))
    if hidden:
        notes.insert(0, f"A wider terminal and --json also show: {join_names(list(hidden), 12)}.")
    if notes:
        say("")
    for note in notes:
        print_text(note)


def _comparison_columns(view: View, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Column]:
    texts = list(zip(*rows, strict=True)) or [()] * len(header)
    return [Column(name, texts[at], _PRIORITIES.get(name.removesuffix(" [95 %]"), 0),
                   0.6 / view.keys if at < view.keys else 0.0, at >= view.keys and name not in _WORDS)
            for at, name in enumerate(header)]


def tables_of(views: Iterable[View], judge: str | None, whole: bool = False) -> Iterator[tuple[str, Grid | None]]:
    """Yield `table_of` for each view. Breakdowns by a tag are skipped once there is no more room."""
    used = 0
    for view in views:
        title, grid = table_of(_occurring(view) if view.name == "chain" else view, judge, whole)
        lines = 0 if grid is None else len(grid[1]) + 2
        if used + lines > _ROOM and view.name.startswith("by:"):
            title, grid = _elsewhere(view), None
        else:
            used += lines
        yield title, grid


def table_of(view: View, judge: str | None, whole: bool = False) -> tuple[str, Grid | None]:
    """Return the title of a view and its table; None for a view that is folded, or too large for a terminal.

    A long view over several cells becomes a cross table. Of many comparisons only the significant ones are kept.
    """
    if view.folded:
        return _elsewhere(view), None
    view = replace(view, header=tuple(name if judge == "lexical" else name.removesuffix(f" ({judge})")
                                      for name in view.header),
                   rows=_real(view) if _is_cut(view, whole) else view.rows)
    title, made, at = view.title, view, view.keys - 1
    cells = dict.fromkeys(str(row[at]) for row in view.rows) if view.header[at] == "cell" and at else {}
    if len(cells) == 1:
        made = replace(view, header=(*view.header[:at], *view.header[at + 1:]),
                       rows=tuple((*row[:at], *row[at + 1:]) for row in view.rows))
    elif cells and len(view.rows) > _LONG:
        main = at + 2 if view.main is None else view.main
        title, made = f"{view.title}: {view.header[main]}", _crossed(view, main, list(cells))
    many = len(made.rows) > (_LONGEST if not view.p else max(_LONGEST, len(view.rows)))
    if many or len(made.header) > max(len(view.header), view.keys + _WIDEST):
        return _elsewhere(view), None
    header = [f"{name} [95 %]" if not view.shaded and any(
        isinstance(value, dict) and value.get("low") is not None for value in made.column(name)) else name
        for name in made.header]
    return title, (header, [[_text(made, name, value) for name, value in zip(made.header, row, strict=True)]
                            for row in made.rows])


def _is_cut(view: View, whole: bool) -> bool:
    return not whole and "difference" in view.signed and len(view.rows) > _MANY


def _real(view: View) -> tuple[tuple[Any, ...], ...]:
    return tuple(row for row in view.rows if (p := view.p_of(row)) is not None and p < ALPHA)


def _occurring(view: View) -> View:
    """Drop chain outcomes that no cell has, since four hops have 32 possible outcomes."""
    keys = view.keys - 1  # the last key is the cell, the one before it the outcome
    seen = {row[:keys] for row in view.rows if row[keys + 2]["mean"] or row[keys - 1][1] != " "}  # type: ignore[index]
    rows = tuple(row for row in view.rows if row[:keys] in seen)
    left = "" if len(rows) == len(view.rows) else " (patterns that never occurred are in the report)"
    return replace(view, rows=rows, title=view.title + left)


def _elsewhere(view: View) -> str:
    return f"{view.title}: {len(view.rows)} rows, in the report and with --json"


def _crossed(view: View, main: int, cells: Sequence[str]) -> View:
    """Return a cross table of the main figure. Cells are the columns or, if there are many, the rows."""
    keys = view.keys
    figures = {(row[:keys - 1], row[keys - 1]): row[main] for row in view.rows}
    sizes: dict[tuple[Any, ...], list[Any]] = {}
    for row in view.rows:
        sizes.setdefault(row[:keys - 1], []).append(row[keys])
    if len(cells) > _WIDEST >= len(sizes):
        header = (view.header[keys - 1], *(f"{' '.join(map(str, key))}, n {_span(sizes[key])}" for key in sizes))
        return replace(view, header=header, rows=tuple(
            (cell, *(figures.get((key, cell)) for key in sizes)) for cell in cells))
    return replace(view, header=(*view.header[:keys - 1], "n", *cells), rows=tuple(
        (*key, _span(sizes[key]), *(figures.get((key, cell)) for cell in cells)) for key in sizes))


def _span(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return str(least) if least == most else f"{least} to {most}"


def _text(view: View, name: str, value: Any) -> str:
    if view.shaded and isinstance(value, dict) and view.section == "Breakdowns":
        return "-" if value["mean"] is None else f"{round(value['mean'] * value['n'])} of {value['n']}"
    text = format_value(view, name, value)
    room = console().width // 2
    return text if len(text) <= room or SEPARATOR in text or name != "question" else f"{text[:room - 1]}…"
