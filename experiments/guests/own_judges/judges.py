"""Judges of your own: a rubric that a model reads, and a Python function.

The best grade counts as Correct, the worst as Wrong, and everything between as Partially Correct, where a benchmark
counts right answers. The judge's column has the mean of the grades' values.
"""
from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from ragbed.documents.errors import RecipeFailed, SettingsError
from ragbed.documents.paths import expand_path
from ragbed.documents.types import digest
from ragbed.documents.user_code import UserCode
from ragbed.experiments.guests.own_judges.judge_replies import read_reply
from ragbed.experiments.judges.judge import GradingInput, JudgeExchange, JudgeKind, column_name
from ragbed.experiments.metrics.metric import MetricGroup, Scored, Scores, Scoring
from ragbed.experiments.record import Verdict
from ragbed.strategies.prompting import fields_of, fill, fill_untrusted_text
from ragbed.strategies.reading import strip_citations
from ragbed.strategies.settings.plugins import parse_file_kind
from ragbed.strategies.settings.source import execute_file, resolve_file
from ragbed.strategies.types import Failure, Generate, Message

_FIELDS = ("question", "gold", "answer", "passages")
_MAX_REASON = 1_000  # characters that a record keeps


def _parse_grades(value: Any) -> Any:
    """Turn a list of numbers, or a range such as `1-5`, into grades with these values."""
    if isinstance(value, str) and len(ends := value.split("-")) == 2 and all(map(str.isdecimal, ends)):
        value = list(range(int(ends[0]), int(ends[1]) + 1))
    return {str(one): one for one in value} if isinstance(value, list) else \
        {str(name): number for name, number in value.items()} if isinstance(value, dict) else value


Grades = Annotated[dict[str, Annotated[float, Field(allow_inf_nan=False)]], BeforeValidator(
    _parse_grades, json_schema_input_type=dict[str, float] | list[float] | str)]


class OwnJudge(JudgeKind):
    """A judge with grades of the user.

    Attributes:
        name: name of its column. By default the name of its file.
        grades: value of each grade, as in `{Good: 1, Fair: 0.5, Bad: 0}`, or numbers, as in `1-5`.
    """

    is_own: ClassVar[bool] = True
    kind: str
    name: str = Field(default="", pattern=r"^([a-z][a-z0-9_]{0,39})?$")
    grades: Grades = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_grades(self) -> OwnJudge:
        if (self.grades or self.kind == "rubric") and len(set(self.grades.values())) < 2:
            raise ValueError("grades: give at least two grades with different values, as in {Good: 1, Bad: 0}")
        if not self.name:
            object.__setattr__(self, "name", column_name(Path(self.file).stem)[:40])
        return self

    @property
    def file(self) -> str:
        """Return the file that defines the judge."""
        return ""

    @property
    def column(self) -> str:
        return self.name

    @property
    def scale(self) -> tuple[float, float]:
        values = self.grades.values() or (0.0, 1.0)
        return min(values), max(values)

    def _verdict(self, graded: GradingInput, value: float, label: str = "", reason: str = "") -> Verdict:
        low, high = self.scale
        share, found = (value - low) / (high - low), {"label": label, "value": value, "reason": reason[:_MAX_REASON]}
        if graded.rubric == "points":
            return Verdict(judge=self.name, points=round(10 * share), **found)
        grade = "Correct" if share == 1 else "Wrong" if share == 0 else "Partially Correct"
        return Verdict(judge=self.name, grade=grade, **found)

    def _fields(self, graded: GradingInput) -> dict[str, str]:
        return {"question": graded.question, "gold": "\nor: ".join(graded.answers),
                "answer": strip_citations(graded.predicted),
                "passages": "\n\n".join(f"[{number}]\n{text}" for number, text in graded.passages) or "none"}


