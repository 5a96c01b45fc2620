"""The rubrics by which a model grades; the prompts are ours.

`grades`: Correct, Partially Correct or Wrong, and the type of an error: the three grades of section 4.1 and the four
error types of Figure 13 of the CReSt paper.

`points`: a whole number from 0 to 10, as MDBench has its answers graded. As published (github.com/jpeper/MDBench,
`scripts/eval/evaluate.py`), a model first shortens the reply to its final answer; of a strategy that asks for
reasoning, only what stands between the first `ANSWER: ` and the next, where the reply has one. Corrected scoring
grades the answer as it is, without its citations.

`steps`: which reference steps the reasoning holds, stated or taken for granted (DetectiveQA, section 4). The prompt
shows all that the model said outside its answer; what is too long for the judge's context is unjudged, not cut.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal, get_args

from experiments.judges.base import GRADES, Brief, Detour, Graded, accepted, fill, plain, stated
from experiments.question import Rubric
from experiments.record import Grade, Verdict
from strategies.reading import read_answer, strip_citations, strip_last_citations
from strategies.types import Failure, Generate, Message

ErrorType = Literal["AnswerRefusal", "NumericMistakes", "MissingDetail", "Others"]
_GRADES_BY_WORD: dict[str, Grade] = {grade.lower(): grade for grade in GRADES}
_ERROR_TYPES: dict[str, ErrorType] = {kind.lower(): kind for kind in get_args(ErrorType)}


def read_grade(text: str) -> tuple[Grade, ErrorType | None] | None:
    """Read the grade and the error type of a judge's reply; None where it says not exactly one grade on its own line.

    The error type is None for Correct and where the reply names none, or none that is known.
    """
    grade = _GRADES_BY_WORD.get((stated(text, "Grade") or "").lower())
    if grade is None:
        return None
    error = _ERROR_TYPES.get((stated(text, "Error ?type") or "").lower())
    return grade, None if grade == "Correct" else error


def _grade_fields(graded: Graded) -> Mapping[str, str]:
    strip = strip_last_citations if graded.scoring == "as-published" else strip_citations
    return {"question": graded.question, "accepted": accepted(graded), "predicted": strip(graded.predicted)}


def _read_grade(text: str, graded: Graded, judge: str) -> Verdict | None:
    read = read_grade(text)
    return None if read is None else Verdict(judge=judge, grade=read[0], error_type=read[1])


MOST_POINTS = 10
_ANSWER = "ANSWER: "
_POINTS = re.compile(r"(10|[0-9])(?:\s*(?:/|out of)\s*10)?", re.IGNORECASE)


def read_points(text: str) -> int | None:
    """Read the points of a judge's reply, 0 to 10: after `Grade:` on its own line, or all that the reply says.

    Returns:
        None where there is no such number, or there are two; one that is no whole number or out of range is none.
    """
    grade = stated(text, "Grade")
    match = _POINTS.fullmatch(plain(text) if grade is None else grade)
    return int(match[1]) if match else None


def shortened(graded: Graded, max_tokens: int) -> Detour:
    """Ask once more, to shorten the reply to its final answer, as the published code has it."""
    parts = graded.predicted.split(_ANSWER) if graded.reasoned else []
    whole = parts[1] if len(parts) > 1 else graded.predicted
    prompt = fill("points_compress", {"question": graded.question, "predicted": whole})
    reply = yield Generate((Message("user", (prompt,)),), "judge_compress", max_tokens=max_tokens, see_failure=True)
    if isinstance(reply, Failure):
        return f"call failed: {reply.kind}"
    text, _ = read_answer(reply.text)
    if not text or reply.finish_reason == "length":
        return "the shortened answer was " + ("cut" if text else "empty")
    return replace(graded, predicted=text)


def _point_fields(graded: Graded) -> Mapping[str, str]:
    predicted = graded.predicted if graded.scoring == "as-published" else strip_citations(graded.predicted)
    return {"question": graded.question, "accepted": accepted(graded), "predicted": predicted}


def _read_points(text: str, graded: Graded, judge: str) -> Verdict | None:
    points = read_points(text)
    return None if points is None else Verdict(judge=judge, points=points)


_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"\s*[0-9]{1,4}\s*(?:,\s*[0-9]{1,4}\s*)*")


def read_steps(text: str, count: int) -> tuple[int, ...] | None:
    """Read the numbers, from 0, in the one list with which a judge's reply ends, in order and each once.

    Args:
        count: of the reference steps.

    Returns:
        None where the reply has no list or several, does not end with it, or the list holds anything but numbers
        below `count`. An empty list is a reading.
    """
    lists = _BRACKETS.findall(text)
    if len(lists) != 1 or not plain(text).endswith("]"):
        return None
    if not lists[0].strip():
        return ()
    if not _NUMBERS.fullmatch(lists[0]):
        return None
    held = sorted(set(map(int, lists[0].split(","))))
    return tuple(held) if held[-1] < count else None


def numbered(steps: tuple[str, ...]) -> str:
    """Return the steps, one a line, numbered from 0."""
    return "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps))


def _read_steps(text: str, graded: Graded, judge: str) -> Verdict | None:
    held = read_steps(text, len(graded.steps))
    return None if held is None else Verdict(judge=judge, steps=held)


BRIEFS: Mapping[Rubric, Brief] = MappingProxyType({
    "grades": Brief("grades", _grade_fields, _read_grade),
    "points": Brief("points", _point_fields, _read_points, as_published=shortened),
    "steps": Brief(
        "steps", lambda graded: {"question": graded.question, "steps": numbered(graded.steps),
                                 "reasoning": graded.reasoning}, _read_steps,
        lambda graded: {"numbers": "0" if len(graded.steps) == 1 else f"0 to {len(graded.steps) - 1}"})})
