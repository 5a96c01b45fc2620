"""Case: what the cause of one question's outcome in one cell depends on, all of it out of the record."""
from __future__ import annotations

from dataclasses import dataclass

from agents.types import Outcome


@dataclass(frozen=True, slots=True)
class Case:
    """One question in one cell.

    Attributes:
        score: of the metric that says what is right (`Scheme.rights`); None where none applies.
        answerable: whether the benchmark has the question answerable, and its gold was not dropped.
        refused: by the rule of the run's scoring.
        may_refuse: whether the rules offer a refusal.
        closed_book: whether no documents were shown by intention.
        gold: number of distinct gold items; None where none is named, or where the table stands in place of the
            documents, so that what was in view cannot be told.
        found: how many of them stood in the evidence.
        coarse: whether what was found of them was matched by document or page alone.
        cites: whether the rules ask for citations.
        cited_gold: whether a cited passage holds gold.
        unread: whether a reply came in which the scoring finds no option.
        unjudged: whether the judge said nothing readable of the answer.
        gold_alone: whether nothing but the gold was placed.
        known: whether the question is right closed-book; None where that cannot be told.
        evidence: whether it is right over the gold alone; None where that cannot be told.
        undisturbed: whether it is right over the same evidence with fewer added negatives; None likewise.
    """

    outcome: Outcome
    score: float | None
    answerable: bool = True
    refused: bool = False
    may_refuse: bool = True
    closed_book: bool = False
    gold: int | None = None
    found: int = 0
    coarse: bool = False
    cites: bool = False
    cited_gold: bool = False
    unread: bool = False
    unjudged: bool = False
    gold_alone: bool = False
    known: bool | None = None
    evidence: bool | None = None
    undisturbed: bool | None = None

    @property
    def right(self) -> bool:
        """Whether the score is full: what is partially correct is not right."""
        return self.score == 1

    @property
    def answered(self) -> bool:
        """Whether an answer came that can be read and is no refusal."""
        return self.outcome == "answered" and not self.refused and not self.unread

    @property
    def failed(self) -> bool:
        """Whether no reply came that could be read as an answer or a refusal, for reasons that are not its form."""
        return self.outcome in ("too_long", "budget", "timeout", "error")

    @property
    def in_view(self) -> bool:
        """Whether all of the gold was shown."""
        return self.gold is not None and self.found >= self.gold

    @property
    def without_gold(self) -> bool:
        """Whether it was answered from documents of which none holds gold."""
        return self.gold is not None and not self.found and not (self.closed_book or self.refused)

    @property
    def uncited(self) -> bool:
        """Whether citations of the gold were due, and none came."""
        due = self.cites and self.answerable and bool(self.found) and not self.refused
        return due and not self.cited_gold

    @property
    def told(self) -> bool | None:
        """Whether it is right; None where nothing was said that could be right or wrong."""
        if self.right:
            return True
        silent = self.score is None or self.failed or self.outcome == "malformed" or self.unread or self.unjudged
        return None if silent else False
