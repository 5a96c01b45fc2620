"""The causes: why a question in a cell came out as it did. Each is a predicate; the first that holds is the cause.
Case: what the cause of one question's outcome in one cell depends on, all of it out of the record."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ragbed.agents.types import Outcome


@dataclass(frozen=True, slots=True)
class Case:
    """One question in one cell."""

    outcome: Outcome
    score: float | None  # of the metric that says what is right (`Scheme.correctness_metrics`); None where none applies
    answerable: bool = True  # whether the benchmark has the question answerable, and its gold was not dropped
    refused: bool = False  # by the rule of the run's scoring
    may_refuse: bool = True  # whether the rules offer a refusal
    closed_book: bool = False  # whether no documents were shown by intention
    gold: int | None = None  # distinct gold items; None where none is named, or a table takes the documents' place
    found: int = 0  # how many of them stood in the evidence
    coarse: bool = False  # whether what was found of them was matched by document or page alone
    cites: bool = False  # whether the rules ask for citations
    cited_gold: bool = False  # whether a cited passage holds gold
    unread: bool = False  # whether a reply came in which the scoring finds no option
    unjudged: bool = False  # whether the judge said nothing readable of the answer
    gold_alone: bool = False  # whether nothing but the gold was placed
    known: bool | None = None  # whether the question is right closed-book; None where that cannot be told
    right_with_gold: bool | None = None  # whether it is right over the gold alone; None where that cannot be told
    right_with_fewer_negatives: bool | None = None  # likewise over the same evidence with fewer added negatives

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


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause."""

    name: str
    title: str
    definition: str  # of what no cause before it took
    holds: Callable[[Case], bool]  # whether it is the cause of a case that none before it is the cause of
    right: bool = False  # whether the answer is right by its score, whatever it rests on


CAUSES: tuple[Cause, ...] = (
    Cause("right", "right",
          "The answer is right, or an unanswerable question was refused. Where gold is named some of it was in view, "
          "and where the rules ask for citations a cited passage holds gold. Closed-book: the answer is right.",
          lambda case: case.right and not case.without_gold and not case.uncited, right=True),
    Cause("citation_only", "right, gold not cited",
          "The answer is right with gold in view, the rules ask for citations, and no cited passage holds gold.",
          lambda case: case.right and case.uncited, right=True),
    Cause("parametric", "parametric knowledge",
          "The answer is right although none of the gold was in view, and right closed-book too.",
          lambda case: case.right and bool(case.known), right=True),
    Cause("unsupported", "unsupported",
          "The answer is right although none of the gold was in view, and not known to be right closed-book: a guess, "
          "evidence that is not named as gold, or memory.",
          lambda case: case.right, right=True),
    Cause("failed", "failed",
          "No answer came: the prompt was too long, a limit or a deadline was reached, or a call failed.",
          lambda case: case.failed),
    Cause("format", "format",
          "A reply came that holds no answer, or, of a question with options, names none.",
          lambda case: case.outcome == "malformed" or case.unread),
    Cause("unjudged", "unjudged",
          "An answer came, and the judge said nothing readable of it.",
          lambda case: case.unjudged),
    Cause("not_scored", "not scored",
          "Nothing says what is right: the question has no gold answer, or it is unanswerable and the rules offer no "
          "refusal.",
          lambda case: case.score is None),
    Cause("missing_refusal", "missing refusal",
          "The question is unanswerable, or its gold was dropped, the rules offer a refusal, and it was answered.",
          lambda case: not case.answerable and case.may_refuse and not case.refused),
    Cause("closed_book_wrong", "wrong closed-book",
          "Wrong, or refused, closed-book: nothing was shown that could have been read wrongly.",
          lambda case: case.closed_book),
    Cause("gold_unknown", "wrong, gold unknown",
          "Wrong, or refused, where no gold evidence is named, or a table stood in its place: retrieval and reasoning "
          "cannot be told apart.",
          lambda case: case.gold is None),
    Cause("retrieval_miss", "retrieval miss",
          "Wrong, or refused, and not all of the gold was in view. A refusal was rightful then.",
          lambda case: not case.in_view),
    Cause("wrong_refusal", "wrong refusal",
          "Refused although all of the gold was in view.",
          lambda case: case.refused),
    Cause("distracted", "distracted",
          "Wrong with all of the gold in view, and right over the gold alone (`gold`); where that is not known, "
          "right over the same evidence with fewer added negatives.",
          lambda case: bool(case.right_with_fewer_negatives if case.right_with_gold is None else case.right_with_gold)),
    Cause("reasoning_error", "reasoning error",
          "Wrong with all of the gold in view, and wrong over the gold alone too.",
          lambda case: case.gold_alone or case.right_with_gold is False),
    Cause("undetermined", "wrong with gold in view",
          "Wrong with all of the gold in view; what the same cell makes of the gold alone is not known, so distraction "
          "and reasoning cannot be told apart.",
          lambda case: True),
)
BY_NAME = {cause.name: cause for cause in CAUSES}


@lru_cache(maxsize=4096)  # few cases of a run differ
def find_cause(case: Case) -> Cause:
    """Return the one cause of a case."""
    return next(cause for cause in CAUSES if cause.holds(case))
