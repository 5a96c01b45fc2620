"""The rubric `grades`: Correct, Partially Correct or Wrong, and what kind of error it is.

The three grades (section 4.1) and four error types (Figure 13) are those of the CReSt paper; the prompt is ours.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from experiments.judges.base import GRADES, Brief, Graded, accepted, stated
from experiments.record import Grade, Verdict
from strategies.reading import strip_citations, strip_last_citations

ErrorType = Literal["AnswerRefusal", "NumericMistakes", "MissingDetail", "Others"]
_GRADES: dict[str, Grade] = {grade.lower(): grade for grade in GRADES}
_ERROR_TYPES: dict[str, ErrorType] = {kind.lower(): kind for kind in get_args(ErrorType)}


def read_grade(text: str) -> tuple[Grade, ErrorType | None] | None:
    """Grade and error type of a judge's reply; None where it does not say exactly one grade on its own line.

    The error type is None for Correct and where the reply names none, or none that is known.
    """
    grade = _GRADES.get((stated(text, "Grade") or "").lower())
    if grade is None:
        return None
    error = _ERROR_TYPES.get((stated(text, "Error ?type") or "").lower())
    return grade, None if grade == "Correct" else error


def _fields(graded: Graded) -> Mapping[str, str]:
    strip = strip_last_citations if graded.scoring == "as-published" else strip_citations
    return {"question": graded.question, "accepted": accepted(graded), "predicted": strip(graded.predicted)}


def _read(text: str, graded: Graded, judge: str) -> Verdict | None:
    read = read_grade(text)
    return None if read is None else Verdict(judge=judge, grade=read[0], error_type=read[1])


BRIEF = Brief("grades", _fields, _read)
