"""What a judge is: a generator that may ask a model, and ends with a verdict; and how one is asked about an answer."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Protocol, get_args

from ragbed.agents.journal import Exchange, ExchangeResult, Model, complete_with_repair
from ragbed.documents.types import digest
from ragbed.experiments.metrics import Scoring, extract_reasoning, text_as_published
from ragbed.experiments.question import Question, Rubric, Scheme
from ragbed.experiments.record import Grade, Result, Verdict
from ragbed.strategies.prompting import fill_untrusted_text

GRADES: tuple[Grade, ...] = get_args(Grade)  # from the best to the worst
JudgeExchange = Exchange[Verdict]
JudgeResult = ExchangeResult[Verdict | None]  # None where no verdict is due


@dataclass(frozen=True, slots=True)
class GradingInput:
    """What a judge reads."""

    rubric: Rubric
    question: str
    answers: tuple[str, ...]  # accepted gold answers, at least one for `grades` and `points`
    predicted: str  # the final answer; its citations are removed before it is read, as the scoring has it
    reasoning: str = ""  # all that the model said besides, for `steps`
    steps: tuple[str, ...] = ()  # the reference steps, for `steps`
    scoring: Scoring = "corrected"  # as-published asks as the published code does
    reasoned: bool = False  # whether the strategy asked for reasoning before the answer


class Judge(Protocol):
    """Grades one answer by a rubric."""

    @property
    def name(self) -> str:
        """Return what stands beside its grades."""
        ...

    def judge(self, graded: GradingInput) -> JudgeExchange:
        """Yield the model calls that it needs, take their replies, and return the verdict."""
        ...


def judge_by_name(value: Any) -> Any:
    """Return the settings of the judge that a text names: `lexical`, or a model; anything else as it is."""
    if not isinstance(value, str):
        return value
    return {"kind": "lexical"} if value == "lexical" else {"kind": "model", "model": value}


_FOLDER = "ragbed.experiments.judges"
_MARKS = "*_`#> \t\r"


@cache
def template(name: str) -> str:
    """Return the text of `prompts/<name>.md`."""
    return resources.files(_FOLDER).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def fill(name: str, fields: Mapping[str, str]) -> str:
    """Fill the template's fields in, none of which ends its frame; KeyError where they are not those that it has."""
    return fill_untrusted_text(template(name), f"{name} of the judge", fields)


@cache
def prompts_hash() -> str:
    """Return one hash over every prompt of the judges, for the record of a run."""
    files = resources.files(_FOLDER).joinpath("prompts").iterdir()
    names = sorted(file.name.removesuffix(".md") for file in files if file.name.endswith(".md"))
    return digest(*(part for name in names for part in (name, template(name))))


def read_label(text: str, label: str) -> str | None:
    """Return what follows the label and a colon at the start of a line, without marks of emphasis or a full stop; None
    where no line begins so, or two of them say different things, case apart."""
    lines = re.findall(rf"^[*_`#> \t-]*{label}[*_`#> \t]*[:：][\s*_`#>]*(.*)$", text, re.IGNORECASE | re.MULTILINE)
    found = {strip_emphasis(line).lower(): strip_emphasis(line) for line in lines}
    return next(iter(found.values())) if len(found) == 1 else None


def strip_emphasis(text: str) -> str:
    """Return the text without marks of emphasis around it and without a full stop."""
    return text.strip(_MARKS + "\n").removesuffix(".").strip(_MARKS)


def grading_input(result: Result, question: Question, scheme: Scheme, scoring: Scoring) -> GradingInput | None:
    """Return what a judge is given of a finished answer; None where no verdict is due.

    Answers are graded where the question is answerable and its gold answer known: a refusal is Wrong and a failure
    scores 0 without asking, and an unanswerable question is scored by refusal alone. As published, whatever is not
    empty is graded, refusals too. Reasoning is graded where there is any, whatever the answer.
    """
    rubric = scheme.rubric
    if rubric == "steps":
        reasoning = extract_reasoning(result, question.options)
        if not reasoning or not question.steps:
            return None
        return GradingInput(rubric, question.in_context, question.answers, result.text, reasoning,
                      tuple(step.text for step in question.steps), scoring)
    published = scoring == "as-published"
    text = text_as_published(result) if published and rubric == "grades" else result.text
    due = bool(text) if published else result.outcome == "answered"
    if rubric is None or not due or not result.answerable or not question.answers:
        return None
    return GradingInput(rubric, question.in_context, question.answers, text, scoring=scoring,
                  reasoned=result.tagged is not None)


async def ask_judge(judge: Judge, model: Model | None, graded: GradingInput | None,
                    deadline: Callable[[], float]) -> JudgeResult:
    """Get the judge's verdict where one is due."""
    return ExchangeResult(None) if graded is None else await complete_with_repair(model, judge.judge(graded), deadline)
