"""How far the cells of a dose reached it, and how hard their negatives are."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import fmean

from experiments.question import Question
from experiments.record import Result
from retrieval.hits import DECIMALS
from retrieval.perturbations import Perturbation

_SHORT = ("negatives", "among")  # kinds of notes that fewer negatives could be had


@dataclass(frozen=True, slots=True)
class Reached:
    """Attributes:
        fewer: for how many questions of the cell fewer negatives could be had than its dose.
        hardness: of the mined negatives that each question is shown, or under `among` searched over beside its gold:
            the mean, averaged over the questions that have any. It is the mean cosine with the question; None where
            none were mined.
    """

    fewer: int = 0
    hardness: float | None = None


def reached_of(change: Perturbation, results: Collection[Result], questions: Mapping[str, Question]) -> Reached:
    """Of one cell, by what it does to the evidence."""
    fewer = sum(any(note.partition(":")[0] in _SHORT for note in result.notes) for result in results)
    own = [found for result in results if (found := _hardness(change, result, questions[result.question]))]
    return Reached(fewer, round(fmean(map(fmean, own)), DECIMALS) if own else None)


def _hardness(change: Perturbation, result: Result, question: Question) -> list[float]:
    ids = question.in_turns(change.sort)[:change.among] if change.among else [one.chunk for one in result.evidence]
    return [question.mined[id].hardness for id in ids if id in question.mined]
