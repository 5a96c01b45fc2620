"""The rubric `steps`: which reference steps the reasoning holds, stated or taken for granted (DetectiveQA, section 4).

The prompt is ours. It shows all that the model said outside its answer; what is too long for the judge's context is
not cut but unjudged.
"""
from __future__ import annotations

import re
from collections.abc import Mapping

from experiments.judges.base import Brief, Graded, plain
from experiments.record import Verdict

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"\s*[0-9]{1,4}\s*(?:,\s*[0-9]{1,4}\s*)*")


def read_steps(text: str, count: int) -> tuple[int, ...] | None:
    """The numbers, from 0, in the one list with which a judge's reply ends, in order and each once.

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
    """The steps, one a line, numbered from 0."""
    return "\n".join(f"{number}. {' '.join(step.split())}" for number, step in enumerate(steps))


def _fields(graded: Graded) -> Mapping[str, str]:
    return {"question": graded.question, "steps": numbered(graded.steps), "reasoning": graded.reasoning}


def _repair_fields(graded: Graded) -> Mapping[str, str]:
    return {"numbers": "0" if len(graded.steps) == 1 else f"0 to {len(graded.steps) - 1}"}


def _read(text: str, graded: Graded, judge: str) -> Verdict | None:
    held = read_steps(text, len(graded.steps))
    return None if held is None else Verdict(judge=judge, steps=held)


BRIEF = Brief("steps", _fields, _read, _repair_fields)
