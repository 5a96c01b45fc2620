"""The views of a run as tables of the page."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from experiments.metrics import METRICS, family_of
from experiments.report.cells import Figure
from experiments.report.text import visible
from experiments.settings.cells import short_name
from experiments.words import metric_words

_SHADES = 10
_ALL = "all"  # what stands first


@dataclass(frozen=True, slots=True)
class Entry:
    """A value of a table: words, or a figure.

    Attributes:
        n: the figure's number of questions, where it is another than its row's.
        shade: from 0 to 10, of a figure in a heat map.
    """

    text: str = ""
    figure: Figure | None = None
    n: int | None = None
    shade: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A row: what it is of, after what its group is of, and its values."""

    names: tuple[str, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A view.

    Attributes:
        groups: rows by what stands in their first column.
        keys: how many columns name a row.
    """

    anchor: str
    title: str
    header: tuple[str, ...]
    groups: tuple[tuple[str, tuple[Line, ...]], ...]
    keys: int
    notes: tuple[str, ...]
    shaded: bool


def breakdowns(views: Sequence[Mapping[str, Any]], judges: Collection[str] = ()) -> list[Breakdown]:
    """The summary's views, in order.

    Args:
        judges: whose names stand in headers, where they are shortened.
    """
    return [_breakdown(f"view-{number}", view, judges) for number, view in enumerate(views, 1)]


def _breakdown(anchor: str, view: Mapping[str, Any], judges: Collection[str]) -> Breakdown:
    keys, shaded = int(view["keys"]), bool(view["shaded"])
    groups = tuple((visible(str(name)), tuple(_line(row, keys, shaded) for row in rows))
                   for name, rows in groupby(sorted(view["rows"], key=lambda row: row[0] != _ALL),
                                             key=lambda row: row[0]))
    header = tuple(_head(str(words), judges) for words in view["header"])
    return Breakdown(anchor, visible(view["title"]), header, groups, keys,
                     tuple(visible(note) for note in view["notes"]), shaded)


def _head(words: str, judges: Collection[str]) -> str:
    """A metric in words, its judge by its short name, and what follows a colon as it is."""
    for judge in judges:
        words = words.replace(f"({judge})", f"({short_name(judge)})")
    metric, colon, rest = words.partition(":")
    name, space, judge = metric.partition(" ")
    known = metric_words(name) if family_of(name) in METRICS else name
    return visible(f"{known}{space}{judge}{colon}{rest}")


def _line(row: Sequence[Any], keys: int, shaded: bool) -> Line:
    return Line(tuple(visible(str(name)) for name in row[1:keys]),
                tuple(_entry(value, row[keys], shaded) for value in row[keys:]))


def _entry(value: Any, n: int, shaded: bool) -> Entry:
    if not isinstance(value, Mapping):
        return Entry("" if value is None else visible(str(value)))
    figure = Figure.of(value)
    if figure.mean is None:
        return Entry()
    shade = min(max(round(figure.mean * _SHADES), 0), _SHADES) if shaded else None
    return Entry(figure=figure, n=figure.n if figure.n != n else None, shade=shade)
