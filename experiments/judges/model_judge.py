"""A language model as the judge. In corrected scoring, it is asked again if its reply cannot be parsed.

The prompt is `prompts/RUBRIC.md`; the repair prompt is `prompts/RUBRIC_repair.md`.

With the rubric `grades`, it replies Correct, Partially Correct or Wrong, and names the type of error (CReSt, Figure
13).

With `points`, it gives an integer from 0 to 10, as in MDBench. As published (github.com/jpeper/MDBench,
`scripts/eval/evaluate.py`), a model first shortens the reply to its final answer. If the strategy asks for reasoning
and the reply has `ANSWER: `, only the text between it and the next `ANSWER: ` counts. Corrected scoring removes
citations first.

With `steps`, it lists the reference steps that the reasoning states or presupposes (DetectiveQA, section 4). The prompt
shows everything that the model wrote outside the answer. If that exceeds the judge's context, the answer is unjudged,
because ragbed never truncates it.
"""
from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field

from ragbed.documents.json import loads
from ragbed.experiments.judges.judge import (
    GRADES,
    GradingInput,
    JudgeExchange,
    JudgeKind,
    Lexical,
    fill,
    judge_by_name,
    read_label,
    strip_emphasis,
)
from ragbed.experiments.record import Grade, Verdict
from ragbed.guests import load_kinds
from ragbed.retrieval.tagged_union import tagged_union
from ragbed.strategies.reading import read_answer, strip_citations, strip_last_citations
from ragbed.strategies.types import Failure, Generate, Message


class ModelJudge(JudgeKind):
    """A judge model.

    Attributes:
        model: the model, as for `--model`.
        max_tokens: largest number of tokens in a reply. Raise it for a model that reasons first.
    """

    kind: Literal["model"] = "model"
    model: str
    max_tokens: int = Field(default=512, gt=0)

    @property
    def name(self) -> str:
        return self.model

    def judge(self, graded: GradingInput) -> JudgeExchange:
        """Ask the model. In corrected scoring, ask again if the reply cannot be parsed."""
        published = graded.scoring == "as-published"
        if graded.rubric == "points" and published:
            reply = yield self._request("judge_compress", _compressing(graded))
            if isinstance(reply, Failure):
                return Verdict(judge=self.name, note=f"call failed: {reply.kind}")
            text, _ = read_answer(reply.text)
            if not text or reply.finish_reason == "length":
                return Verdict(judge=self.name, note="the shortened answer was " + ("cut" if text else "empty"))
            graded = replace(graded, predicted=text)
        asked = [Message("user", (fill(graded.rubric, _fields(graded)),))]
        flaws = []
        for purpose in ("judge",) if published else ("judge", "judge_repair"):
            reply = yield self._request(purpose, *asked)
            if isinstance(reply, Failure):
                return Verdict(judge=self.name, note=f"call failed: {reply.kind}")
            # A truncated reply is not parsed, because the missing part could have changed the verdict.
            cut = reply.finish_reason == "length"
            if not cut and (found := _read(read_answer(reply.text)[0], graded)) is not None:
                return Verdict(judge=self.name, **found)
            flaws.append("cut by the token limit" if cut else "unreadable" if reply.text.strip() else "empty")
            last = len(graded.steps) - 1
            numbers = {"numbers": f"0 to {last}" if last else "0"} if graded.rubric == "steps" else {}
            asked += [Message("assistant", (reply.text or "(empty)",)),
                      Message("user", (fill(f"{graded.rubric}_repair", numbers),))]
        note = flaws[0] if len(set(flaws)) == 1 else "unreadable"
        return Verdict(judge=self.name, note=note if published else f"{note} twice")

    def _request(self, purpose: str, *messages: Message) -> Generate:
        return Generate(messages, purpose, max_tokens=self.max_tokens, see_failure=True)


def _fields(graded: GradingInput) -> dict[str, str]:
    if graded.rubric == "steps":
        return {"question": graded.question, "steps": number_steps(graded.steps), "reasoning": graded.reasoning}
    predicted = graded.predicted
    if graded.scoring == "corrected":
        predicted = strip_citations(predicted)
    elif graded.rubric == "grades":
        predicted = strip_last_citations(predicted)
    return {"question": graded.question, "accepted": "\nor: ".join(graded.answers), "predicted": predicted}


def _read(text: str, graded: GradingInput) -> dict[str, Any] | None:
    text = text if graded.scoring == "as-published" else tidy_verdict(text)
    if graded.rubric == "grades":
        grade = read_grade(text)
        return grade and {"grade": grade[0], "error_type": grade[1]}
    found = read_points(text) if graded.rubric == "points" else read_steps(text, len(graded.steps))
    return None if found is None else {graded.rubric: found}


def _compressing(graded: GradingInput) -> Message:
    parts = graded.predicted.split(_ANSWER) if graded.reasoned else []
    whole = parts[1] if len(parts) > 1 else graded.predicted
    return Message("user", (fill("points_compress", {"question": graded.question, "predicted": whole}),))


_KEYS = {"grade": "Grade", "finalgrade": "Grade", "overallgrade": "Grade", "verdict": "Grade", "score": "Grade",
         "points": "Grade", "errortype": "Error type", "held": "Held", "heldsteps": "Held", "steps": "Held"}
_QUOTES = "\"'“”‘’«»„"
_MARKS = rf"[\s*_`#>{_QUOTES}]{{0,8}}"
_LABELLED = re.compile(
    rf"^[\s*_`#>{_QUOTES}({{•–-]{{0,12}}(?:\(?[0-9a-z][.):]{_MARKS})?(?:(?:the|my) )?"
    rf"(?P<label>(?:(?:final|overall)[ _])?grade|verdict|score|error[ _-]?type){_MARKS}(?:[:：=]|\bis\b:?)"
    r"(?P<value>[^\n]*)$", re.IGNORECASE | re.MULTILINE)
