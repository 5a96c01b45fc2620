"""The causes: why a question in a cell came out as it did. Each is a predicate; the first that holds is the cause."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from experiments.attribution.case import Case


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause.

    Attributes:
        definition: of what no cause before it took.
        holds: whether it is the cause of a case that none before it is the cause of.
        right: whether the answer is right by its score, whatever it rests on.
    """

    name: str
    title: str
    definition: str
    holds: Callable[[Case], bool]
    right: bool = False


CAUSES: tuple[Cause, ...] = (
    Cause("right", "right",
          "The answer is right, or an unanswerable question was refused. Where gold is named some of it was in view, "
          "and where the rules ask for citations a cited passage holds gold. Closed-book: the answer is right.",
          lambda case: case.right and not case.without_gold and not case.uncited, right=True),
    Cause("citation_only", "right, gold not cited",
          "The answer is right with gold in view, the rules ask for citations, and no cited passage holds gold.",
          lambda case: case.right and case.uncited, right=True),
    Cause("memory", "memory",
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
    Cause("not_known", "wrong closed-book",
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
          "Wrong with all of the gold in view, and right over the gold alone (`evidence`); where that is not known, "
          "right over the same evidence with fewer added negatives.",
          lambda case: bool(case.undisturbed if case.evidence is None else case.evidence)),
    Cause("reasoning_error", "reasoning error",
          "Wrong with all of the gold in view, and wrong over the gold alone too.",
          lambda case: case.gold_alone or case.evidence is False),
    Cause("wrong_in_view", "wrong with gold in view",
          "Wrong with all of the gold in view; what the same cell makes of the gold alone is not known, so distraction "
          "and reasoning cannot be told apart.",
          lambda case: True),
)
BY_NAME = {cause.name: cause for cause in CAUSES}


@lru_cache(maxsize=4096)  # few cases of a run differ
def cause_of(case: Case) -> Cause:
    """The one cause of a case."""
    return next(cause for cause in CAUSES if cause.holds(case))
