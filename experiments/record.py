"""The record of one question in one cell: outcome, answer, scores, cost and trace."""
from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from ragbed.agents.types import Outcome
from ragbed.documents.types import Format
from ragbed.strategies.types import Failure, Usage

Grade = Literal["Correct", "Partially Correct", "Wrong"]
_NO_FIELDS: set[str] = set()
_NOTHING: dict[str, Any] = {}
_set = object.__setattr__  # works on frozen models
_IS_NONE = partial(operator.is_, None)  # faster than a lambda, which is called for each passage


class Stored(BaseModel):
    """A frozen model that rejects unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def model_post_init(self, context: Any) -> None:
        """Drop pydantic's set of given fields, which would take half of the memory of a run's results."""
        _set(self, "__pydantic_fields_set__", _NO_FIELDS)

    @classmethod
    def build_unchecked(cls, values: dict[str, Any]) -> Self:
        """Build a record from valid `values` of all fields, in order. Skips validation: ten times as fast."""
        made = cls.__new__(cls)
        _set(made, "__dict__", values)
        _set(made, "__pydantic_fields_set__", _NO_FIELDS)
        _set(made, "__pydantic_extra__", None)
        _set(made, "__pydantic_private__", None)
        return made


class StoredMessage(Stored):
    """A message. `parts` are hashes of its texts; the run stores each text once."""

    role: str
    parts: tuple[str, ...]
    tool_calls: tuple[dict[str, Any], ...] = Field(default=(), exclude_if=operator.not_)
    call_id: str = Field(default="", exclude_if=operator.not_)


class StoredStep(Stored):
    """A step of a trace: a search (`query`, `found`), a decision (`purpose`, and `text` as its reason), a call of a
    tool (`purpose` is its name), or a model call."""

    kind: Literal["search", "generate", "decision", "tool"]
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
    arguments: dict[str, Any] = Field(default_factory=dict, exclude_if=operator.not_)  # of a tool's call
    parts: tuple[str | int, ...] = Field(default=(), exclude_if=operator.not_)  # of its result: hashes, and numbers


Level = Literal["chunk", "span", "page", "document", "words"]  # how precisely a passage matches gold, finest first


class StoredPassage(Stored):
    """A numbered chunk. `text` is the hash of its content, which the run stores once.

    Attributes:
        gold: the level at which it matches gold evidence; None if it does not.
        holds: which of the question's distinct gold items it contains.
        repeats: whether an earlier passage is from the same document. Used only if gold is whole documents.
        grade: a model's relevance grade from 0 to 3, if there is no human judgement.
        aside: whether a search found it but no prompt showed it, for instance because the strategy dropped it.
        score: the retriever's score, in a run that only searches.
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
    gold: Level | None = None
    holds: tuple[int, ...] = ()
    repeats: bool = Field(default=False, exclude_if=operator.not_)
    grade: int | None = Field(default=None, exclude_if=_IS_NONE)
    aside: bool = Field(default=False, exclude_if=operator.not_)
    score: float | None = Field(default=None, exclude_if=_IS_NONE)


class Verdict(Stored):
    """A judge's verdict on one answer. If its reply could not be read, `note` says why.

    Attributes:
        grade: the grade by the rubric `grades`.
        points: the points by the rubric `points`, from 0 to 10.
        steps: by the rubric `steps`, indices (from 0) of the reference steps that the reasoning contains.
        label, value: the grade and its value on the judge's own scale, such as `Partially` and 0.5.
        reason: the judge's reason, if it gave one.
    """

    judge: str
    grade: Grade | None = None
    error_type: str | None = None
    points: int | None = None
    steps: tuple[int, ...] | None = None
    note: str = ""
    label: str = Field(default="", exclude_if=operator.not_)
    value: float | None = Field(default=None, exclude_if=_IS_NONE)
    reason: str = Field(default="", exclude_if=operator.not_)

    @property
    def unjudged(self) -> bool:
        """Return whether the verdict lacks a grade, points, steps and a value."""
        return self.grade is None and self.points is None and self.steps is None and self.value is None


SupportLevel = Literal["full", "partial", "none"]


class SupportLabel(Stored):
    """How well a sentence is supported by the passages that it cites, or a nugget by the answer.

    Attributes:
        cited: evidence numbers that the sentence cites.
        vital: whether the nugget is vital; None for a sentence.
        level: how well it is supported. If unknown, this is None, and `note` says why.
    """

    text: str
    cited: tuple[int, ...] = Field(default=(), exclude_if=operator.not_)
    vital: bool | None = Field(default=None, exclude_if=_IS_NONE)
    level: SupportLevel | None
    note: str = Field(default="", exclude_if=operator.not_)


