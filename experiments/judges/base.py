"""What a judge is: a generator that may ask a model, and ends with a verdict; and how a model is asked by a rubric."""
from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
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


# Ends with the material to grade, or with why there is none.
Detour = Generator[Generate, Reply | Failure, Graded | str]
_FOLDER = "experiments.judges"
_MARKS = "*_`#> \t\r"


@dataclass(frozen=True, slots=True)
class Brief:
    """One rubric as a model is asked it. Its prompts are `prompts/<name>.md` and `prompts/<name>_repair.md`.

    Attributes:
        fields: what fills the prompt.
        read: the verdict of a reply, by the judge that is named; None where the reply has not exactly one reading.
        repair_fields: what fills the request to say it again.
        as_published: what the published code does before it asks, given the limit on a reply's tokens.
    """

    name: str
    fields: Callable[[Graded], Mapping[str, str]]
    read: Callable[[str, Graded, str], Verdict | None]
    repair_fields: Callable[[Graded], Mapping[str, str]] = lambda graded: {}
    as_published: Callable[[Graded, int], Detour] | None = None

    def ask(self, graded: Graded) -> str:
        """Return the prompt."""
        return fill(self.name, self.fields(graded))

    def repair(self, graded: Graded) -> str:
        """Return what a reply that cannot be read is answered with."""
        return fill(f"{self.name}_repair", self.repair_fields(graded))


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


def accepted(graded: Graded) -> str:
    """Return the accepted answers; further ones follow the first, one a line."""
    return "\nor: ".join(graded.answers)


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
