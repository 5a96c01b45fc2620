"""Causes: why a question in a cell was answered right or wrong. Each case gets the first cause in `CAUSES` whose
predicate holds.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ragbed.agents.types import Outcome


@dataclass(frozen=True, slots=True)
class Case:
    """One question in one cell, with all facts that decide its cause."""

    outcome: Outcome
    score: float | None  # by the correctness metric that applies; None if none does
    answerable: bool = True  # answerable by the benchmark, and its gold was not dropped
    refused: bool = False  # by the rule of the run's scoring
    may_refuse: bool = True  # the rules offer a refusal
    closed_book: bool = False  # the condition shows no documents
    gold: int | None = None  # number of distinct gold items; None if none is labelled or a table replaces the documents
    found: int = 0  # number of gold items in the evidence
    coarse: bool = False  # gold was matched by document or page only
    cites: bool = False  # the rules ask for citations
    cited_gold: bool = False  # a cited passage contains gold
    unread: bool = False  # no option could be read from the reply
    unjudged: bool = False  # the judge's reply could not be parsed
    gold_alone: bool = False  # only the gold was shown
    known: bool | None = None  # right closed-book; None if unknown
    right_with_gold: bool | None = None  # right with the gold only; None if unknown
    right_with_fewer_negatives: bool | None = None  # right with fewer added negatives; None if unknown

    @property
    def right(self) -> bool:
        """Whether the score is full. Partially correct answers are not right."""
        return self.score == 1

    @property
    def answered(self) -> bool:
        """Whether there is a readable answer that is not a refusal."""
        return self.outcome == "answered" and not self.refused and not self.unread

    @property
    def failed(self) -> bool:
        """Whether there is no readable reply, and its format is not the reason."""
        return self.outcome in ("too_long", "budget", "timeout", "error")

    @property
    def in_view(self) -> bool:
        """Whether all of the gold was shown."""
        return self.gold is not None and self.found >= self.gold

    @property
    def without_gold(self) -> bool:
        """Whether the question was answered from documents that contain no gold."""
        return self.gold is not None and not self.found and not (self.closed_book or self.refused)

    @property
    def uncited(self) -> bool:
        """Whether the rules require citations, but the answer cites no gold."""
        due = self.cites and self.answerable and bool(self.found) and not self.refused
        return due and not self.cited_gold

    @property
    def told(self) -> bool | None:
        """Whether the answer is right, or None if it could not be scored."""
        if self.right:
            return True
        silent = self.score is None or self.failed or self.outcome == "malformed" or self.unread or self.unjudged
        return None if silent else False


@dataclass(frozen=True, slots=True)
class Cause:

    name: str
    title: str
    definition: str  # describes the cases that no earlier cause takes
    holds: Callable[[Case], bool]  # predicate for cases that no earlier cause takes
    right: bool = False  # the answer is right by its score


CAUSES: tuple[Cause, ...] = (
    Cause("right", "right",
          "The answer is right, or an unanswerable question was refused. If gold is named, some of it was in view, "
          "and if the rules ask for citations, a cited passage contains gold. Closed-book: the answer is right.",
          lambda case: case.right and not case.without_gold and not case.uncited, right=True),
    Cause("citation_only", "right, gold not cited",
          "The answer is right with gold in view, but no cited passage contains gold although the rules ask for "
          "citations.",
          lambda case: case.right and case.uncited, right=True),
    Cause("parametric", "parametric knowledge",
          "The answer is right without gold in view, and also right closed-book.",
          lambda case: case.right and bool(case.known), right=True),
    Cause("unsupported", "unsupported",
          "The answer is right without gold in view, and not known to be right closed-book: a guess, evidence that is "
          "not labelled as gold, or parametric knowledge.",
          lambda case: case.right, right=True),
    Cause("failed", "failed",
          "There is no answer: the prompt was too long, a limit or a deadline was reached, or a call failed.",
          lambda case: case.failed),
    Cause("format", "format",
          "The reply contains no answer or, for a question with options, names none of them.",
          lambda case: case.outcome == "malformed" or case.unread),
    Cause("unjudged", "unjudged",
          "The judge's reply could not be parsed.",
          lambda case: case.unjudged),
    Cause("not_scored", "not scored",
          "The question has no gold answer, or it is unanswerable and the rules offer no refusal.",
          lambda case: case.score is None),
    Cause("missing_refusal", "missing refusal",
          "The question is unanswerable, or its gold was dropped, and it was answered although the rules offer a "
          "refusal.",
          lambda case: not case.answerable and case.may_refuse and not case.refused),
    Cause("closed_book_wrong", "wrong closed-book",
          "Wrong or refused closed-book, without any documents.",
          lambda case: case.closed_book),
    Cause("gold_unknown", "wrong, gold unknown",
          "Wrong or refused, and no gold evidence is named, or a table replaced the documents: retrieval and reasoning "
          "cannot be told apart.",
          lambda case: case.gold is None),
    Cause("retrieval_miss", "retrieval miss",
          "Wrong or refused, and not all of the gold was in view. A refusal was justified.",
          lambda case: not case.in_view),
    Cause("wrong_refusal", "wrong refusal",
          "Refused although all of the gold was in view.",
          lambda case: case.refused),
    Cause("distracted", "distracted",
          "Wrong with all of the gold in view, but right with the gold only (condition `gold`) or, if that is not "
          "known, right with the same evidence and fewer added negatives.",
          lambda case: bool(case.right_with_fewer_negatives if case.right_with_gold is None else case.right_with_gold)),
    Cause("reasoning_error", "reasoning error",
          "Wrong with all of the gold in view, and also wrong with the gold only.",
          lambda case: case.gold_alone or case.right_with_gold is False),
    Cause("undetermined", "wrong with gold in view",
          "Wrong with all of the gold in view. The answer with the gold only is not known, so distraction and "
          "reasoning cannot be told apart.",
          lambda case: True),
)
BY_NAME = {cause.name: cause for cause in CAUSES}


@lru_cache(maxsize=4096)  # a run has few distinct cases
def find_cause(case: Case) -> Cause:
    """Return the cause of a case."""
    return next(cause for cause in CAUSES if cause.holds(case))
