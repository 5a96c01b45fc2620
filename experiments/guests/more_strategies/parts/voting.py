"""Group drafts by their answer, and find the answer with the most votes."""
from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ragbed.strategies.answering import strip_sub_answers
from ragbed.strategies.choice import read_choice
from ragbed.strategies.normalizing import normalize_values
from ragbed.strategies.reading import is_only_citations, read_citations, strip_citations
from ragbed.strategies.types import Draft, Task

_REFUSED = ("refused", "")
_POLAR = re.compile(r"(?:(yes|예|네)|(no|아니요|아니오))(?=\s*(?:[.,;:!–—]|\Z))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Votes:
    """The votes of drafts for answers."""

    answers: tuple[tuple[Draft, ...], ...]  # the drafts of each answer, in order of first appearance
    malformed: int  # number of drafts without an answer

    @property
    def best(self) -> tuple[Draft, ...]:
        """Return the drafts of the answer with the most votes, or of the first one on a tie; empty without answers."""
        return max(self.answers, key=len, default=())

    @property
    def count(self) -> int:
        """Count the drafts, malformed ones too."""
        return self.malformed + sum(map(len, self.answers))

    @property
    def agreement(self) -> float:
        """Return the share of all drafts that give the best answer; 0 without one."""
        return len(self.best) / self.count if self.count else 0.0

    @property
    def chosen(self) -> Draft | None:
        """Return the best answer's first draft with citations, or its first draft."""
        return next((draft for draft in self.best if draft.cited and not draft.refused), next(iter(self.best), None))

    @property
    def said(self) -> str:
        """Describe the votes in one line."""
        others = len(self.answers) - 1
        agree = "refuse" if any(draft.refused for draft in self.best) else "agree"
        parts = [f"{len(self.best)} of {self.count} {agree}",
                 f"{others} other {'answers' if others > 1 else 'answer'}" if others > 0 else "",
                 f"{self.malformed} without an answer" if self.malformed else ""]
        return ", ".join(filter(None, parts))


def tally(task: Task, drafts: Sequence[Draft], shown: Collection[int]) -> Votes:
    """Group the drafts by their answer; `shown` are the evidence numbers that any prompt showed."""
    answers: dict[tuple[str, str], list[Draft]] = {}
    for draft in drafts:
        if (key := vote_key(task, draft, shown)) is not None:
            answers.setdefault(key, []).append(draft)
    return Votes(tuple(map(tuple, answers.values())), len(drafts) - sum(map(len, answers.values())))


def vote_key(task: Task, draft: Draft, shown: Collection[int]) -> tuple[str, str] | None:
    """Return a key that equal answers share; None for a draft without an answer.

    All refusals are equal. Options are compared by label. A text that begins with yes or no is compared by that word.
    Other texts ignore citations, case, punctuation and articles, and compare numbers and dates by value.
    """
    draft = strip_sub_answers(draft, task)
    if not draft.well_formed:
        return None
    if draft.refused:
        return _REFUSED
    label = read_choice(draft.text, task.options) if task.options else None
    if label is not None or task.chooses:
        return None if label is None else ("option", label)
    if task.separators and is_only_citations(draft.text) and set(shown).issuperset(read_citations(draft.text)):
        return None
    text = strip_citations(draft.text)
    polar = _POLAR.match(text)
    if polar:
        return "polar", "yes" if polar[1] else "no"
    return "text", normalize_values(text) or text
