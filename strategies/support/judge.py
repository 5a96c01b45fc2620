"""The check by a model: whether the cited documents say each statement, all of them in one call."""
from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Any

from strategies.answering import inquiry
from strategies.prompting import fill_quoting
from strategies.reading import read_answer
from strategies.support.scale import read_share
from strategies.support.sentences import Statement
from strategies.types import Asked, Evidence, Reply, Task

_LONGEST_STATEMENT, _LONGEST_REPLY = 2_000, 20_000  # characters
_LINE = re.compile(r"^[ \t*_#>`(\[-]{0,8}(?:statement[ \t]?)?(\d{1,3})[*_`)\]]{0,4}[ \t]{0,4}[.:：)=-]([^\n]{0,200})",
                   re.IGNORECASE | re.MULTILINE)


def graded(task: Task, statements: Sequence[Statement], evidence: Evidence) \
        -> Generator[Asked, Any, list[float | None]]:
    """How far the documents say each statement: 1, 0.5 or 0; None for one whose grade could not be read.

    Args:
        evidence: what the prompt shows: all documents, so that it begins as the answer's prompt does.
    """
    if not statements:
        return []
    listed = "\n".join(f"{place}. {_shown(task, one)}" for place, one in enumerate(statements, 1))
    said = fill_quoting("support_check", statements=listed, count=str(len(statements)))
    reply: Reply = yield inquiry(task, said, evidence, "check")
    return read_grades(reply.text, len(statements))


def _shown(task: Task, one: Statement) -> str:
    text = " ".join(one.text[:_LONGEST_STATEMENT].split())
    names = " ".join(f"[{number}]" for number in one.cited)
    return f"{text} (documents {names})" if task.cites and names else text


def read_grades(text: str, count: int) -> list[float | None]:
    """The grades of the statements 1 to `count`, its thinking left out; of two lines with one number the last counts.

    Of a single statement the grade may be the whole reply.
    """
    said = read_answer(text)[0][:_LONGEST_REPLY]
    found = {int(number): grade for number, line in _LINE.findall(said) if (grade := read_share(line)) is not None}
    if count == 1 and not found:
        return [read_share(said)]
    return [found.get(number) for number in range(1, count + 1)]
