"""Which cells refuse what they should, and which what they should not, in sentences."""
from __future__ import annotations

from experiments.report.cells import Cell, Figure, Table
from experiments.report.words import listed, percent

_RIGHTLY, _NEEDLESSLY = "refusal_accuracy", "refused_answerable"


def on_refusals(table: Table) -> list[str]:
    """Of the cells whose refusals are scored, all at either end."""
    right, over = _known(table, _RIGHTLY), _known(table, _NEEDLESSLY)
    said = [_ends(right, "Unanswerable questions are rightly refused")] if right else []
    if over and not right:
        said.append("Every question is answerable, so that each refusal is needless.")
    return said + ([_ends(over, "Answerable questions are needlessly refused")] if over else [])


def _known(table: Table, metric: str) -> list[tuple[Cell, Figure]]:
    return [(cell, found[1]) for cell in table.cells if (found := cell.of(metric)) and found[1].mean is not None]


def _ends(known: list[tuple[Cell, Figure]], refused: str) -> str:
    means = [figure.mean or 0.0 for _, figure in known]
    if min(means) == max(means):
        return f"{refused} by {'each cell' if len(known) > 1 else known[0][0].label} in {_cases(known)}."
    most, least = ([one for one in known if (one[1].mean or 0.0) == end] for end in (max(means), min(means)))
    return f"{refused} most often by {_who(most)}, least often by {_who(least)}."


def _who(level: list[tuple[Cell, Figure]]) -> str:
    """The cells, which have the same mean, with it."""
    return f"{listed([cell.label for cell, _ in level])} ({'each ' if len(level) > 1 else ''}in {_cases(level)})"


def _cases(level: list[tuple[Cell, Figure]]) -> str:
    """A count, where it is one of questions; a mean of repeats is a share of them."""
    found = {f"{figure.count if len(cell.ids) == 1 else percent(figure.mean or 0.0)} of {figure.n} cases"
             for cell, figure in level}
    return found.pop() if len(found) == 1 else f"{percent(level[0][1].mean or 0.0)} of cases"
