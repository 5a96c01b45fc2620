"""Sub-questions without the answers to earlier ones: some benchmarks write `#1` in their place, others the answers."""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Chain = Literal["masked", "placeholders", "plain"]
REFERENCE = re.compile(r"#(\d{1,2})(?!\d)")
_QUALIFIER = re.compile(r"\s*\([^()]*\)$")
_SHORTEST = 2
_COMMON = ("yes", "no")


def chained(sub_questions: Sequence[str], sub_answers: Sequence[str]) -> tuple[tuple[str, ...], Chain]:
    """The sub-questions with `#N` wherever the N-th sub-answer stood as words in a later one, whatever its case.

    The qualifier of a title, as in `Superstore (TV series)`, may be missing there. Answers of one character, `yes`
    and `no` stand in sentences that do not mean them, and are let be.

    Returns:
        the sub-questions, and what refers in them to earlier answers: `#N` that were put there (`masked`), `#N` of
        the record's own (`placeholders`), or nothing (`plain`): they do not depend on one another, or say an answer
        in other words.
    """
    asked = tuple(_masked(text, sub_answers[:place]) for place, text in enumerate(sub_questions))
    if asked != tuple(sub_questions):
        return asked, "masked"
    return asked, "placeholders" if any(map(REFERENCE.search, asked)) else "plain"


def with_references(text: str, answers: Sequence[str]) -> str:
    """The sub-question with each `#N` that refers to an earlier answer replaced by it; any other stays."""
    def one(found: re.Match[str]) -> str:
        place = int(found[1])
        return answers[place - 1] if 1 <= place <= len(answers) else found[0]

    return REFERENCE.sub(one, text)


def _masked(text: str, earlier: Sequence[str]) -> str:
    """The longest answer goes first, since a shorter one may be a part of it; of equal ones the last."""
    forms = [(form, place) for place, answer in enumerate(earlier, start=1)
             for form in dict.fromkeys((answer.strip(), _QUALIFIER.sub("", answer.strip())))
             if len(form) >= _SHORTEST and form.lower() not in _COMMON]
    forms.sort(key=lambda form: (-len(form[0]), -form[1]))
    if not forms:
        return text
    either = "|".join(f"({re.escape(form)})" for form, _ in forms)
    return re.sub(rf"(?<![\w#])(?:{either})(?!\w)", lambda found: f"#{forms[(found.lastindex or 1) - 1][1]}", text,
                  flags=re.IGNORECASE)
