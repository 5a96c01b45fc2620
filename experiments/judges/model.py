"""A model as judge: reads question, accepted answer and predicted answer, and grades in two fixed lines.

The three grades (section 4.1) and four error types (Figure 13) are those of the CReSt paper; the prompt, `prompt.md`,
is ours.
"""
from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from experiments.judges.lexical import GRADES
from experiments.judges.types import Graded, Judging
from experiments.record import Grade, Verdict
from strategies.prompting import fill_text
from strategies.reading import strip_citations
from strategies.types import Failure, Generate, Message

ErrorType = Literal["AnswerRefusal", "NumericMistakes", "MissingDetail", "Others"]
ERROR_TYPES: tuple[ErrorType, ...] = get_args(ErrorType)
_MARKS = r"[\s*_`#>-]*"
_START, _END = r"^[ \t*_`#>-]*", rf"{_MARKS}(?:\.{_MARKS})?$"
_GRADE = re.compile(rf"{_START}Grade{_MARKS}:{_MARKS}(Partially Correct|Correct|Wrong){_END}",
                    re.IGNORECASE | re.MULTILINE)
_ERROR = re.compile(rf"{_START}Error ?type{_MARKS}:{_MARKS}({'|'.join(ERROR_TYPES)}|None){_END}",
                    re.IGNORECASE | re.MULTILINE)
_REPAIR = ("Your reply could not be read. Reply with exactly two lines:\nGrade: Correct, Partially Correct or Wrong\n"
           "Error type: None, AnswerRefusal, NumericMistakes, MissingDetail or Others")


class ModelJudge(BaseModel):
    """Settings of a judge model.

    Attributes:
        model: as `--model` takes it; the name that stands beside its grades.
        max_tokens: limit on one reply; raise it for a model that reasons first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["model"] = "model"
    model: str
    max_tokens: int = Field(default=512, gt=0)

    @property
    def name(self) -> str:
        return self.model

    def judge(self, graded: Graded) -> Judging:
        """Asks once, and once more where the reply cannot be read; then the answer is unjudged, with a note."""
        messages: tuple[Message, ...] = (Message("user", (ask(graded.question, graded.answers, graded.predicted),)),)
        for purpose in ("judge", "judge_repair"):
            reply = yield Generate(messages, purpose, max_tokens=self.max_tokens, see_failure=True)
            if isinstance(reply, Failure):
                return Verdict(judge=self.name, grade=None, note=f"call failed: {reply.kind}")
            verdict = read_verdict(reply.text)
            if verdict is not None:
                return Verdict(judge=self.name, grade=verdict[0], error_type=verdict[1])
            messages += (Message("assistant", (reply.text or "(empty)",)), Message("user", (_REPAIR,)))
        return Verdict(judge=self.name, grade=None, note="unreadable twice")


def ask(question: str, answers: tuple[str, ...], predicted: str) -> str:
    """The judge's prompt; further accepted answers follow the first, one a line."""
    fields = {"question": question, "accepted": "\nor: ".join(answers), "predicted": strip_citations(predicted)}
    return fill_text(prompt(), "of the judge", fields)


@cache
def prompt() -> str:
    """The text of `prompt.md`, whose hash belongs into a run's record."""
    return resources.files("experiments.judges").joinpath("prompt.md").read_text(encoding="utf-8").strip()


def read_verdict(text: str) -> tuple[Grade, ErrorType | None] | None:
    """Grade and error type of a judge's reply; None where it does not say exactly one grade on its own line.

    The error type is None for Correct and where the reply names none.
    """
    grades = {found.capitalize() for found in _GRADE.findall(text)}
    if len(grades) != 1:
        return None
    grade = next(known for known in GRADES if known.capitalize() in grades)
    named = {found.lower() for found in _ERROR.findall(text)}
    error = next((known for known in ERROR_TYPES if named == {known.lower()}), None)
    return grade, None if grade == "Correct" else error
