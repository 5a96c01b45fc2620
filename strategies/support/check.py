"""Checking an answer: which of its sentences stand in the documents that they cite."""
from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal

from strategies.parts.watching import Seen
from strategies.sub_answers import without_sub_answers
from strategies.support.judge import graded
from strategies.support.lexical import score
from strategies.support.sentences import Statement, statements_of
from strategies.types import Asked, Draft, Evidence, Task

By = Literal["lexical", "model"]
_LONGEST_QUOTE = 300  # characters


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one statement.

    Attributes:
        value: how well it is supported, from 0 to 1; None where that could not be told.
        flaw: what is wrong with its citations or numbers, in words; empty where nothing in particular is.
    """

    statement: Statement
    value: float | None
    flaw: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found of an answer; `threshold` is the value from which a statement is supported."""

    findings: tuple[Finding, ...]
    threshold: float

    @property
    def told(self) -> tuple[Finding, ...]:
        """The statements of which it could be told."""
        return tuple(one for one in self.findings if one.value is not None)

    @property
    def unsupported(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.told if (one.value or 0.0) < self.threshold)

    @property
    def share(self) -> float | None:
        """The share of supported statements among those of which it could be told; None where there are none."""
        return (len(self.told) - len(self.unsupported)) / len(self.told) if self.told else None

    def listed(self) -> str:
        """The unsupported statements, for whoever is to mend them."""
        return "\n".join(f'- "{" ".join(one.statement.text[:_LONGEST_QUOTE].split())}": '
                         f"{one.flaw or 'its documents do not say so'}" for one in self.unsupported)

    def said(self) -> str:
        """One line for a reader."""
        return f"{len(self.told) - len(self.unsupported)} of {len(self.told)} statements are supported"


def checked(draft: Draft, task: Task, seen: Seen, by: By, threshold: float) -> Generator[Asked, Any, Checked]:
    """Check each statement of the draft against what it cites, or, where the rules ask for no citations, against all
    documents that the last prompt showed.

    A statement that cites nothing where it has to, or a document that no prompt showed, has the value 0.
    """
    evidence = seen.evidence(draft.cited)
    found = [Finding(one, *_cited_wrongly(one, task, seen)) for one in statements_of(draft, task)]
    open_ones = [one.statement for one in found if one.value is None]
    if by == "model":
        values = iter((yield from graded(task, open_ones, evidence)))
        found = [one if one.value is not None else Finding(one.statement, next(values)) for one in found]
    else:
        found = [one if one.value is not None else _scored(one.statement, task, seen, evidence) for one in found]
    return Checked(tuple(found), threshold)


def alone(draft: Draft, task: Task) -> Draft:
    """The draft's final answer, without the sub-answers that were asked for beside it."""
    return without_sub_answers(draft) if task.with_sub_answers else draft


def _cited_wrongly(one: Statement, task: Task, seen: Seen) -> tuple[float | None, str]:
    if not task.cites:
        return None, ""
    unknown = [number for number in one.cited if number not in seen.shown]
    if unknown:
        return 0.0, "it cites " + " ".join(f"[{number}]" for number in unknown[:5]) + ", which no document has"
    return (None, "") if one.cited else (0.0, "it cites no document")


def _scored(one: Statement, task: Task, seen: Seen, evidence: Evidence) -> Finding:
    cited = tuple(seen.passages[number] for number in one.cited if number in seen.passages) if task.cites else evidence
    found = score(one.text, task.question, cited)
    absent = ", ".join(found.absent[:5])
    return Finding(one, found.value, f"its documents do not say {absent}" if absent else "")
