"""Asking the model whether the documents hold all that an answer needs."""
from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from strategies.answering import inquiry
from strategies.parts.reading import says_nothing
from strategies.prompting import template
from strategies.reading import fold, read_answer
from strategies.support.check import read_share
from strategies.types import Asked, Evidence, Reply, Task

_LONGEST_QUERY, _LONGEST_REPLY = 300, 20_000  # characters
_EDGE = r"[ \t*_#>`-]{0,8}"
_SAYS = r"(?:sufficiency|sufficient|score|rating|grade|충분성|충분도)"
_GRADE = re.compile(rf"^{_EDGE}{_SAYS}\b{_EDGE}[:：=]?([^\n]{{0,200}})", re.IGNORECASE | re.MULTILINE)
_MISSING = re.compile(rf"^{_EDGE}(?:what is )?(?:missing|부족한 것|부족)\b{_EDGE}[:：]([^\n]*)",
                      re.IGNORECASE | re.MULTILINE)
_SHORT = 40  # characters of a reply that is nothing but its grade


@dataclass(frozen=True, slots=True)
class Sufficiency:
    """What the model judged.

    Attributes:
        value: from 0 to 1; None where its reply could not be read.
        missing: what it would search for; empty where it says nothing is missing, or does not say.
    """

    value: float | None
    missing: str = ""


def judged(task: Task, evidence: Evidence) -> Generator[Asked, Any, Sufficiency]:
    """One call over the evidence. Without any document the value is 0, and no call is made."""
    if not evidence:
        return Sufficiency(0.0)
    reply: Reply = yield inquiry(task, template("sufficiency"), evidence, "sufficiency")
    return read_sufficiency(reply.text)


def read_sufficiency(text: str) -> Sufficiency:
    """The last grade and the last missing thing that lines of a reply name, its thinking left out.

    A reply of a few words without such a line is taken for the grade itself.
    """
    said = read_answer(text)[0][:_LONGEST_REPLY]
    grades = [grade for line in _GRADE.findall(said) if (grade := read_share(line)) is not None]
    whole = read_share(said) if not grades and len(said) <= _SHORT else None
    missing = next((line.strip(" *_`\t\r") for line in reversed(_MISSING.findall(said))), "")
    needed = "" if says_nothing(missing) or fold(missing) == "missing" else missing[:_LONGEST_QUERY]
    return Sufficiency(grades[-1] if grades else whole, needed)
