"""The main table of a run or a comparison as LaTeX, Markdown, or HTML for notebooks, and its scores as a picture."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

from ragbed.documents.errors import SettingsError
from ragbed.experiments.analysis.view import View, format_value
from ragbed.experiments.formatting import (
    column_title,
    estimate,
    fmt2,
    format_difference,
    format_p,
    format_price,
    metric_title,
    plural,
    visible,
)
from ragbed.experiments.guests.run_comparison.compare import RunComparison, compare_views
from ragbed.experiments.metrics import better_sign
from ragbed.experiments.report.cell_table import Table, table
from ragbed.experiments.report.pareto import best_cells, merge_replicates
from ragbed.experiments.report.summary_table import ranked_plot, summary_rows
from ragbed.experiments.report.summary_text import summary_text
from ragbed.experiments.runs.finished import Finished

_MOST = 60  # rows of a table in a notebook
Grid = tuple[list[str], list[list[str]]]


def summary_table(run: Finished) -> tuple[Table, Grid, list[int]]:
    """Return the table of a run, its header and rows as text, and the numbers of the best rows."""
    whole = merge_replicates(table(run.rows, run.summary["columns"]), run.summary.get("repeated") or ())
    rows, best = summary_rows(run.summary, whole), {cell.id for cell in best_cells(whole)}
    more = [column for column in whole.columns if column.parts[0] not in whole.judges]
    tested = any(row.difference for row in rows)
    asks = whole.asks_a_model
    header = ["cell", "n", column_title(whole.judges[0]) if whole.judges else metric_title(whole.quality),
              *(["difference to the first", "p (Holm)"] if tested else []), *(column.title for column in more),
              *(["tokens per question", "price"] if asks else [])]
    made = [[row.cell.label, str(row.score.n if row.score else row.cell.n),
             estimate(row.score.mean, row.score.low, row.score.high) if row.score else "-",
             *([format_difference(row.difference) if row.difference else "-",
                format_p(row.difference.p_holm) if row.difference else "-"] if tested else []),
             *(" / ".join("-" if (one := row.cell.figures.get(part)) is None or one.mean is None else fmt2(one.mean)
                          for part in column.parts) for column in more),
             *([f"{row.cell.tokens_each:,.0f}" if row.cell.tokens_each else "-",
                format_price(row.cell.price, "-")] if asks else [])] for row in rows]
    kept = [at for at in range(len(header)) if at < 3 or any(row[at] != "-" for row in made)]
    return (whole, ([header[at] for at in kept], [[row[at] for at in kept] for row in made]),
            [at for at, row in enumerate(rows) if row.cell.id in best] if len(best) < len(rows) else [])


def caption_of(run: Finished, whole: Table) -> str:
    """Return a sentence on what a table of the run shows."""
    sizes = sorted({cell.n for cell in whole.cells})
    lowest = ", where less is better" if better_sign(whole.quality) < 0 else ""
    return (f"{run.name}: {metric_title(whole.quality)}{lowest}, with 95 % confidence intervals, over "
            f"{' to '.join(f'{size:,}' for size in dict.fromkeys((sizes[0], sizes[-1])))} questions per cell "
            f"({run.scoring} scoring)")


_TEX = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
        "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "[": "{[}", "]": "{]}", "*": "{*}", "·": r"\textperiodcentered{}", "→": r"$\rightarrow$", "…": r"\ldots{}"}


def to_latex(run: Finished) -> str:
    """Return the main table for the LaTeX package `booktabs`. The best cell is bold."""
    whole, (header, rows), best = summary_table(run)

    def line(texts: Iterable[str], bold: bool = False) -> str:
        cells = ["".join(_TEX.get(one, one) for one in visible(text)) for text in texts]
        return " & ".join(f"\\textbf{{{cell}}}" if bold and at in (0, 2) else cell for at, cell in enumerate(
            cells)) + r" \\"

    label = re.sub("[^A-Za-z0-9-]", "-", run.name)
    caption = "".join(_TEX.get(one, one) for one in visible(caption_of(run, whole)))
    return "\n".join([
        r"% needs \usepackage{booktabs}", r"\begin{table}", r"\centering", rf"\caption{{{caption}.}}",
        rf"\label{{tab:{label}}}", rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", r"\toprule", line(header),
        r"\midrule", *(line(row, at in best) for at, row in enumerate(rows)), r"\bottomrule", r"\end{tabular}",
        r"\end{table}", ""])


def to_markdown(run: Finished) -> str:
    """Return the main table in GitHub's Markdown. The best cell is bold."""
    whole, (header, rows), best = summary_table(run)

    def line(texts: Iterable[str], bold: bool = False) -> str:
        cells = [re.sub(r"([\\`*_{}\[\]<>|~#&@])", r"\\\1", " ".join(visible(text).split())) for text in texts]
        marked = (f"**{cell}**" if bold and at in (0, 2) else cell for at, cell in enumerate(cells))
        return f"| {' | '.join(marked)} |"

    return "\n".join([f"{line([caption_of(run, whole)])[2:-2]}.", "", line(header),
                      f"|---|{'---:|' * (len(header) - 1)}", *(
                          line(row, at in best) for at, row in enumerate(rows)), ""])


