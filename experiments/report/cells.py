"""The cells of a run as rows of the summary table: names, figures, intervals, outcomes, cost."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.types import OUTCOMES
from experiments.cells import FACTORS, labels
from experiments.metrics.catalogue import shown_name
from experiments.report.text import visible

_SHARED = (*FACTORS, "layout", "exemplars", "scoring", "judge")


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean with its 95 % interval over `n` questions; None where it is undefined."""

    mean: float | None
    low: float | None
    high: float | None
    n: int

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Figure:
        stored = stored or {}
        return cls(stored.get("mean"), stored.get("low"), stored.get("high"), int(stored.get("n") or 0))

    def marks(self, column: str) -> tuple[float, float, float] | None:
        """Where mean, low and high stand on the column's axis, from 0 to 100.

        None without an interval, and where the metric is none of those that end at 1.
        """
        least = -0.5 if column.startswith("unified") else 0.0
        if self.mean is None or self.low is None or self.high is None or self.low < least or self.high > 1:
            return None
        low, mean, high = (round((value - least) / (1 - least) * 100, 1) for value in (self.low, self.mean, self.high))
        return mean, low, high


@dataclass(frozen=True, slots=True)
class Cell:
    """One row.

    Attributes:
        number: from 1; what the plot and the question browser call it.
        label: the factors in which the cells of this run differ.
        figures: by column, where a judged metric's column names the judge: `unified (lexical)`.
    """

    id: str
    number: int
    label: str
    n: int
    figures: Mapping[str, Figure]
    outcomes: tuple[tuple[str, int], ...]
    prompt_tokens: int
    completion_tokens: int
    calls: int
    price: float | None
    judge: str | None

    @property
    def tokens_each(self) -> float | None:
        """Prompt and completion tokens per question."""
        return (self.prompt_tokens + self.completion_tokens) / self.n if self.n else None

    @property
    def bar(self) -> list[tuple[str, float, float]]:
        """The outcomes as a bar of width 100: name, where it begins, how wide it is."""
        total, at, parts = sum(count for _, count in self.outcomes) or 1, 0, []
        for name, count in self.outcomes:
            parts.append((name, round(100 * at / total, 2), round(100 * count / total, 2)))
            at += count
        return parts

    def of(self, metric: str) -> tuple[str, Figure] | None:
        """The column and figure of the metric."""
        return next(((name, figure) for name, figure in self.figures.items() if metric_of(name) == metric), None)


@dataclass(frozen=True, slots=True)
class Table:
    """All cells, the columns that any of them has, and the factors that all share.

    Attributes:
        columns: those that the benchmark is about, in its order.
        more: the others.
        quality: the metric that the benchmark is about above all, which the plot and the first sentences show.
    """

    cells: tuple[Cell, ...]
    columns: tuple[str, ...]
    more: tuple[str, ...]
    quality: str
    shared: tuple[tuple[str, str], ...]

    @property
    def drops_empty(self) -> bool:
        """Whether an answer without text counts in no published metric."""
        return ("scoring", "as-published") in self.shared


def table(stored: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Table:
    """The summary's cells as rows.

    Args:
        columns: of the benchmark's scheme; without, all metrics are its columns.
    """
    shared = tuple((name, _text(stored[0][name])) for name in _SHARED if stored and stored[0].get(name) is not None
                   and len({_text(cell.get(name)) for cell in stored}) == 1)
    named = labels(stored) if stored else []
    cells = tuple(_cell(number, cell, visible(label))
                  for number, (cell, label) in enumerate(zip(stored, named, strict=True), 1))
    seen = list(dict.fromkeys(name for cell in cells for name in cell.figures))
    wanted = [name for column in columns for name in column.split(" / ")] or [metric_of(name) for name in seen]
    first = sorted((name for name in seen if metric_of(name) in wanted), key=lambda name: wanted.index(metric_of(name)))
    return Table(cells, tuple(first), tuple(name for name in seen if name not in first), (wanted or [""])[0], shared)


def metric_of(column: str) -> str:
    """The metric of a column, whose name may end with that of the judge."""
    return column.split(" ")[0]


def _cell(number: int, stored: Mapping[str, Any], label: str) -> Cell:
    usage = stored.get("usage") or {}
    judge = stored.get("judge")
    return Cell(
        id=stored["id"], number=number, label=label, n=int(stored.get("n") or 0),
        figures={column(name, judge): Figure.of(value) for name, value in (stored.get("metrics") or {}).items()},
        outcomes=_outcomes(stored.get("outcomes") or {}),
        prompt_tokens=int(usage.get("prompt_tokens") or 0), completion_tokens=int(usage.get("completion_tokens") or 0),
        calls=int(usage.get("calls") or 0), price=usage.get("price"), judge=judge)


def _text(value: object) -> str:
    return "" if value is None else visible(str(value))


def column(name: str, judge: str | None) -> str:
    """The metric's name, with the judge's where a judge's grades are in it, safe to look at."""
    return visible(shown_name(name, judge))


def _outcomes(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    order = [*OUTCOMES, *sorted(set(counts) - set(OUTCOMES))]
    return tuple((visible(name), int(counts[name])) for name in order if counts.get(name))
