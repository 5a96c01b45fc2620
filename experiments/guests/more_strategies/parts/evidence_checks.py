"""Check whether the documents suffice for an answer, and whether each sentence is supported by those it cites."""
from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ragbed.experiments.guests.answer_support.statements import (
    MAX_REPLY,
    Statement,
    read_grades,
    read_share,
    read_statements,
)
from ragbed.experiments.guests.answer_support.word_overlap import score
from ragbed.experiments.guests.more_strategies.parts.tracing import EvidenceTrace
from ragbed.strategies.answering import ask, ask_for_answer, draft, strip_sub_answers
from ragbed.strategies.parts.reading import says_nothing
from ragbed.strategies.prompting import fill_untrusted, template
from ragbed.strategies.reading import fold, read_answer
from ragbed.strategies.types import Asked, Draft, Evidence, Reply, Task

_MAX_STATEMENT, _MAX_QUERY = 2_000, 300  # characters
_EDGE = r"[ \t*_#>`-]{0,8}"
_SAYS = r"(?:sufficiency|sufficient|score|rating|grade|충분성|충분도)"
_GRADE = re.compile(rf"^{_EDGE}{_SAYS}\b{_EDGE}[:：=]?([^\n]{{0,200}})", re.IGNORECASE | re.MULTILINE)
_MISSING = re.compile(rf"^{_EDGE}(?:what is )?(?:missing|부족한 것|부족)\b{_EDGE}[:：]([^\n]*)",
                      re.IGNORECASE | re.MULTILINE)
_SHORT = 40  # characters of a reply that consists of the grade only


@dataclass(frozen=True, slots=True)
class Sufficiency:
    """The model's judgement whether the documents contain everything that an answer needs."""

    value: float | None  # from 0 to 1; None if the reply could not be read
    missing: str = ""  # what to search for; empty if the model names nothing


def judge_sufficiency(task: Task, evidence: Evidence) -> Generator[Asked, Any, Sufficiency]:
    """Ask the model with one call whether the evidence suffices. Without evidence it is 0, without a call."""
    if not evidence:
        return Sufficiency(0.0)
    reply: Reply = yield ask(task, template("sufficiency"), evidence, "sufficiency")
    return read_sufficiency(reply.text)


def read_sufficiency(text: str) -> Sufficiency:
    """Read the last grade and the last missing fact from the lines of a reply. A reply of a few words without such a
    line is read as the grade."""
    said = read_answer(text)[0][:MAX_REPLY]
    grades = [grade for line in _GRADE.findall(said) if (grade := read_share(line)) is not None]
    whole = read_share(said) if not grades and len(said) <= _SHORT else None
    missing = next((line.strip(" *_`\t\r") for line in reversed(_MISSING.findall(said))), "")
    needed = "" if says_nothing(missing) or fold(missing) == "missing" else missing[:_MAX_QUERY]
    return Sufficiency(grades[-1] if grades else whole, needed)


def grade_statements(task: Task, statements: Sequence[Statement], evidence: Evidence) \
        -> Generator[Asked, Any, list[float | None]]:
    """Ask the model how well the documents support each statement: 1, 0.5 or 0; None if the grade cannot be read. The
    prompt shows all evidence, so that it begins like the answer's prompt."""
    if not statements:
        return []
    listed = []
    for place, one in enumerate(statements, 1):
        names = " ".join(f"[{number}]" for number in one.cited)
        listed.append(f"{place}. {' '.join(one.text[:_MAX_STATEMENT].split())}"
                      + (f" (documents {names})" if task.cites and names else ""))
    said = fill_untrusted("support_check", statements="\n".join(listed), count=str(len(statements)))
    reply: Reply = yield ask(task, said, evidence, "check")
    return read_grades(reply.text, len(statements))


By = Literal["lexical", "model"]
_MAX_QUOTE = 300  # characters


