"""What a judge is: a generator that may ask a model, and ends with a verdict; its prompts, and lines of its replies."""
from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Protocol, get_args

from documents.types import digest
from experiments.metrics import Scoring
from experiments.question import Rubric
from experiments.record import Grade, Verdict
from strategies.prompting import fill_framed
from strategies.types import Failure, Generate, Reply

GRADES: tuple[Grade, ...] = get_args(Grade)  # from the best to the worst
Judging = Generator[Generate, Reply | Failure, Verdict]


@dataclass(frozen=True, slots=True)
class Graded:
    """What a judge reads.

    Attributes:
        answers: accepted gold answers, at least one for `grades` and `points`.
        predicted: the final answer; its citations are removed before it is read, as the scoring has it.
        reasoning: all that the model said besides, for `steps`.
        steps: the reference steps, for `steps`.
        scoring: as-published asks as the published code does.
        reasoned: whether the strategy asked for reasoning before the answer.
    """

    rubric: Rubric
    question: str
    answers: tuple[str, ...]
    predicted: str
    reasoning: str = ""
    steps: tuple[str, ...] = ()
    scoring: Scoring = "corrected"
    reasoned: bool = False


class Judge(Protocol):
    """Grades one answer by a rubric."""

    @property
    def name(self) -> str:
        """Return what stands beside its grades."""
        ...

    def judge(self, graded: Graded) -> Judging:
        """Yield the model calls that it needs, take their replies, and return the verdict."""
        ...


_FOLDER = "experiments.judges"
_MARKS = "*_`#> \t\r"


@cache
def template(name: str) -> str:
    """Return the text of `prompts/<name>.md`."""
    return resources.files(_FOLDER).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def fill(name: str, fields: Mapping[str, str]) -> str:
    """Fill the template's fields in, none of which ends its frame.

    Raises:
        KeyError: the fields are not those that the template has.
    """
    return fill_framed(template(name), f"{name} of the judge", fields)


@cache
def prompts_hash() -> str:
    """Return one hash over every prompt of the judges, for the record of a run."""
    files = resources.files(_FOLDER).joinpath("prompts").iterdir()
    names = sorted(file.name.removesuffix(".md") for file in files if file.name.endswith(".md"))
    return digest(*(part for name in names for part in (name, template(name))))


def stated(text: str, label: str) -> str | None:
    """Return what follows the label and a colon at the start of a line, without marks of emphasis or a full stop.

    Returns:
        None where no line begins so, or two of them say different things, case apart.
    """
    lines = re.findall(rf"^[*_`#> \t-]*{label}[*_`#> \t]*[:：][\s*_`#>]*(.*)$", text, re.IGNORECASE | re.MULTILINE)
    found = {plain(line).lower(): plain(line) for line in lines}
    return next(iter(found.values())) if len(found) == 1 else None


def plain(text: str) -> str:
    """Return the text without marks of emphasis around it and without a full stop."""
    return text.strip(_MARKS + "\n").removesuffix(".").strip(_MARKS)
