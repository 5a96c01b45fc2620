"""The refusal trade-off: how much is answered, against how much of that is wrong.

Selective classification (El-Yaniv and Wiener, "On the Foundations of Noise-free Selective Classification", JMLR 11,
2010, section 2): a selective classifier (f, g) answers where g(x) = 1. Its coverage is the expectation of g, its
selective risk that of loss times g, over the coverage. Here the loss is 0 for a right answer and 1 for any other.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.attribution.case import Case
from experiments.attribution.cases import Cases
from experiments.attribution.shares import Grouped, share
from experiments.cells import Cell
from experiments.metrics.scored import may_refuse
from experiments.settings.sweeps import NO_SWEEPS, Sweeps


def tradeoff_of(cells: Sequence[Cell], cases: Cases, grouped: Grouped,
                sweeps: Sweeps = NO_SWEEPS) -> list[dict[str, Any]] | None:
    """The summary's `tradeoff`: a row for each cell whose rules offer a refusal; None where none do, or where the
    benchmark has no notion of a right answer.

    `answered` is the coverage: the share of all questions, answerable or not, to which an answer came; `refused` the
    share refused. What is neither failed or could not be read. `risk` is the share of the answers that are not right:
    partially correct ones and all answers to unanswerable questions among them; over those that are scored and judged.

    A cell whose strategy is one of a sweep has its `threshold`, and `sweep`, the name that it shares with the cells
    that differ from it in the threshold alone; and `rightly` and `needlessly` refused, the shares refused of the
    unanswerable questions and of the answerable.
    """
    rows = [{**_row(cell, cases[cell.id], grouped), **_swept(cell, cases[cell.id], grouped, sweeps)}
            for cell in cells if may_refuse(cell.rules)] if cases else []
    return rows or None


def _swept(cell: Cell, cases: Mapping[str, Case], grouped: Grouped, sweeps: Sweeps) -> dict[str, Any]:
    swept = sweeps.get(cell.reasoning)
    if swept is None:
        return {}
    refused = {answerable: {question: case.refused for question, case in cases.items() if case.answerable is answerable}
               for answerable in (False, True)}
    return {"sweep": replace(cell, reasoning=swept.rest).id, "threshold": swept.threshold,
            "rightly": share(refused[False], grouped), "needlessly": share(refused[True], grouped)}


def _row(cell: Cell, cases: Mapping[str, Case], grouped: Grouped) -> dict[str, Any]:
    told = {question: not case.right for question, case in cases.items()
            if case.answered and case.score is not None and not case.unjudged}
    return {"cell": cell.id,
            "answered": share({question: case.answered for question, case in cases.items()}, grouped),
            "refused": share({question: case.refused for question, case in cases.items()}, grouped),
            "risk": share(told, grouped)}
