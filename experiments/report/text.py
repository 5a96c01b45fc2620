"""What the report is given, and text of strangers for it: absurd lengths bounded. The templates escape everything."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from ragbed.experiments.formatting import visible
from ragbed.experiments.question import Question
from ragbed.experiments.record import Record, Result

_PIECE = re.compile(r"[^_/.:#]+[_/.:#]*|[_/.:#]+")


def pieces(name: str) -> list[str]:
    """Return a name, such as a metric's or a model's address, where a line may break."""
    return _PIECE.findall(name)


def bounded(text: str, limit: int) -> tuple[str, int]:
    """Return at most `limit` characters (code points) of the text, made visible, and how many are left out of it."""
    return visible(text[:limit]), max(len(text) - limit, 0)


def shown(text: str, limit: int) -> str | list[str | int]:
    """As `bounded`, for the page's script: the text, or the text and how many characters are left out of it."""
    beginning, left_out = bounded(text, limit)
    return [beginning, left_out] if left_out else beginning


def to_questions(**wanted: object) -> str:
    """Return the question browser with these filters set, such as `cell` (its number), `cause` or `outcome`."""
    return "#questions?" + urlencode({name: str(value) for name, value in wanted.items()}, quote_via=quote)


@dataclass(frozen=True)
class ReportInput:
    """A finished run.

    Attributes:
        summary: as `ragbed run --json` prints it.
        questions: by id.
        records: ordered by question, then cell; read once. Of a large run they are, as the questions are, a sample.
        text: content by hash: prompt parts and chunk contents.
        correctness_metrics: the metrics whose score of 1 means that an answer is right; of a question the first that
            applies.
        causes: from the results of all records, the name of each one's cause, by its cell's id and then by its
            question's.
        sample: of how many questions those here were drawn, and by which seed; None where they are all.
        failures: the outcome and the kind of failure of every answer that failed, where the questions are a sample.
        facts: what the run was made of and its summary does not say, such as its sample, by name.
    """

    name: str
    summary: dict[str, Any]
    questions: Mapping[str, Question]
    records: Iterable[Record]
    text: Callable[[str], str]
    correctness_metrics: Sequence[str] = ()
    causes: Callable[[Sequence[Result]], Mapping[str, Mapping[str, str]]] = lambda results: {}
    sample: tuple[int, int] | None = None
    failures: Sequence[tuple[str, str]] = ()
    facts: Sequence[tuple[str, str]] = ()