@dataclass(frozen=True, slots=True)
class StatementCheck:
    """The result of checking one statement."""

    statement: Statement
    value: float | None  # how well it is supported, from 0 to 1; None if undecided
    flaw: str = ""  # a problem with its citations or numbers, in words


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking an answer. A statement is supported if its value is at least `threshold`."""

    findings: tuple[StatementCheck, ...]
    threshold: float

    @property
    def told(self) -> tuple[StatementCheck, ...]:
        """Return the decided statements, which have a value."""
        return tuple(one for one in self.findings if one.value is not None)

    @property
    def unsupported(self) -> tuple[StatementCheck, ...]:
        return tuple(one for one in self.told if (one.value or 0.0) < self.threshold)

    @property
    def share(self) -> float | None:
        """Return the share of decided statements that are supported; None if none is decided."""
        return (len(self.told) - len(self.unsupported)) / len(self.told) if self.told else None

    def listed(self) -> str:
        """Format the unsupported statements for the prompt that repairs them."""
        return "\n".join(f'- "{" ".join(one.statement.text[:_MAX_QUOTE].split())}": '
                         f"{one.flaw or 'its documents do not say so'}" for one in self.unsupported)

    def said(self) -> str:
        """Describe the check in one line."""
        return f"{len(self.told) - len(self.unsupported)} of {len(self.told)} statements are supported"


def check_statements(draft: Draft, task: Task, seen: EvidenceTrace, by: By,
                     threshold: float) -> Generator[Asked, Any, Checked]:
    """Check each statement of a draft against the documents it cites.

    If the rules ask for no citations, check it against all documents of the last prompt. The value is 0 if a statement
    lacks a required citation, or cites a document that no prompt showed.
    """
    evidence = seen.evidence(draft.cited)
    statements = read_statements(draft, task)
    found = {place: StatementCheck(one, 0.0, flaw) for place, one in enumerate(statements)
             if (flaw := _flaw_of_citations(one, task, seen))}
    rest = {place: one for place, one in enumerate(statements) if place not in found}
    if by == "model":
        values = yield from grade_statements(task, list(rest.values()), evidence)
        found |= {place: StatementCheck(one, value) for (place, one), value in zip(rest.items(), values, strict=True)}
        rest = {}
    for place, one in rest.items():
        cited = tuple(seen.passages[number] for number in one.cited if number in seen.passages)
        scored = score(one.text, task.question, cited if task.cites else evidence)
        absent = ", ".join(scored.absent[:5])
        found[place] = StatementCheck(one, scored.value, f"its documents do not say {absent}" if absent else "")
    return Checked(tuple(found[place] for place in range(len(statements))), threshold)


def _flaw_of_citations(one: Statement, task: Task, seen: EvidenceTrace) -> str:
    if not task.cites:
        return ""
    unknown = [number for number in one.cited if number not in seen.shown]
    if unknown:
        return "it cites " + " ".join(f"[{number}]" for number in unknown[:5]) + ", which no document has"
    return "" if one.cited else "it cites no document"


def repair(first: Draft, found: Checked, task: Task, seen: EvidenceTrace, by: By) \
        -> Generator[Asked, Any, tuple[Draft, Checked]]:
    """Ask for a second answer, and return the better supported of the two with its check.

    The second wins a tie. It also wins if it refuses under rules that offer a refusal. If it cannot be read, the first
    is returned with the note `repair_unread`. If it is worse, the first is returned with `repair_worse`.
    """
    said = fill_untrusted("support_repair", answer=strip_sub_answers(first, task).text, findings=found.listed())
    call = ask_for_answer(task, said, seen.evidence(first.cited), thinks=False)
    seen.asked(call)
    second: Draft = yield from draft(call, task, *first.notes, thinks=False)
    if second.refused and task.rules == "grounded":
        return replace(second, figures=first.figures), found
    if second.refused or not second.well_formed:
        return replace(first, notes=(*first.notes, "repair_unread")), found
    again = yield from check_statements(strip_sub_answers(second, task), task, seen, by, found.threshold)
    if again.share is None or again.share < (found.share or 0.0):
        return replace(first, notes=(*first.notes, "repair_worse")), found
    return replace(second, figures=first.figures), again
