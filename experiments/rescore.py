"""Scoring a run again from its records: no model, no journal."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.cells import Cell
from experiments.metrics.scored import Scoring
from experiments.record import Result
from experiments.results import scored_result
from experiments.scheme import Scheme
from experiments.store import RunFolder


def rescore(folder: RunFolder, cells: Sequence[Cell], scheme: Scheme, scoring: Scoring) -> Iterator[Result]:
    """The results of the cells with their scores computed anew, in the order of the records, without their traces.

    Verdicts are those that are stored: where as-published scoring asks a judge otherwise, it is not asked again.
    """
    questions = folder.questions()
    known = {cell.id: cell for cell in cells}
    for result in folder.results(traces=True):
        if cell := known.get(result.cell):
            scored = scored_result(result, cell, questions[result.question], scheme, scoring)
            yield scored.model_copy(update={"trace": ()})  # most of a record: ten thousand are not held at once
