"""The interface of judges, and the function that asks a judge about an answer.

A judge is a generator: it yields the model calls that it needs and returns a verdict.

The judge `lexical` needs no model: the guest `answer_grading` compares words, numbers, dates and units. It recognises
no paraphrases, so its scores are always shown with its name. Points follow from the grade: Correct 10, Partially
Correct 5, Wrong 0. A reference step counts as contained if the reasoning mentions the same things, even if it makes a
different claim about them.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args

from pydantic import BaseModel, ConfigDict

from ragbed.agents.journal import Exchange, ExchangeResult, Model, complete_with_repair
from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.cells import short_name
from ragbed.experiments.metrics.metric import Metric, Scoring, extract_reasoning, text_as_published
from ragbed.experiments.metrics.scoring import BUILT_IN, declare_metrics
from ragbed.experiments.question import Question, Rubric, Scheme
from ragbed.experiments.record import Grade, Result, Verdict
from ragbed.guests import entries, load
from ragbed.strategies.prompting import fill_untrusted_text
from ragbed.strategies.reading import strip_citations

GRADES: tuple[Grade, ...] = get_args(Grade)  # from best to worst
JudgeExchange = Exchange[Verdict]
JudgeResult = ExchangeResult[Verdict | None]  # its value is None if no verdict is needed


@dataclass(frozen=True, slots=True)
class GradingInput:
    """The input of a judge.

    Attributes:
        answers: accepted gold answers; at least one for `grades` and `points`.
        predicted: the final answer, with citations.
        reasoning: everything else that the model wrote, for `steps`.
        steps: the reference steps, for `steps`.
        reasoned: whether the strategy asked for reasoning before the answer.
        passages: the numbers and texts of the passages that prompts showed, for judges that read them.
    """

    rubric: Rubric
    question: str
    answers: tuple[str, ...]
    predicted: str
    reasoning: str = ""
    steps: tuple[str, ...] = ()
    scoring: Scoring = "corrected"
    reasoned: bool = False
    passages: tuple[tuple[int, str], ...] = ()


class Judge(Protocol):
    """Grades one answer by a rubric."""

    @property
    def name(self) -> str:
        """Return the judge's name in tables."""
        ...

    def judge(self, graded: GradingInput) -> JudgeExchange:
        """Yield model calls, receive their replies, and return the verdict."""
        ...


def model_of(settings: Any) -> str | None:
    """Return the model that a judge, a support check or a model that tells refusals asks; None for lexical ones."""
    return settings.model if settings and getattr(settings, "kind", "model") in ("model", "rubric") else None


def judge_by_name(value: Any) -> Any:
    """Turn `lexical` or a model's name into the settings of that judge. A model with a `prompt` of its own is a judge
    of the kind `rubric`."""
    if isinstance(value, dict) and value.get("kind") == "model" and "prompt" in value:
        return {**value, "kind": "rubric"}
    if not isinstance(value, str):
        return value
    return {"kind": "lexical"} if value == "lexical" else {"kind": "model", "model": value}


class JudgeKind(BaseModel):
    """Settings of a judge. Guests add kinds in the slot `judge`.

    Attributes:
        is_own: whether its grades are the user's, and give a column even if it is the first judge.
        needs_gold: whether it grades only answers to questions with a gold answer.
        files: code of the user that it executes, as `FILE.py:FUNCTION`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    is_own: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:
        @property
        def name(self) -> str:
            """Return the judge's name in tables."""

    @property
    def column(self) -> str:
        """Return the metric's name of its grades, if it is not the only judge."""
        return column_name(short_name(self.name))

    @property
    def needs_gold(self) -> bool:
        return True

    @property
    def scale(self) -> tuple[float, float]:
        """Return the value of the worst and of the best grade."""
        return 0.0, 1.0

    def judge(self, graded: GradingInput) -> JudgeExchange:
        """Yield model calls, receive their replies, and return the verdict."""
        raise NotImplementedError

    def sources(self) -> dict[str, str]:
        """Return hashes of the files that it reads, by name. Raises SettingsError if one cannot be read."""
        return {}


