"""Two factors of a run crossed: the mean of each combination with its interval, as a heat map."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.cells import PART, REPLICATED, labels, shortened, telling
from ragbed.experiments.metrics import METRICS, family_of
from ragbed.experiments.words import listed, metric_words

_FIRST = ("reasoning", "condition")
_MOST = 8  # tables of one run
CellRow = Mapping[str, Any]


def crossed_factors(rows: Sequence[CellRow], varying: Sequence[str]) -> tuple[str, str] | None:
    """Return reasoning and condition, or the two factors with the most levels; None where fewer than two vary."""
    if set(_FIRST) <= set(varying):
        return _FIRST
    most = sorted(varying, key=lambda name: (-len(_levels(rows, name)), varying.index(name)))
    apart = [name for name in most[1:] if not _follows(rows, name, most[0])]
    return (most[0], apart[0]) if apart else None


def level_words(row: CellRow, factor: str) -> str:
    """Return the cell's value of the factor, a missing one as `none`."""
    found = row.get(factor)
    return "none" if found is None else str(found)


def crossed_views(rows: Sequence[CellRow], columns: Sequence[str]) -> list[View]:
    """Return a heat map, by the scheme's first column, for every combination of the factors that are not crossed; none
    where fewer than two vary, no cell has a figure, or the cells' judges differ."""
    metric = columns[0].split(" / ")[0] if columns else ""
    labelled = dict(zip((row["id"] for row in rows), labels(rows), strict=True)) if rows else {}
    varying, rows = telling(rows) if len(rows) > 1 else [], shortened(rows)
    factors = crossed_factors(rows, varying)
    means = [mean for row in rows if (mean := row["metrics"].get(metric, {}).get("mean")) is not None]
    known = METRICS.get(family_of(metric))
    mixed = known is not None and known.judged and len({row.get("judge") for row in rows}) > 1
    if factors is None or not means or mixed:
        return []
    others = [name for name in varying if name not in factors
              and not any(_follows(rows, name, factor) for factor in factors)]
    parts: dict[str, list[CellRow]] = {}
    for row in rows:
        parts.setdefault(_rest(row, others), []).append(row)
    notes = [*_on_fewer(rows, labelled, metric), *([f"{len(parts) - _MOST} more such tables are left out; the table of "
                                                    "all figures has every cell."] if len(parts) > _MOST else [])]
    across = _levels(rows, factors[1])
    return [View(f"crossed:{rest}", f"{' × '.join(factors).capitalize()}: mean {metric_words(metric)}"
                 + (f", {rest}" if rest else ""), (factors[0], "n", *across),
                 tuple(_line(cells, factors, one, across, metric, labelled) for one in _levels(cells, factors[0])),
                 notes=() if place else tuple(notes), shaded=(min(means), max(means)), section="Factors")
            for place, (rest, cells) in enumerate(list(parts.items())[:_MOST])]


def _line(cells: Sequence[CellRow], factors: tuple[str, str], first: str, across: Sequence[str], metric: str,
          labelled: Mapping[str, str]) -> tuple[Value, ...]:
    """A figure leads to the questions that are wrong in its cell."""
    found: list[Value] = []
    own = [row for row in cells if level_words(row, factors[0]) == first]
    for second in across:
        row = next((row for row in own if level_words(row, factors[1]) == second), None)
        figure = row["metrics"].get(metric) if row else None
        found.append({**figure, "questions": {"wrong": labelled[row["id"]]}} if row and figure else None)
    return (first, max((int(row["n"]) for row in own), default=0), *found)


def _levels(rows: Sequence[CellRow], factor: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(level_words(row, factor) for row in rows))


def _follows(rows: Sequence[CellRow], name: str, of: str) -> bool:
    """Whether the value of one factor settles that of the other, as closed-book settles the rules."""
    return len({(level_words(row, of), level_words(row, name)) for row in rows}) == len(_levels(rows, of))


def _rest(row: CellRow, factors: Sequence[str]) -> str:
    return PART.join(f"no {name}" if (level := level_words(row, name)) == "none" else
                     f"{name} {level}" if name in REPLICATED else level for name in factors)


def _on_fewer(rows: Sequence[CellRow], labelled: Mapping[str, str], metric: str) -> list[str]:
    """A sentence for all cells whose mean leaves out the same number of questions for the same reason."""
    alike: dict[tuple[int, int, str], list[CellRow]] = {}
    for row in rows:
        figure = row["metrics"].get(metric, {})
        if figure.get("mean") is not None and figure["n"] < row["n"]:
            alike.setdefault((figure["n"], row["n"], _why(row, figure["n"], metric)), []).append(row)
    return [f"{_who(cells, rows, labelled)} over {n:,} of {of:,} questions: {why}."
            for (n, of, why), cells in alike.items()]


def _who(cells: Sequence[CellRow], rows: Sequence[CellRow], labelled: Mapping[str, str]) -> str:
    """By their conditions where these are all of them that have these."""
    if len(cells) == len(rows):
        return "Every mean is"
    conditions = dict.fromkeys(str(row.get("condition") or "") for row in cells)
    if len(cells) == sum((row.get("condition") or "") in conditions for row in rows):
        return f"Under {listed(list(conditions))} each mean is"
    return f"Of {listed([labelled[row['id']] for row in cells])} the mean is"


def _why(row: CellRow, n: int, metric: str) -> str:
    known = METRICS.get(family_of(metric))
    if row.get("scoring") == "as-published":
        return "as published, answers without text count in no mean"
    if metric == "unified" and row.get("rules") == "closed-book":
        return f"closed-book offers no refusal, so that the {row['n'] - n:,} unanswerable ones have no score"
    return f"{metric_words(metric)} is of {known.over}" if known else "the others have no score"
