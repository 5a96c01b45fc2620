"""The input of the report, and functions that limit the length of texts. The templates escape all text."""
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
    """Split a name, such as a model's address, at the points where a line may break."""
    return _PIECE.findall(name)


def bounded(text: str, limit: int) -> tuple[str, int]:
    """Return at most `limit` characters of the text, made visible, and the number of those left out."""
    return visible(text[:limit]), max(len(text) - limit, 0)


def shown(text: str, limit: int) -> str | list[str | int]:
    """Return `bounded` text for the page's script: the text alone if nothing is left out."""
    beginning, left_out = bounded(text, limit)
    return [beginning, left_out] if left_out else beginning


def to_questions(**wanted: object) -> str:
    """Return a link to the question browser with filters such as `cell`, `cause` or `outcome`."""
    return "#questions?" + urlencode({name: str(value) for name, value in wanted.items()}, quote_via=quote)


@dataclass(frozen=True)
class ReportInput:
    """A finished run.

    Attributes:
        summary: the summary, as `ragbed run --json` prints it.
        questions: by id.
        records: ordered by question, then cell; read once. In a large run, records and questions are a sample.
        text: returns the text of a hash, such as a prompt part or a chunk.
        correctness_metrics: metrics whose score of 1 means that an answer is right. The first that applies to a
            question counts.
        causes: returns the name of each result's cause, by cell id and question id.
        sample: the number of all questions and the seed, if the questions are a sample.
        failures: outcome and kind of every failed answer, if the questions are a sample.
        facts: further settings to show, by name.
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