_SECOND = re.compile(rf"[ \t,;|./(–—-]{{1,6}}(?=[*_`{_QUOTES}]{{0,3}}error[ _-]?type[*_`{_QUOTES}]{{0,3}} ?[:：=])"
                     rf"|(?<=none)[ \t,;|]{{1,6}}(?=[*_`{_QUOTES}]{{0,3}}grade[*_`{_QUOTES}]{{0,3}} ?[:：=])",
                     re.IGNORECASE)
_SAME = {"incorrect": "Wrong", "partiallycorrect": "Partially Correct", "partlycorrect": "Partially Correct",
         "correct": "Correct", "wrong": "Wrong"}
_GRADE_AND_TYPE = re.compile(r"((?:partial|part)ly[\s_-]correct|(?:in)?correct|wrong)[\s,;|./(–—-]{1,6}"
                             r"(none|answer ?refusal|numeric ?mistakes|missing ?detail|others)\)?", re.IGNORECASE)
_GAPS = re.compile(r"[\s_-]")


def tidy_verdict(text: str) -> str:
    """Rewrite JSON, quotes, numbered lines and several labels on a line as lines `Grade:`, `Error type:` and `Held:`.
    The text around stays, so a second, different grade still makes the reply unreadable."""
    start, end, fields = text.find("{"), text.rfind("}") + 1, None
    with contextlib.suppress(ValueError):
        fields = loads(text[start:end], lenient=True) if 0 <= start < end else None
    if isinstance(fields, dict):
        lines = [f"{label}: {_plain(value)}" for key, value in fields.items()
                 if (label := _KEYS.get(_GAPS.sub("", key.lower())))]
        text = "\n".join([text[:start].replace("```json", ""), text[end:].replace("```", ""), *lines]).strip()
    text = _LABELLED.sub(_relabel, _SECOND.sub("\n", text))
    only = _SAME.get(_GAPS.sub("", text.strip(f"{_EDGES}#.").lower()))
    return f"Grade: {only}" if only else text


_EDGES = f"{_QUOTES}*_`()[]{{}} \t\r\n"


def _relabel(found: re.Match[str]) -> str:
    value = found["value"].lstrip(_EDGES).rstrip(f"{_EDGES}.,;")
    label = _KEYS[_GAPS.sub("", found["label"].lower())]
    if label == "Grade" and (both := _GRADE_AND_TYPE.fullmatch(value)):
        value, kind = both.groups()
        return f"Grade: {_SAME.get(_GAPS.sub('', value.lower()), value)}\nError type: {kind.replace(' ', '')}"
    return f"{label}: {_SAME.get(_GAPS.sub('', value.lower()), value)}"


def _plain(value: Any) -> str:
    """Return a JSON value as the reply would state it: a list in brackets, 7.0 as 7."""
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


ErrorType = Literal["AnswerRefusal", "NumericMistakes", "MissingDetail", "Others"]
_GRADES_BY_WORD: dict[str, Grade] = {grade.lower(): grade for grade in GRADES}
_ERROR_TYPES: dict[str, ErrorType] = {kind.lower(): kind for kind in get_args(ErrorType)}


def read_grade(text: str) -> tuple[Grade, ErrorType | None] | None:
    """Read the grade and the error type from a judge's reply. Return None unless exactly one grade is on a separate
    line. The error type is None for Correct, or if it is missing or unknown."""
    grade = _GRADES_BY_WORD.get((read_label(text, "Grade") or "").lower())
    if grade is None:
        return None
    error = _ERROR_TYPES.get((read_label(text, "Error ?type") or "").lower())
    return grade, None if grade == "Correct" else error


MAX_POINTS = 10
_ANSWER = "ANSWER: "
_POINTS = re.compile(r"(10|[0-9])(?:\s*(?:/|out of)\s*10)?", re.IGNORECASE)


def read_points(text: str) -> int | None:
    """Read the points, 0 to 10, from a judge's reply: either after `Grade:` on a separate line, or the whole reply.
    Return None if there is not exactly one such integer."""
    grade = read_label(text, "Grade")
    match = _POINTS.fullmatch(strip_emphasis(text) if grade is None else grade)
    return int(match[1]) if match else None


_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"\s*[0-9]{1,4}\s*(?:,\s*[0-9]{1,4}\s*)*")


def read_steps(text: str, count: int) -> tuple[int, ...] | None:
    """Read the step numbers, from 0, from the list at the end of a judge's reply; sort them and drop duplicates. Return
    None unless the reply ends with exactly one list, of numbers below `count`."""
    lists = _BRACKETS.findall(text)
    if len(lists) != 1 or not strip_emphasis(text).endswith("]"):
        return None
    if not lists[0].strip():
        return ()
    if not _NUMBERS.fullmatch(lists[0]):
        return None
    held = sorted(set(map(int, lists[0].split(","))))
    return tuple(held) if held[-1] < count else None


def number_steps(steps: tuple[str, ...]) -> str:
    """Return the steps numbered from 0, one per line."""
    return "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps))


if TYPE_CHECKING:
    JudgeSettings: TypeAlias = JudgeKind
else:
    JudgeSettings = Annotated[tagged_union([Lexical, ModelJudge, *load_kinds("judge", JudgeKind).values()]),
                              BeforeValidator(judge_by_name)]
