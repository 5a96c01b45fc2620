"""Check whether the documents suffice for an answer, and whether each sentence is supported by the documents it
cites."""
from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from ragbed.strategies.answering import ask, ask_for_answer, draft, strip_sub_answers
from ragbed.strategies.parts.reading import says_nothing
from ragbed.strategies.parts.tracing import EvidenceTrace
from ragbed.strategies.prompting import fill_untrusted, template
from ragbed.strategies.reading import fold, is_only_citations, is_refusal, read_answer, read_citations, strip_citations
from ragbed.strategies.support.lexical import content_words, score
from ragbed.strategies.types import Asked, Draft, Evidence, Reply, Task

MAX_STATEMENTS = 40  # the last statement holds the rest of a longer answer, so that everything is checked
_CITATIONS = r"(?:[ \t]{0,4}\[\d[\d\s,;–-]{0,60}\]){0,20}"
_NOT_AN_END = r"(?<!\b[A-Z]\.)(?<!\b(?:Mr|Ms|Dr|St|No|Co|Jr|Sr|vs)\.)" \
             r"(?<!\b(?:Mrs|Inc|Ltd|Gen|Sen|Rep|Fig|[Ee]\.g|[Ii]\.e)\.)(?<!\bCorp\.)(?<!\bet al\.)"
# A full stop before a small letter ends an abbreviation. Citations after a full stop belong to the sentence before.
_END = re.compile(rf"(?:[.!?…](?:{_NOT_AN_END})['\"”’)*_]{{0,4}}{_CITATIONS}(?=\s)(?!\s+[a-z])"
                  rf"|[。！？]['\"”’」』）]{{0,4}}{_CITATIONS})")
