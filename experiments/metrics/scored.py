"""What metrics see of one question in one cell."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agents.types import Outcome

Scoring = Literal["corrected", "as-published"]
Grade = Literal["Correct", "Partially Correct", "Wrong"]
Scores = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Scored:
    """One question's material for scoring.

    Attributes:
        answerable: as scored: False also where a perturbation dropped the gold.
        text: the final answer with its citations; empty where there is none.
        refused: by ragbed's rule: the answer begins with the refusal sentence, or the structured reply refuses.
        answers: accepted gold answers; empty where the question has none.
        grade: the judge's; None where it was not asked or could not be read.
        cited: evidence numbers cited and shown.
        invalid: numbers cited that no prompt of this question showed.
        hits: per evidence number, the indices of the gold items that the passage holds.
        gold_total: number of distinct gold items, shown or not.
        gold_repeats: gold labels that the record states more than once.
        citations: whether the rules ask for citations; without, no citation metric applies.
    """

    outcome: Outcome
    answerable: bool
    text: str = ""
    refused: bool = False
    tagged: bool | None = None
    answers: tuple[str, ...] = ()
    grade: Grade | None = None
    cited: tuple[int, ...] = ()
    invalid: tuple[int, ...] = ()
    hits: Mapping[int, frozenset[int]] = field(default_factory=dict)
    gold_total: int = 0
    gold_repeats: int = 0
    citations: bool = True


def needs_judge(outcome: Outcome, answerable: bool, answers: tuple[str, ...]) -> bool:
    """Whether a judge is asked: only for an answer to an answerable question whose gold answer is known.

    A refusal is Wrong and a failure scores 0 without asking; an unanswerable question is scored by refusal alone.
    """
    return outcome == "answered" and answerable and bool(answers)