class RubricJudge(OwnJudge):
    """A model that grades by a rubric of yours.

    Attributes:
        model: the model, as for `--model`.
        prompt: file of the rubric, or its text, with the fields `{question}`, `{gold}`, `{answer}` and `{passages}`.
            Without `{gold}`, it also grades answers to questions without a gold answer.
        max_tokens: largest number of tokens in a reply. Raise it for a model that reasons first.
    """

    kind: Literal["rubric"] = "rubric"
    model: str
    prompt: str = Field(min_length=1)
    grades: Grades
    max_tokens: int = Field(default=512, gt=0)

    @property
    def file(self) -> str:
        return "rubric" if fields_of(self.prompt) else self.prompt

    @property
    def needs_gold(self) -> bool:
        return "gold" in fields_of(self.text)

    @cached_property
    def text(self) -> str:
        """Return the rubric. Raises SettingsError if it cannot be read or has an unknown field."""
        text, where = self.prompt, "judge.prompt"
        if not fields_of(text) and "\n" not in text:
            text, where = self.read_file(text, where), f"judge.prompt: {text}"
        found, known = fields_of(text), ", ".join(f"{{{name}}}" for name in _FIELDS)
        if unknown := sorted(found - {*_FIELDS}):
            raise SettingsError(f"{where}: unknown field {{{unknown[0]}}}; choose from: {known}. For the text "
                                f"{{{unknown[0]}}} itself, write {{{{{unknown[0]}}}}}")
        if "answer" not in found:
            raise SettingsError(f"{where}: the field {{answer}} is missing; known fields: {known}")
        return text.strip()

    @staticmethod
    def read_file(path: str, where: str) -> str:
        """Return the text of a prompt's file. Raises SettingsError that begins with `where` if it cannot be read."""
        try:
            return expand_path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{where}: {path}: cannot be read: "
                                f"{getattr(error, 'strerror', None) or error}") from error

    def sources(self) -> dict[str, str]:
        return {f"judge {self.name}": digest(self.text)}

    def judge(self, graded: GradingInput) -> JudgeExchange:
        """Ask the model, and once more if its reply cannot be read."""
        fields = {name: value for name, value in self._fields(graded).items() if name in fields_of(self.text)}
        grades = ", ".join(self.grades)
        text = fill_untrusted_text(self.text, f"of the judge {self.name}", fields)
        asked = text if "grade:" in self.text.lower() else f"{text}\n\n{fill('rubric_reply', grades=grades)}"
        messages = [Message("user", (asked,))]
        for purpose in ("judge", "judge_repair"):
            reply = yield Generate(tuple(messages), purpose, max_tokens=self.max_tokens, see_failure=True)
            if isinstance(reply, Failure):
                return Verdict(judge=self.name, note=f"call failed: {reply.kind}")
            found = None if reply.finish_reason == "length" else read_reply(reply.text, tuple(self.grades))
            if found is not None:
                return self._verdict(graded, self.grades[found[0]], *found)
            messages += [Message("assistant", (reply.text or "(empty)",)),
                         Message("user", (fill("rubric_repair", grades=grades),))]
        return Verdict(judge=self.name, note="unreadable twice")


class PythonJudge(OwnJudge):
    """A Python function that grades answers.

    Attributes:
        factory: `FILE.py:FUNCTION`. Its parameters are any of `question`, `gold`, `answer` and `passages`. It returns a
            number, the name of a grade, or a dict with `grade` and `reason`.
        low, high: the range of the numbers that it returns, if it has no `grades`.
    """

    kind: Literal["python"] = "python"
    factory: str
    low: float = 0.0
    high: float = 1.0

    @property
    def file(self) -> str:
        return self.factory.rpartition(":")[0]

    @model_validator(mode="after")
    def _check_factory(self) -> PythonJudge:
        if parse_file_kind(self.factory) is None:
            raise ValueError(f"judge.factory: expected FILE.py:FUNCTION, not {self.factory!r:.80}")
        if not self.low < self.high or (self.grades and (self.low, self.high) != (0.0, 1.0)):
            raise ValueError("judge: give grades, or low and a larger high")
        return self

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.factory,)

    @property
    def scale(self) -> tuple[float, float]:
        return super().scale if self.grades else (self.low, self.high)

    @property
    def needs_gold(self) -> bool:
        return "gold" in self._loaded[2]

    @cached_property
    def _loaded(self) -> tuple[Any, str, tuple[str, ...]]:
        """Return the function, the hash of its file and its parameters. Raises SettingsError if there is none."""
        file, name = parse_file_kind(self.factory) or (Path(), "")
        module, content = execute_file(resolve_file(file), str(file))
        function = getattr(module, name, None)
        if not callable(function):
            raise SettingsError(f"judge.factory: {file} has no function {name}")
        wanted = tuple(inspect.signature(function).parameters)
        if unknown := [one for one in wanted if one not in _FIELDS]:
            raise SettingsError(f"judge.factory: {self.factory} has the unknown parameter {unknown[0]}; choose from: "
                                f"{', '.join(_FIELDS)}")
        return function, content, wanted

    def sources(self) -> dict[str, str]:
        return {self.factory: self._loaded[1]}

    def judge(self, graded: GradingInput) -> JudgeExchange:
        """Call the function. An exception, or a value that is no grade, leaves the answer unjudged."""
        function, _, wanted = self._loaded
        given = {**self._fields(graded), "answer": graded.predicted,
                 "passages": [text for _, text in graded.passages]}
        try:
            with UserCode(RecipeFailed):
                found = function(**{name: given[name] for name in wanted})
                reason = str(found.get("reason", "")) if isinstance(found, Mapping) else ""
                found = found.get("grade") if isinstance(found, Mapping) else found
                found = float(found) if isinstance(found, int | float) else str(found)
        except RecipeFailed as error:
            return Verdict(judge=self.name, note=str(error))
        label = next((one for one in self.grades if one.lower() == str(found).lower()), None) or next(
            (one for one, value in self.grades.items() if value == found), "")
        value = self.grades[label] if label else found if not self.grades else None
        if not isinstance(value, float) or not math.isfinite(value) or not self.scale[0] <= value <= self.scale[1]:
            known = ", ".join(self.grades) or f"a number from {self.low:g} to {self.high:g}"
            return Verdict(judge=self.name, note=f"returned {found!r:.40} instead of {known}")
        return self._verdict(graded, value, label, reason)
        yield


def score_judgements(item: Scored, scoring: Scoring) -> Scores:
    """Return the value of each judge's column, and whether the judge did not grade the answer."""
    return {name: value for one in item.extra.get("own_judges", ()) for name, value in (
        (one.judge, one.value), (f"{one.judge}_unjudged", float(one.value is None)))}


JUDGEMENTS = MetricGroup((), score_judgements, material=lambda result, is_right: result.judgements or None)