class Support(Stored):
    """Support of the sentences and nuggets of one answer. If nuggets are missing, `note` says why."""

    judge: str
    sentences: tuple[SupportLabel, ...] = ()
    nuggets: tuple[SupportLabel, ...] = ()
    note: str = Field(default="", exclude_if=operator.not_)

    @property
    def labels(self) -> tuple[SupportLabel, ...]:
        """Return the labels of the sentences, then of the nuggets."""
        return *self.sentences, *self.nuggets


class StoredSub(Stored):
    """A sub-question that was asked with the question's evidence, and its answer.

    Attributes:
        question: the text, with `#1` replaced by the earlier answer.
        text: the answer with its citations; empty if there is none.
    """

    question: str
    outcome: Outcome
    text: str = ""
    trace: tuple[StoredStep, ...] = ()


class StoredProbe(Stored):
    """An answered question that was asked again with fewer passages.

    Attributes:
        left_out: numbers of the passages that were left out; empty for a plain repeat.
        text: the answer with its citations; empty if there is none.
        verdict: the judge's verdict, if the answer changed and a judge is needed.
        usage: usage of its calls, including the judge's.
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
        evidence: passages shown in prompts, in the order of the last prompt, then passages that were not shown.
        refused, refused_as_published: whether the model refused, by ragbed's rule and by the paper's substring rule.
        gold_grades: relevance grade of each distinct gold item; empty if all are 1.
        gold_in_view: whether any gold evidence was shown; None if the question has no gold evidence.
        answerable: whether the question is answerable and its gold was kept.
        asked: the question as the cell's variation rephrased it; empty if unchanged.
        asked_usage: usage of the model that rephrased the question.
        usage: usage of the answer. `calls` counts all model calls, including failed ones.
        judge_usage: usage of the judge and of the support check.
        subs, sub_usage: the sub-questions, if they were asked, and their usage.
        scores: value by metric; None if the metric does not apply to this question.
        figures: figures that the strategy measured, by name.
        judgements: verdicts that give a column of their own, each with its column as `judge`.
        probes: in the order of the calls; empty if the run has no `probe` setting or there was no answer.
        measured: values by name, or the error, of each function of the setting `metrics`.
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
    measured: dict[str, dict[str, float | None] | str] = Field(default_factory=dict, exclude_if=operator.not_)
    judgements: tuple[Verdict, ...] = Field(default=(), exclude_if=operator.not_)

    @property
    def probe_usage(self) -> Usage:
        """Return the usage of all probes."""
        return sum((probe.usage for probe in self.probes), Usage())

    @property
    def calls_by_tool(self) -> Mapping[str, int]:
        """Return how often each tool was called. A search outside a tool counts as `search`."""
        return Counter(str(step.purpose) if step.kind == "tool" else "search" for step in self.trace
                       if step.kind in ("tool", "search"))

    @property
    def in_view(self) -> tuple[StoredPassage, ...]:
        """Return the evidence that prompts showed or that was gathered for ranking."""
        return tuple(passage for passage in self.evidence if not passage.aside)


_KEPT = ("cell", "question", "answerable", "outcome", "scores", "verdict", "notes", "asked", "asked_usage", "usage",
         "judge_usage", "sub_usage", "judgements", "probes", "measured", "figures")
_SHARED = {"scores", "verdict", "usage", "judge_usage", "sub_usage", "asked_usage", "notes", "cell"}
_MOST_SHARED = 50_000  # distinct values that are remembered


class BriefResult:
    """The fields of a `Result` that every summary needs. It reads the others, such as `evidence`, when they are used.

    Equal values take memory once, so that the results of a million answers fit.
    """

    __slots__ = (*_KEPT, "_read")
    probe_usage = Result.probe_usage

    def __init__(self, result: Result, read: Callable[[str, str], Result], shared: dict[Any, Any]) -> None:
        for name in _KEPT:
            value = getattr(result, name)
            if name in _SHARED:
                key = name, (*value, *value.values()) if isinstance(value, dict) else value
                value = shared.get(key, value) if len(shared) > _MOST_SHARED else shared.setdefault(key, value)
            setattr(self, name, value if value or not isinstance(value, dict) else _NOTHING)
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read(self.cell, self.question), name)


class Timing(Stored):
    """The part of a record that differs between executions. It includes the judge's calls.

    Attributes:
        attempts: number of requests sent.
        replayed: number of calls that came from the journal.
        retried: number of calls that took more than one request.
        paid: cost in US dollars; None if a price is unknown.
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