def column_name(text: str) -> str:
    """Return a text as the name of a metric: lower-case letters, digits and `_`."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_0123456789") or "judge"


def due_input(judge: JudgeKind, result: Result, question: Question, scheme: Scheme, scoring: Scoring,
              text: Callable[[str], str]) -> GradingInput | None:
    """Return the input of a judge with a column of its own; None if there is nothing to grade. `text` returns the text
    of a hash."""
    due = grading_input(result, question, scheme, scoring)
    if not judge.needs_gold and result.outcome == "answered":
        due = GradingInput(scheme.rubric or "grades", question.in_context, question.answers, result.text)
    return due and replace(due, passages=tuple((one.number, text(one.text)) for one in result.in_view))


def own_verdict(judge: JudgeKind, result: Result, question: Question, judged: Verdict | None) -> Verdict | None:
    """Return a verdict with the judge's column and value. A failure has the lowest value, and so has a refusal if the
    question has a gold answer. None if the judge's column does not apply to the question."""
    if judged is None:
        wrong = (result.answerable and question.answers) if judge.needs_gold else not result.refused
        return Verdict(judge=judge.column, value=judge.scale[0], note="no answer") if wrong else None
    value = judged.value
    if value is None and not judged.unjudged:
        value = _VALUES[judged.grade] if judged.grade else (judged.points or 0) / 10
    return judged.model_copy(update={"judge": judge.column, "value": value})


def split_judges(fields: Any) -> Any:
    """Return the settings of a run with the first judge of a list as `judge` and the others as `judges`."""
    if not isinstance(fields, dict):
        return fields
    judge, further = fields.get("judge"), fields.get("judges") or []
    if isinstance(judge, list) and (not judge or further):
        raise ValueError("judge: name at least one judge, and all of them in one list")
    several = judge if isinstance(judge, list) else further if judge is None and isinstance(further, list) else []
    return {**fields, "judge": several[0], "judges": several[1:]} if several else fields


def add_judge_columns(scheme: Scheme, judges: Sequence[JudgeKind], scoring: Scoring) -> Scheme:
    """Return the scheme with a column for each judge, and make their metrics known. Raises SettingsError if a judge
    cannot act, or its column has the name of a metric or of another judge's column."""
    columns = [one.column for one in judges]
    if columns and (scoring == "as-published" or scheme.rubric == "steps"):
        raise SettingsError(f"judge: {columns[0]} grades only answers, in corrected scoring; name one judge, lexical "
                            "or a model")
    if taken := [name for name, count in Counter(columns).items() if count > 1 or name in BUILT_IN]:
        raise SettingsError(f"judge: {taken[0]} is the name of another column; give the judge a different `name`")
    declare_metrics(metric for one in judges for metric in (
        Metric(one.column, f"mean grade of the judge {one.column}", "questions that it grades", low=one.scale[0],
               high=one.scale[1]),
        Metric(f"{one.column}_unjudged", f"share that the judge {one.column} did not grade", "questions that it grades",
               share=True)))
    return replace(scheme, columns=(*scheme.columns, *columns))


_VALUES: dict[str, float] = {"Correct": 1.0, "Partially Correct": 0.5, "Wrong": 0.0}
_FOLDER = "ragbed.experiments.judges"
_MARKS = "*_`#> \t\r"


@cache
def template(name: str) -> str:
    """Return the text of `prompts/<name>.md`."""
    return resources.files(_FOLDER).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def fill(name: str, fields: Mapping[str, str]) -> str:
    """Fill in a prompt's fields, and escape text that could end their delimiters. Raises KeyError if a field is missing
    or unknown.
    """
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
    """Run the judge and return its verdict. If `graded` is None, there is nothing to judge."""
    return ExchangeResult(None) if graded is None else await complete_with_repair(model, judge.judge(graded), deadline)


_POINTS: dict[Grade, int] = {"Correct": 10, "Partially Correct": 5, "Wrong": 0}


class Lexical(JudgeKind):
    """The lexical judge, which has no settings."""

    kind: Literal["lexical"] = "lexical"

    @property
    def name(self) -> str:
        return "lexical"

    def judge(self, graded: GradingInput) -> JudgeExchange:
        """Return the best grade or points over the accepted answers, or the steps that the reasoning contains."""
        if graded.rubric == "steps":
            return Verdict(judge=self.name, steps=load(entries("grade")["steps"])(graded.steps, graded.reasoning))
        text = strip_citations(graded.predicted, graded.scoring == "as-published")
        grade = load(entries("grade")[self.kind])
        best = min((grade(text, answer, graded.question) for answer in graded.answers), key=GRADES.index)
        if graded.rubric == "points":
            return Verdict(judge=self.name, points=_POINTS[best])
        return Verdict(judge=self.name, grade=best)
        yield
