"""The cells of a run, read from its summary: names, figures, outcomes and cost."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ragbed.agents.types import OUTCOMES
from ragbed.experiments.cells import FACTORS, distinguishing_factors, label_rows, short_name, shorten_models
from ragbed.experiments.formatting import metric_title, visible
from ragbed.experiments.metrics import METRICS, family_of, name_with_judge

FAILED = ("too_long", "budget", "timeout", "error")  # outcomes without a usable reply
_SHARED = (*FACTORS, "layout", "exemplars", "scoring", "judge")
_PLAIN = {"show": "question", "repeat": "0", "exemplars": "0", "layout": "documents_first"}  # not shown


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with its 95 % interval over `n` questions; None if undefined."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    bounds: Sequence[float] | None = None  # if answers are unjudged (`metrics.aggregation`)

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Figure:
        stored = stored or {}
        return cls(stored.get("mean"), stored.get("low"), stored.get("high"), int(stored.get("n") or 0),
                   stored.get("bounds"))

    @property
    def count(self) -> int | None:
        """If the figure is a share, the number of questions that it counts."""
        return None if self.mean is None else round(self.mean * self.n)

    def marks(self, column: str) -> tuple[float, float, float] | None:
        """Return the positions of mean, low and high on the column's axis, from 0 to 100.

        Return None without an interval, or if the metric can exceed 1.
        """
        least = -0.5 if column.startswith("unified") else 0.0
        if self.mean is None or self.low is None or self.high is None or self.low < least or self.high > 1:
            return None
        low, mean, high = (round((value - least) / (1 - least) * 100, 1) for value in (self.low, self.mean, self.high))
        return mean, low, high


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column of a table: one figure, or several shares shown as counts."""

    parts: tuple[str, ...]  # keys of `ReportCell.figures`
    title: str  # such as `correct / wrong`
    judge: str

    @property
    def joined(self) -> bool:
        return len(self.parts) > 1


@dataclass(frozen=True, slots=True)
class ReportCell:
    """One cell, or several that differ only in repeat and seed."""

    id: str
    ids: tuple[str, ...]  # ids of all cells merged into it
    number: int  # from 1, as shown in plots and the question browser
    label: str  # the values of the factors that vary in this run
    factors: Mapping[str, str | None]  # None if a factor does not apply
    n: int
    figures: Mapping[str, Figure]  # by column; the column of a judged metric names the judge: `unified (lexical)`
    outcomes: tuple[tuple[str, int], ...]
    prompt_tokens: int
    completion_tokens: int
    calls: int
    price: float | None
    judge: str | None
    passages: float | None = None  # mean number of passages shown per question

    @property
    def tokens_each(self) -> float | None:
        """Prompt and completion tokens per question."""
        return (self.prompt_tokens + self.completion_tokens) / self.n if self.n else None

    @property
    def failed(self) -> int:
        """How many questions ended without a reply."""
        return sum(count for name, count in self.outcomes if name in FAILED)

    @property
    def refused(self) -> int:
        return dict(self.outcomes).get("refused", 0)

    @property
    def bar(self) -> list[tuple[str, float, float]]:
        """The outcomes as parts of a bar of width 100: name, start and width."""
        total, at, parts = sum(count for _, count in self.outcomes) or 1, 0, []
        for name, count in self.outcomes:
            parts.append((name, round(100 * at / total, 2), round(100 * count / total, 2)))
            at += count
        return parts

    def of(self, metric: str) -> tuple[str, Figure] | None:
        """Return the column and the figure of a metric; None if the cell has none."""
        return next(((name, figure) for name, figure in self.figures.items() if metric_of(name) == metric), None)

    def counts(self, column: ReportColumn) -> list[int]:
        """Return the number of questions behind each share of a joined column, or an empty list if one is unknown."""
        found = [figure.count for part in column.parts if (figure := self.figures.get(part)) is not None]
        known = [count for count in found if count is not None]
        return known if len(known) == len(column.parts) else []


@dataclass(frozen=True, slots=True)
class Table:
    """All cells, their columns, and the factors that they share."""

    cells: tuple[ReportCell, ...]
    columns: tuple[ReportColumn, ...]  # the benchmark's columns, in its order
    more: tuple[ReportColumn, ...]  # the others
    quality: str  # the headline metric
    shared: tuple[tuple[str, str], ...]  # factors with the same value in all cells
    varying: tuple[str, ...]  # factors that differ between cells

    @property
    def drops_empty(self) -> bool:
        """Whether published metrics leave out answers without text."""
        return ("scoring", "as-published") in self.shared

    @property
    def asks_a_model(self) -> bool:
        """Whether any cell called a model. Cells that only search have no refusals, tokens or price."""
        return any(cell.calls for cell in self.cells)

    @property
    def judges(self) -> tuple[str, ...]:
        """The columns of the headline metric: one per judge."""
        return tuple(dict.fromkeys(found[0] for cell in self.cells if (found := cell.of(self.quality))))

    @property
    def defined(self) -> tuple[tuple[str, str, str, str], ...]:
        """Every metric of the table: title, name in settings, definition, and the questions to which it applies."""
        names = dict.fromkeys(metric_of(part) for column in (*self.columns, *self.more) for part in column.parts)
        known = ((name, METRICS.get(family_of(name))) for name in names)
        return tuple((metric_title(name), name, metric.description, metric.over) for name, metric in known if metric)


