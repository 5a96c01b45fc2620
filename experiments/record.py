"""The stored form of one question in one cell: its outcome, answer, scores, cost and trace."""
from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from agents.types import Outcome
from documents.types import Format
from strategies.types import Failure, Usage

Grade = Literal["Correct", "Partially Correct", "Wrong"]


class Stored(BaseModel):
    """Closed and frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StoredMessage(Stored):
    """A message whose parts are kept once each, under their hash, in the run's `texts`."""

    role: str
    parts: tuple[str, ...]


class StoredStep(Stored):
    """A search (`query`, `found`) or a model call (everything else)."""

    kind: Literal["search", "generate"]
    query: str | None = None
    found: tuple[int, ...] = ()
    purpose: str | None = None
    key: str | None = None
    messages: tuple[StoredMessage, ...] = ()
    shown: tuple[int, ...] = ()
    text: str = ""
    reasoning: str = ""
    finish_reason: str = ""
    usage: Usage = Usage()
    failure: Failure | None = None


class StoredPassage(Stored):
    """A chunk under its number. `text` is the hash of its content in the run's `texts`.

    `gold` is the level at which it counts as gold evidence (`chunk`, `span`, `page`, `document`), or None.
    """

    number: int
    chunk: str
    document: str
    source: str
    format: Format
    start: int
    end: int
    pages: tuple[int, int] | None
    text: str
    gold: Literal["chunk", "span", "page", "document"] | None = None


class Verdict(Stored):
    """A judge's grade of one answer. `grade` None means unjudged: `note` says why."""

    judge: str
    grade: Grade | None
    error_type: str | None = None
    note: str = ""


class Result(Stored):
    """The deterministic part of a record, which is hashed.

    Attributes:
        refused: by ragbed's rule; `refused_as_published` by the published substring rule.
        gold_in_view: whether any gold evidence was shown; None where the question has none.
        answerable: whether the benchmark has the question answerable.
        usage: of the answer; `calls` counts the model calls that were asked for, failed ones too.
        judge_usage: of the judge, counted likewise.
        scores: metric name to value; None where the metric does not apply to this question.
    """

    cell: str
    question: str
    answerable: bool
    outcome: Outcome
    text: str
    refused: bool
    refused_as_published: bool
    cited: tuple[int, ...]
    invalid_citations: tuple[int, ...]
    tagged: bool | None
    notes: tuple[str, ...]
    evidence: tuple[StoredPassage, ...]
    gold_total: int
    gold_in_view: bool | None
    verdict: Verdict | None
    scores: dict[str, float | None]
    usage: Usage
    judge_usage: Usage = Usage()
    trace: tuple[StoredStep, ...]
    failure: Failure | None = None


class Timing(Stored):
    """The part of a record that differs from one execution to the next; the judge's calls are in all of it.

    `paid` is in US dollars, None where a price is unknown.
    """

    seconds: float
    attempts: int
    replayed: int
    paid: float | None
    finished: str


class Record(Stored):
    """One question in one cell."""

    result: Result
    timing: Timing
