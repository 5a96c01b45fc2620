"""The interface of judges, and the function that asks a judge about an answer.

A judge is a generator: it yields the model calls that it needs and returns a verdict.
"""
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
JudgeResult = ExchangeResult[Verdict | None]  # its value is None if no verdict is needed


@dataclass(frozen=True, slots=True)
class GradingInput:
    """What a judge reads.

    Attributes:
        answers: accepted gold answers; at least one for `grades` and `points`.
        predicted: the final answer, with citations.
        reasoning: everything else that the model wrote, for `steps`.
        steps: the reference steps, for `steps`.
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
        """Return the judge's name in tables."""
        ...

    def judge(self, graded: GradingInput) -> JudgeExchange:
        """Yield model calls, receive their replies, and return the verdict."""
        ...


def judge_by_name(value: Any) -> Any:
    """Turn `lexical` or a model's name into the settings of that judge."""
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
    """Fill in a prompt's fields, and escape text that could end their delimiters. Raises KeyError: the fields do not
    match."""
    return fill_untrusted_text(template(name), f"{name} of the judge", fields)


@cache
def prompts_hash() -> str:
    """Return a hash of all prompts of the judges, which a run records."""
    files = resources.files(_FOLDER).joinpath("prompts").iterdir()
    names = sorted(file.name.removesuffix(".md") for file in files if file.name.endswith(".md"))
    return digest(*(part for name in names for part in (name, template(name))))


def read_label(text: str, label: str) -> str | None:
    """Return the text after `label:` at the start of a line, without emphasis and final full stop. Return None if no
    line has the label, or if several lines have it with different texts."""
    lines = re.findall(rf"^[*_`#> \t-]*{label}[*_`#> \t]*[:：][\s*_`#>]*(.*)$", text, re.IGNORECASE | re.MULTILINE)
    found = {strip_emphasis(line).lower(): strip_emphasis(line) for line in lines}
    return next(iter(found.values())) if len(found) == 1 else None


def strip_emphasis(text: str) -> str:
    """Return the text without surrounding emphasis and final full stop."""
    return text.strip(_MARKS + "\n").removesuffix(".").strip(_MARKS)


def grading_input(result: Result, question: Question, scheme: Scheme, scoring: Scoring) -> GradingInput | None:
    """Return the judge's input for a finished answer; None if no verdict is needed.

    An answer is graded if the question is answerable and has a gold answer. Refusals and failures are wrong without a
    judge, and unanswerable questions are scored only by refusal. As-published scoring grades every text that is not
    empty, including refusals. Reasoning is always graded.
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
    """Run the judge and return its verdict; without `graded`, none is needed."""
    return ExchangeResult(None) if graded is None else await complete_with_repair(model, judge.judge(graded), deadline)
