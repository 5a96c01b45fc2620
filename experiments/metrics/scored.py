"""What metrics see of one question in one cell."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from agents.types import Outcome
from experiments.record import Grade
from strategies.types import Rules

Scoring = Literal["corrected", "as-published"]
Scores = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Scored:
    """One question's material for scoring.

    Attributes:
        answerable: whether the benchmark has the question answerable.
        text: the final answer with its citations; empty where there is none.
        refused: by ragbed's rule: the answer begins with the refusal sentence, or the structured reply refuses.
        answers: accepted gold answers; empty where the question has none.
        grade: the judge's; None where it was not asked or could not be read.
        cited: evidence numbers cited and shown.
        invalid: numbers cited that no prompt of this question showed.
        hits: per evidence number, the indices of the gold items that the passage holds.
        gold_total: number of distinct gold items, shown or not.
        gold_repeats: gold labels that the record states more than once.
        rules: what the prompt demanded; where it asks for no citations, or offers no refusal, no metric of them
            applies.
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
    rules: Rules = "grounded"

    @property
    def cites(self) -> bool:
        """Whether the rules ask for citations."""
        return self.rules in ("grounded", "open")

    @property
    def may_refuse(self) -> bool:
        """Whether the rules offer a refusal."""
        return may_refuse(self.rules)


def may_refuse(rules: Rules) -> bool:
    """Whether a prompt of these rules offers a refusal."""
    return rules == "grounded"


def needs_judge(outcome: Outcome, answerable: bool, answers: tuple[str, ...]) -> bool:
    """Whether a judge is asked: only for an answer to an answerable question whose gold answer is known.

    A refusal is Wrong and a failure scores 0 without asking; an unanswerable question is scored by refusal alone.
    """
    return outcome == "answered" and answerable and bool(answers)