def table(stored: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Table:
    """Read the summary's cells, with the given columns, or with all metrics if none are given."""
    values = {name: {"" if (level := cell.get(name)) is None else visible(str(level)) for cell in stored}
              for name in _SHARED}
    shared = tuple((name, min(found)) for name, found in values.items()
                   if len(found) == 1 and found.isdisjoint(("", _PLAIN.get(name))))
    named = label_rows(stored) if stored else []
    cells = tuple(_cell(number, cell, visible(label))
                  for number, (cell, label) in enumerate(zip(shorten_models(stored), named, strict=True), 1))
    seen = list(dict.fromkeys(name for cell in cells for name in cell.figures))
    wanted = list(columns) or [metric_of(name) for name in seen]
    quality = wanted[0].split(" / ")[0] if wanted else ""
    places = [_columns(names.split(" / "), seen) for names in (quality, *wanted)]
    first = dict.fromkeys(column for place in places for column in place)
    alone = {column.parts[0] for column in first if not column.joined}
    return Table(cells, tuple(first), tuple(_column([name]) for name in seen if name not in alone), quality, shared,
                 tuple(distinguishing_factors(stored)) if len(stored) > 1 else ())


def _columns(metrics: Sequence[str], seen: Sequence[str]) -> list[ReportColumn]:
    """Make one column if the metrics are all shares; otherwise make one column for each."""
    found = [name for metric in metrics for name in seen if metric_of(name) == metric]
    shares = all((known := METRICS.get(family_of(metric))) is not None and known.share for metric in metrics)
    if shares and len(found) == len(metrics) > 1:
        return [_column(found)]
    return [_column([name]) for name in found]


def _column(parts: Sequence[str]) -> ReportColumn:
    judges = dict.fromkeys(part.partition(" ")[2].strip("()") for part in parts)
    title = " / ".join(metric_title(metric_of(part)) for part in parts)
    return ReportColumn(tuple(parts), title, ", ".join(filter(None, judges)))


def metric_of(column: str) -> str:
    """Return the metric of a column, without its judge."""
    return column.split(" ")[0]


def _cell(number: int, stored: Mapping[str, Any], label: str) -> ReportCell:
    usage = stored.get("usage") or {}
    judge = stored.get("judge")
    return ReportCell(
        id=stored["id"], ids=(stored["id"],), number=number, label=label, n=int(stored.get("n") or 0),
        factors={name: None if stored.get(name) is None else visible(str(stored[name])) for name in FACTORS},
        figures={column(name, judge): Figure.of(value) for name, value in (stored.get("metrics") or {}).items()},
        outcomes=_outcomes(stored.get("outcomes") or {}),
        prompt_tokens=int(usage.get("prompt_tokens") or 0), completion_tokens=int(usage.get("completion_tokens") or 0),
        calls=int(usage.get("calls") or 0), price=usage.get("price"), judge=judge,
        passages=stored.get("passages"))


@lru_cache(maxsize=1024)
def column(name: str, judge: str | None) -> str:
    """Return the column of a metric, with the judge's short name if the metric depends on grades."""
    return visible(name_with_judge(name, short_name(judge) if judge else None))


def _outcomes(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    order = [*OUTCOMES, *sorted(set(counts) - set(OUTCOMES))]
    return tuple((visible(name), int(counts[name])) for name in order if counts.get(name))


def colour_and_shape(table: Table) -> tuple[str, str] | None:
    """Return the factors that charts show as colour and shape: reasoning and condition, or the two with the most
    levels. Return None if fewer than two factors vary."""
    if {"reasoning", "condition"} <= set(table.varying):
        return "reasoning", "condition"
    counts = {name: len({level_text(cell, name) for cell in table.cells}) for name in table.varying}
    most = sorted(table.varying, key=lambda name: (-counts[name], table.varying.index(name)))
    apart = [name for name in most[1:]  # a factor that follows from the first adds nothing, e.g. rules from closed-book
             if len({(level_text(cell, most[0]), level_text(cell, name)) for cell in table.cells}) > counts[most[0]]]
    return (most[0], apart[0]) if apart else None


def level_text(cell: ReportCell, factor: str) -> str:
    """Return the cell's value of a factor as text."""
    return cell.factors.get(factor) or "none"
