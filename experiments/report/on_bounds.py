"""How much better evidence could make the best cell, and what the model knows without any, in sentences."""
from __future__ import annotations

from experiments.report.cells import Cell, Table
from experiments.report.on_quality import mean_words
from experiments.report.standing import figures, leaders

_SAME = ("benchmark", "model", "reasoning", "show")
_BOUNDS = {"evidence": ("With the gold alone (evidence) {} reaches {}{}.", ", the ceiling"),
           "closed-book": ("Without any document (closed-book) {} reaches {}{}.", ", the floor")}


def on_bounds(table: Table, competing: Table) -> list[str]:
    """The best of the competing cells under `evidence` and `closed-book`, as far as these do not compete."""
    best, known = leaders(competing), figures(table)
    rivals = {cell.id for cell in competing.cells}
    if not best or len(competing.cells) == len(table.cells):
        return []
    said: list[str] = []
    for condition, (sentence, name) in _BOUNDS.items():
        cell = _under(condition, best[0], table)
        if cell is not None and cell.id in known and cell.id not in rivals:
            figure, own = known[cell.id], known[best[0].id]
            over = "" if figure.n == own.n else f" over {figure.n} of the {own.n} questions"
            beyond = ((figure.mean or 0.0) - (own.mean or 0.0)) * (1 if condition == "evidence" else -1)
            said.append(sentence.format("the same" if not said else "it", mean_words(figure) + over,
                                        name if beyond > 0 else ""))
    return said


def _under(condition: str, best: Cell, table: Table) -> Cell | None:
    """The cell that answers in the same way, without perturbation, under another condition."""
    return next((cell for cell in table.cells if cell.factors.get("condition") == condition
                 and cell.factors.get("perturbation") is None
                 and all(cell.factors.get(name) == best.factors.get(name) for name in _SAME)), None)