_MARK = re.compile(r"[\s>]*(?:#{1,6}\s|[-*•–]\s|\(?\d{1,2}[.)]\s)?\s*")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer, and what it cites."""

    text: str  # without its citations
    cited: tuple[int, ...]  # its citations or, if it has none, the citations of the whole answer


def read_statements(draft: Draft, task: Task) -> tuple[Statement, ...]:
    """Split a draft's answer into statements, without headings, refusals and sentences without content.

    A sentence without content (`Yes.`, `Here is why:`) counts if it is the whole answer. The label of an option is
    replaced by the option's text. Under `open` rules, a sentence without citations is the model's own knowledge and is
    left out.
    """
    apart = task.rules == "open" and read_citations(draft.text)  # then a sentence without citations cites nothing
    pieces = [Statement(strip_citations(piece), read_citations(piece) or (() if apart else draft.cited))
              for piece in split_statements(draft.text)]
    if task.rules == "open":
        pieces = [piece for piece in pieces if piece.cited]
    pieces = [piece for piece in pieces if not is_refusal(piece.text)]
    found = [piece for piece in pieces if not piece.text.endswith((":", "："))
             and (content_words(piece.text) or any(map(str.isdecimal, piece.text)))] or pieces[:1]
    options = dict(task.options)
    return tuple(Statement(options.get(one.text.strip(" .()"), one.text), one.cited) for one in found)


def split_statements(text: str) -> list[str]:
    """Split a text into sentences, line by line. Citations alone belong to the sentence before."""
    found: list[list[str]] = []
    for line in text.splitlines():
        line = line[mark.end():] if (mark := _MARK.match(line)) else line
        ends = [0, *(end.end() for end in _END.finditer(line)), len(line)]
        for piece in filter(None, (line[start:end].strip() for start, end in pairwise(ends))):
            if found and (len(found) == MAX_STATEMENTS or is_only_citations(piece)):
                found[-1].append(piece)
            else:
                found.append([piece])
    return list(map(" ".join, found))


_MAX_LENGTH = 200  # characters that are read
_SKIP = r"[\s*_`#>:：=\"'()\[\]~-]{0,12}"
_NUMBER = re.compile(rf"{_SKIP}(\d{{1,3}}(?:\.\d{{1,3}})?)\s?(?:(?:/|out of|of)\s?(\d{{1,3}})(?!\d)|(%))?(?![\d.]*\d)",
                     re.IGNORECASE)
_RANGE = re.compile(rf"{_SKIP}(?:\d{{1,3}}\s?(?:-|–|to|or|,)\s?\d|yes\s?(?:/|,|or)\s?(?:partly|partially|no)\b)",
                    re.IGNORECASE)
_WORD = re.compile(rf"{_SKIP}(?:it is |they are |is |are )?([^\W\d_]{{1,20}})", re.IGNORECASE)
_WHOLE = "yes fully completely sufficient enough supported true 예 네 충분 충분함 충분합니다"
_PARTLY = "partly partially partial somewhat mostly 부분 부분적 부분적으로 일부"
_NOT = "no not none insufficient unsupported false never 아니요 아니오 불충분 불충분함 불충분합니다 없음"
_WORDS = {word: value for value, words in ((1.0, _WHOLE), (0.5, _PARTLY), (0.0, _NOT)) for word in words.split()}


def read_share(text: str) -> float | None:
    """Read the share at the beginning of a text, from 0 to 1; None if there is none, or the text only repeats the
    scale.

    `7`, `7/10`, `7 out of 10`, `70%` and `0.7` are 0.7, and `3 of 4` is 0.75. `yes` is 1, `partly` 0.5 and `no` 0, as
    are similar words in English and Korean.
    """
    text = text[:_MAX_LENGTH]
    if _RANGE.match(text):
        return None
    number = _NUMBER.match(text)
    if number is None:
        word = _WORD.match(text)
        return _WORDS.get(word[1].lower()) if word else None
    amount, whole = float(number[1]), 10.0
    if number[2]:
        whole = float(number[2])
    elif number[3]:
        whole = 100.0
    elif "." in number[1] and amount <= 1:
        whole = 1.0
    return amount / whole if amount <= whole and whole > 0 else None


_MAX_STATEMENT, _MAX_REPLY, _MAX_QUERY = 2_000, 20_000, 300  # characters
_LINE = re.compile(r"^[ \t*_#>`(\[-]{0,8}(?:statement[ \t]?)?(\d{1,3})[*_`)\]]{0,4}[ \t]{0,4}[.:：)=-]([^\n]{0,200})",
                   re.IGNORECASE | re.MULTILINE)


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


def read_grades(text: str, count: int) -> list[float | None]:
    """Read the grades of statements 1 to `count`. If lines have the same number, the last one counts. For a single
    statement, the grade may be the whole reply."""
    said = read_answer(text)[0][:_MAX_REPLY]
    found = {int(number): grade for number, line in _LINE.findall(said) if (grade := read_share(line)) is not None}
    if count == 1 and not found:
        return [read_share(said)]
    return [found.get(number) for number in range(1, count + 1)]


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
    """Ask the model with one call whether the evidence suffices. Without evidence the value is 0, and no call is
    made."""
    if not evidence:
        return Sufficiency(0.0)
    reply: Reply = yield ask(task, template("sufficiency"), evidence, "sufficiency")
    return read_sufficiency(reply.text)


def read_sufficiency(text: str) -> Sufficiency:
    """Read the last grade and the last missing fact from the lines of a reply. A reply of a few words without such a
    line is read as the grade."""
    said = read_answer(text)[0][:_MAX_REPLY]
    grades = [grade for line in _GRADE.findall(said) if (grade := read_share(line)) is not None]
    whole = read_share(said) if not grades and len(said) <= _SHORT else None
    missing = next((line.strip(" *_`\t\r") for line in reversed(_MISSING.findall(said))), "")
    needed = "" if says_nothing(missing) or fold(missing) == "missing" else missing[:_MAX_QUERY]
    return Sufficiency(grades[-1] if grades else whole, needed)


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