def to_html(shown: Finished | View | RunComparison) -> str:
    """Return a run, a table or a comparison as a small HTML table, for notebooks. All text is escaped."""
    if isinstance(shown, Finished):
        whole, grid, _ = summary_table(shown)
        said = " ".join(summary_text(shown.summary, whole)).replace("`", "")
        return _html_table(caption_of(shown, whole), *grid, [said])
    if isinstance(shown, View):
        rows = [[format_value(shown, name, value) for name, value in zip(shown.header, row, strict=True)]
                for row in shown.rows]
        return _html_table(shown.title, shown.header, rows, shown.notes)
    return "".join(map(to_html, compare_views(shown)))


def _html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Iterable[str]) -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(f'<{tag} style="text-align:{"right" if at else "left"}">{escape(visible(text))}</{tag}>'
                       for at, text in enumerate(texts))

    left = [f"and {len(rows) - _MOST:,} more rows"] if len(rows) > _MOST else []
    return (f"<table><caption>{escape(visible(title))}</caption><thead><tr>{cells('th', header)}</tr></thead><tbody>"
            + "".join(f"<tr>{cells('td', row)}</tr>" for row in rows[:_MOST]) + "</tbody></table>"
            + "".join(f"<p>{escape(visible(note))}</p>" for note in (*left, *notes)))


_INK, _SOFT, _LINE, _DOT = "#1b2430", "#56616f", "#d9dee5", "#0072b2"
_LABELS, _PLOT, _TEXT, _ROW, _TOP = 300, 420, 170, 30, 58  # sizes in pixels


def draw_scores(run: Finished) -> str:
    """Return the scores of a run's cells with their intervals as an SVG picture, best first."""
    whole = merge_replicates(table(run.rows, run.summary["columns"]), run.summary.get("repeated") or ())
    plot = ranked_plot(summary_rows(run.summary, whole), whole)
    wide, bottom = _LABELS + _PLOT + _TEXT, _TOP + _ROW * len(plot.rows)

    def at(share: float) -> str:
        return f"{_LABELS + share / 100 * _PLOT:.1f}"

    def text(x: object, y: float, words: str, size: int = 13, colour: str = _INK, anchor: str = "start") -> str:
        return (f'<text x="{x}" y="{y:.1f}" font-family="Helvetica, Arial, sans-serif" font-size="{size}" '
                f'fill="{colour}" text-anchor="{anchor}">{escape(visible(words))}</text>')

    def line(x1: object, y1: float, x2: object, y2: float, colour: str, more: str = "") -> str:
        return f'<line x1="{x1}" y1="{y1:.1f}" x2="{x2}" y2="{y2:.1f}" stroke="{colour}"{more}/>'

    title = column_title(whole.judges[0]) if len(whole.judges) == 1 else metric_title(whole.quality)
    less = " (less is better)" if better_sign(whole.quality) < 0 else ""
    sizes = {row.score.n for row, _, _ in plot.rows if row.score}
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{bottom + 36}" '
             f'viewBox="0 0 {wide} {bottom + 36}">', f'<rect width="{wide}" height="{bottom + 36}" fill="#ffffff"/>',
             text(12, 22, _fit(f"{run.name}: {title}{less}", 100), 15),
             text(12, 41, "Mean with 95 % confidence interval" + (
                 f", {plural(sizes.pop(), 'question')} per cell" if len(sizes) == 1 else "") + (
                     f"; vertical line: {_fit(whole.cells[0].label, 42)}" if len(plot.rows) > 1 else ""), 12, _SOFT)]
    for tick in plot.axis.ticks:
        parts += [line(at(tick.at), _TOP, at(tick.at), bottom, _LINE),
                  text(at(tick.at), bottom + 18, tick.text, 12, _SOFT, "middle")]
    if plot.baseline is not None and len(plot.rows) > 1:
        parts.append(line(at(plot.baseline), _TOP, at(plot.baseline), bottom, _SOFT, ' stroke-dasharray="3 3"'))
    for place, (row, mean, ends) in enumerate(plot.rows):
        y = _TOP + _ROW * (place + 0.5)
        parts.append(text(12, y + 4.5, _fit(row.cell.label, 42)))
        if ends:
            parts.append(line(at(ends[0]), y, at(ends[1]), y, _DOT, ' stroke-width="4" stroke-opacity="0.45"'))
        if mean is not None and row.score:
            parts += [f'<circle cx="{at(mean)}" cy="{y:.1f}" r="5" fill="{_DOT}"/>',
                      text(wide - 12, y + 4.5, estimate(row.score.mean, row.score.low, row.score.high).removesuffix(
                          " [no interval]"), 13, _INK, "end")]
    return "\n".join([*parts, "</svg>", ""])


def _fit(words: str, most: int) -> str:
    """Cut a text to a width, in which a Chinese, Japanese or Korean character counts twice."""
    width = 0
    for place, one in enumerate(words):
        width += 2 if east_asian_width(one) in "WF" else 1
        if width > most:
            return words[:place - 1] + "…"
    return words


def picture_of(run: Finished, path: Path) -> bytes:
    """Return the picture of a run's scores in the format of the path's ending, .svg or .png. Raises SettingsError for
    another ending."""
    drawn = draw_scores(run).encode()
    if path.suffix.lower() == ".svg":
        return drawn
    if path.suffix.lower() != ".png":
        raise SettingsError(f"{path}: unknown ending; use .svg or .png")
    import pymupdf

    opening: Any = pymupdf.open
    with opening(stream=drawn, filetype="svg") as document:
        return bytes(document[0].get_pixmap(dpi=192).tobytes("png"))
