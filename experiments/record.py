"""The stored form of one question in one cell: its outcome, answer, scores, cost and trace."""
from __future__ import annotations

import operator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ragbed.agents.types import Outcome
from ragbed.documents.types import Format
from ragbed.strategies.types import Failure, Usage

Grade = Literal["Correct", "Partially Correct", "Wrong"]


_GIVEN: set[str] = set()


class Stored(BaseModel):
    """A closed, frozen model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def model_post_init(self, context: Any) -> None:
        """Forget which fields were given: a set of their names in each is half of what a run's results take."""
        object.__setattr__(self, "__pydantic_fields_set__", _GIVEN)


class StoredMessage(Stored):
    """A message whose parts are kept once each, under their hash, in the run's `texts`."""

    role: str
    parts: tuple[str, ...]
    tool_calls: tuple[dict[str, Any], ...] = Field(default=(), exclude_if=operator.not_)
    call_id: str = Field(default="", exclude_if=operator.not_)


class StoredStep(Stored):
    """A search (`query`, `found`), a decision (`purpose` says what, `text` why) or a model call (everything else)."""

    kind: Literal["search", "generate", "decision"]
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
    tool_calls: tuple[dict[str, Any], ...] = Field(default=(), exclude_if=operator.not_)


class StoredPassage(Stored):
    """A chunk under its number. `text` is the hash of its content in the run's `texts`.

    Attributes:
        gold: the level at which it counts as gold evidence; None where it is none.
        holds: places of the gold items that it holds, among the question's distinct ones.
        repeats: whether it is a further chunk of a document that was found before, where gold is whole documents.
        grade: of a passage that people did not judge, that which a model gave it, 0 to 3; None where it gave none.
        aside: whether it was found and no prompt showed it, as where the strategy dropped it.
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
    gold: Literal["chunk", "span", "page", "document", "words"] | None = None
    holds: tuple[int, ...] = ()
    repeats: bool = Field(default=False, exclude_if=operator.not_)
    grade: int | None = Field(default=None, exclude_if=lambda grade: grade is None)
    aside: bool = Field(default=False, exclude_if=operator.not_)


class Verdict(Stored):
    """What a judge said of one answer, by its rubric; where it said nothing readable, `note` says why.

    Attributes:
        grade: of the rubric `grades`.
        points: of the rubric `points`, 0 to 10.
        steps: of the rubric `steps`: places, from 0, of the reference steps that the reasoning holds.
    """

    judge: str
    grade: Grade | None = None
    error_type: str | None = None
    points: int | None = None
    steps: tuple[int, ...] | None = None
    note: str = ""

    @property
    def unjudged(self) -> bool:
        """Tell whether it holds neither grade nor points nor steps."""
        return self.grade is None and self.points is None and self.steps is None


SupportLevel = Literal["full", "partial", "none"]


class SupportLabel(Stored):
    """How far a sentence of an answer stands in what it cites, or a nugget in an answer.

    Attributes:
        cited: the evidence numbers that a sentence cites.
        vital: whether a nugget is vital rather than okay; None of a sentence.
        level: None where it could not be told; `note` says why.
    """

    text: str
    cited: tuple[int, ...] = Field(default=(), exclude_if=operator.not_)
    vital: bool | None = Field(default=None, exclude_if=lambda vital: vital is None)
    level: SupportLevel | None
    note: str = Field(default="", exclude_if=operator.not_)


class Support(Stored):
    """What a check of support, named by `judge`, said of one answer; `note` says why there are no nuggets."""

    judge: str
    sentences: tuple[SupportLabel, ...] = ()
    nuggets: tuple[SupportLabel, ...] = ()
    note: str = Field(default="", exclude_if=operator.not_)

    @property
    def labels(self) -> tuple[SupportLabel, ...]:
        """Return those of the sentences, then those of the nuggets."""
        return *self.sentences, *self.nuggets


class StoredSub(Stored):
    """A sub-question as it was asked over the question's evidence, and what came of it.

    Attributes:
        question: as asked: an earlier answer stands in the place of `#1`.
        text: the answer with its citations; empty where there is none.
    """

    question: str
    outcome: Outcome
    text: str = ""
    trace: tuple[StoredStep, ...] = ()


class StoredProbe(Stored):
    """An answered question that was asked again over less evidence.

    Attributes:
        left_out: numbers of the passages that no search found this time; none where it was asked again as it had been,
            as a further repeat.
        text: the answer with its citations; empty where there is none.
        verdict: of an answer that is another one, where a judge is due.
        usage: of its calls, the judge's among them.
    """

    left_out: tuple[int, ...]
    outcome: Outcome
    text: str = ""
    verdict: Verdict | None = None
    failure: Failure | None = None
    usage: Usage = Usage()


class Result(Stored):
    """The deterministic part of a record, which is hashed.

    Attributes:
        evidence: what prompts showed, in the order of the last prompt of an answer, and then what none showed.
        refused: by ragbed's rule; `refused_as_published` by the published substring rule.
        gold_grades: the relevance of each distinct gold item, where any is not 1; else empty.
        gold_in_view: whether any gold evidence was shown; None where the question has none.
        answerable: whether the benchmark has the question answerable and its gold was not dropped.
        asked: the question as the cell's variation has it, where that is not as it was asked; else empty.
        asked_usage: of who wrote it, counted as the judge's.
        usage: of the answer; `calls` counts the model calls that were asked for, failed ones too.
        judge_usage: of the judge and the check of support, counted likewise; `sub_usage` of the sub-questions.
        subs: the sub-questions in order, where they were asked.
        scores: metric name to value; None where the metric does not apply to this question.
        figures: what the strategy measured on its way, by name.
        probes: in the order in which they were asked; none where the run was not probed, or there was no answer.
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
    gold_grades: tuple[int, ...] = Field(default=(), exclude_if=operator.not_)
    gold_in_view: bool | None
    verdict: Verdict | None
    scores: dict[str, float | None]
    asked: str = Field(default="", exclude_if=operator.not_)
    asked_usage: Usage = Field(default=Usage(), exclude_if=lambda usage: usage == Usage())
    usage: Usage
    judge_usage: Usage = Usage()
    subs: tuple[StoredSub, ...] = ()
    sub_usage: Usage = Usage()
    trace: tuple[StoredStep, ...]
    failure: Failure | None = None
    figures: dict[str, float] = Field(default_factory=dict, exclude_if=operator.not_)
    support: Support | None = Field(default=None, exclude_if=operator.not_)
    probes: tuple[StoredProbe, ...] = Field(default=(), exclude_if=operator.not_)

    @property
    def probe_usage(self) -> Usage:
        """Return what the probes used together."""
        return sum((probe.usage for probe in self.probes), Usage())

    @property
    def in_view(self) -> tuple[StoredPassage, ...]:
        """Return the evidence that prompts showed, or that was gathered to be ranked."""
        return tuple(passage for passage in self.evidence if not passage.aside)


class Timing(Stored):
    """The part of a record that differs from one execution to the next; the judge's calls are in all of it.

    Attributes:
        attempts: requests sent; `retried` counts the calls that took more than one.
        paid: in US dollars, None where a price is unknown.
    """

    seconds: float
    attempts: int
    replayed: int
    paid: float | None
    finished: str
    retried: int = 0


class Record(Stored):
    """One question in one cell."""

    result: Result
    timing: Timing
