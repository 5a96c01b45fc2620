"""Metrics (`Metric`), groups of metrics (`MetricGroup`), and their input, one question in one cell (`Scored`)."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ragbed.agents.types import Outcome
from ragbed.documents.errors import SettingsError
from ragbed.experiments.question import Attack, Gold, Question, World
from ragbed.experiments.record import Grade, Result, StoredPassage, StoredStep, Support, Verdict
from ragbed.strategies.choice import Options, is_only_choice
from ragbed.strategies.reading import REWORDED, begins_with_refusal, read_answer, text_outside_answer
from ragbed.strategies.types import Rules

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbed.experiments.record import Result

    Floats = NDArray[np.float64]

ANSWERABLE = "answerable questions"
Sizes = Mapping[str, tuple[int, int]]  # number of answerable and of unanswerable questions by score name
BY_SPLIT = "unified"  # the metric that is the mean of two splits' means
_LONGEST_CUT = 9


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, whose name is the same in settings, records and tables."""

    name: str
    description: str
    over: str = "all questions"  # the questions that it applies to
    share: bool = False  # each question scores 0 or 1, so the mean is a share
    judged: bool = False  # whether it uses a judge's grades
    of_set: bool = False  # it is defined only for a set of questions, not for a single one
    cut: int | None = None  # the number after `@`; 0 for the family itself
    uncut: bool = False  # the name without a cut is a metric too: `mrr` as well as `mrr@10`
    low: float | None = 0.0  # `low` and `high` bound a question's value; None if unbounded
    high: float | None = 1.0
    low_unanswerable: float | None = None  # lower bound for unanswerable questions, if different
    less: bool = False  # whether less is better

    def __str__(self) -> str:
        return self.name if self.cut is None or self.is_whole else f"{self.name}@{self.cut}"

    @property
    def is_whole(self) -> bool:
        """Whether this is a family's metric without a cut."""
        return self.uncut and self.cut == 0

    @property
    def shape(self) -> str:
        """The name as in lists: with `@N` for a cut, in brackets if optional."""
        return self.name if self.cut is None else f"{self.name}[@N]" if self.uncut else f"{self.name}@N"

    def at(self, cut: int) -> Metric:
        """Return the same metric with this cut, such as `recall@5`. Raises SettingsError if the metric takes no cut."""
        if self.cut is None or cut < 1:
            raise SettingsError(f"the metric {self.name} takes no cut; remove @{cut}")
        return replace(self, cut=cut)


# All rubrics share this metric, since a scheme has only one rubric.
UNJUDGED = Metric("unjudged", "share that the judge did not grade: its call failed, or its reply could not be parsed",
                  "questions that a judge grades", share=True, judged=True, less=True)


def family_of(name: str) -> str:
    """Return a name without its cut: `recall` for `recall@5`."""
    return name.partition("@")[0]


def cut_of(name: str) -> int:
    """Return the cut of a name, or 0 if it has none."""
    cut = name.partition("@")[2]
    return int(cut) if cut.isdecimal() and len(cut) <= _LONGEST_CUT else 0


class SetFigure(NamedTuple):
    """A figure of a set of questions, computed from the means of their scores.

    Attributes:
        names: the scores whose means it uses. The figure covers the questions that have the first score.
        value: computes the figure from two arrays: the means over all questions (draws x names), and those over
            answerable and unanswerable questions (draws x 2 splits x names). The mean over no questions is nan.
    """

    names: tuple[str, ...]
    value: Callable[[Floats, Floats], Floats]


def pooled_mean(pooled: Floats, splits: Floats) -> Floats:
    """Return the mean over all questions of both splits."""
    return pooled[:, 0]


def joint(name: str, names: Sequence[str]) -> str:
    """Name the variant of a score that covers only the questions that have all of the metrics `names`."""
    return "&".join([name, *(other for other in names if other != name)])


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """The metrics of one subject.

    Attributes:
        score: computes a question's values by metric name, without the `of_set` metrics. A value is None if the metric
            does not apply.
        derive: returns the set's figures that are not pooled means. It gets the number of scores, the scoring, and
            whether the rules offer a refusal.
        together: metrics that `derive` averages over only those questions that have all of them (`joint`).
        at: computes a question's value for a cut that `score` does not return.
        material: returns additional data for `score`, which finds it in `item.extra[NAME OF THE GROUP]`. The arguments
            are a result, and a function that returns whether a result's answer is right. Unless it returns None, the
            group is scored for every benchmark. A group without `material` is scored only if a scheme names it.
    """

    metrics: tuple[Metric, ...]
    score: Callable[[Scored, Scoring], Scores]
    derive: Callable[[Sizes, Scoring, bool], Mapping[str, SetFigure]] = lambda sizes, scoring, refusing: {}
    together: tuple[str, ...] = ()
    at: Callable[[Scored, str], float | None] | None = None
    material: Callable[[Result, Callable[[Result], bool]], Any] | None = None


Scoring = Literal["corrected", "as-published"]
Scores = dict[str, float | None]
# Refusals that no judge graded are wrong in every scoring.
_UNASKED_REFUSAL = Verdict(judge="", grade="Wrong", points=0)


class ScoredRow(Protocol):
    """A scored question."""

    @property
    def answerable(self) -> bool: ...
    @property
    def scores(self) -> Mapping[str, float | None]: ...
    @property
    def outcome(self) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """Scores of a question without its record, for instance read from storage or averaged over repeats."""

    answerable: bool
    outcome: Outcome
    scores: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Sub:
    """A sub-question's answer and its gold."""

    outcome: Outcome
    text: str
    answer: str


class Extent(NamedTuple):
    """Characters of a document's rendering, from `start` up to `end`, in code points."""

    document: str
    format: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scored:
    """The facts about one question that metrics use, taken from its record and the question itself.

    Attributes:
        answerable: whether the benchmark calls the question answerable, and its gold was not dropped.
        text: the final answer with its citations; empty if there is none.
        refused: whether the reply is a refusal by ragbed's rules: its words refuse (`strategies.refusals`), its field
            `refused` is true, or the model of the setting `refusals` decided so.
        answers: accepted gold answers, or the label of a multiple-choice question; empty if the question has none.
        question: the question's text; its language decides whether F1 compares characters.
        options: label and text of each option of a multiple-choice question.
        grade, points, steps: the judge's verdict, by rubric; None if the judge was not asked or its reply could not be
            parsed.
        step_count: number of reference steps.
        reasoned: whether any reply contains reasoning; see `extract_reasoning`.
        subs: the sub-questions in order.
        cited: evidence numbers that are cited and were shown.
        invalid: cited numbers that were not shown in any prompt of this question.
        hits: gold items that each passage contains, by evidence number, in the order of retrieval.
        gold_total: number of distinct gold items, whether shown or not.
        gold_repeats: number of duplicate gold labels in the benchmark's record.
        rules: the prompt's rules. Citation metrics apply only if they ask for citations, refusal metrics only if they
            offer a refusal.
        separators: whether documents were shown with numbers, which citations need.
        searched: whether a search found the evidence; if not, the condition placed it.
        grades: relevance of the gold items, in order; empty if all are 1.
        repeats: evidence numbers of further chunks of a document, if gold is whole documents; see `GoldView`.
        names: name of each evidence number in the judgements (`judgement_names`).
        judged: the relevance of judged passages other than gold, by these names: 0 for irrelevant ones, or below.
        found: positions of the evidence, in the order of retrieval.
        marked: positions of the gold, if all of it is character spans.
        attack: the attack in the documents, if there is one.
        world: the edit of the documents, if there is one.
        figures: figures that the strategy measured, by name.
        extra: the results of metric groups' `material`, by group.
        support: support labels of the answer's sentences and nuggets, if they were checked.
    """

    outcome: Outcome
    answerable: bool
    text: str = ""
    refused: bool = False
    tagged: bool | None = None
    answers: tuple[str, ...] = ()
    question: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    grade: Grade | None = None
    points: int | None = None
    steps: tuple[int, ...] | None = None
    step_count: int = 0
    reasoned: bool = False
    subs: tuple[Sub, ...] = ()
    cited: tuple[int, ...] = ()
    invalid: tuple[int, ...] = ()
    hits: Mapping[int, Collection[int]] = field(default_factory=dict)
    gold_total: int = 0
    gold_repeats: int = 0
    rules: Rules = "grounded"
    separators: bool = True
    searched: bool = False
    grades: tuple[int, ...] = ()
    repeats: frozenset[int] = frozenset()
    names: Mapping[int, str] = field(default_factory=dict)
    judged: Mapping[str, int] = field(default_factory=dict)
    found: tuple[Extent, ...] = ()
    marked: tuple[Extent, ...] = ()
    attack: Attack | None = None
    world: World | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    support: Support | None = None

    @property
    def read(self) -> bool:
        """Whether there is a readable reply: an answer or a refusal. Citations in anything else do not count."""
        return self.outcome in ("answered", "refused")

    @property
    def cites(self) -> bool:
        """Whether the rules ask for citations."""
        return may_cite(self.rules, self.separators)

    @property
    def may_refuse(self) -> bool:
        """Whether the rules offer a refusal."""
        return may_refuse(self.rules)

    @property
    def cited_gold(self) -> frozenset[int]:
        """The gold that the cited chunks contain."""
        return frozenset[int]().union(*(self.hits.get(number, ()) for number in self.cited if self.read))

    @property
    def cited_overlap(self) -> tuple[float, float]:
        """Two shares for a question with gold labels: cited chunks that contain gold, and gold in cited chunks."""
        held = [bool(self.hits.get(number)) for number in dict.fromkeys(self.cited) if self.read]
        return sum(held) / len(held) if held else 0.0, len(self.cited_gold) / self.gold_total


def may_cite(rules: Rules, separators: bool) -> bool:
    """Return whether a prompt with these rules asks for citations. `separators`: whether it numbers documents."""
    return separators and rules in ("grounded", "open")


def may_refuse(rules: Rules) -> bool:
    """Return whether a prompt with these rules offers a refusal."""
    return rules == "grounded"


def make_scored(result: Result, question: Question, rules: Rules, separators: bool, searched: bool) -> Scored:
    """Make the input of metrics from a finished record. This needs neither the evidence's texts nor a model."""
    verdict = result.verdict or (_UNASKED_REFUSAL if result.refused else Verdict(judge=""))
    marked, in_view = _gold_extents(question.gold), result.in_view
    return Scored(
        outcome=result.outcome, answerable=result.answerable, text=result.text, refused=result.refused,
        tagged=result.tagged, answers=question.answers, question=question.text, options=question.options,
        grade=verdict.grade, points=verdict.points, steps=verdict.steps, step_count=len(question.steps),
        reasoned=bool(extract_reasoning(result, question.options)),
        subs=tuple(Sub(sub.outcome, sub.text, answer)
                   for sub, answer in zip(result.subs, question.sub_answers, strict=bool(result.subs))),
        cited=result.cited, invalid=result.invalid_citations,
        hits={passage.number: passage.holds for passage in in_view}, gold_total=result.gold_total,
        gold_repeats=question.gold_repeats, rules=rules, separators=separators, searched=searched,
        grades=result.gold_grades, repeats=frozenset(passage.number for passage in in_view if passage.repeats),
        names=judgement_names(in_view, question),
        judged={**dict.fromkeys(question.irrelevant, 0), **question.junk},
        found=_evidence_extents(in_view, marked) if marked else (), marked=marked, attack=question.attack,
        world=question.world, figures=result.figures, support=result.support)


def judgement_names(evidence: Iterable[StoredPassage], question: Question) -> dict[int, str]:
    """Return the name of each passage in the question's judgements, by its number: its document (id or source), or its
    chunk if gold is finer."""
    if any((item.chunk, item.start, item.page) != (None, None, None) for item in question.gold):
        return {one.number: one.chunk for one in evidence}
    known = {*question.irrelevant, *question.junk, *(item.document for item in question.gold)}
    return {one.number: one.source if one.source in known else one.document for one in evidence}


def _gold_extents(gold: Sequence[Gold]) -> tuple[Extent, ...]:
    spans = [Extent(item.document, item.format, item.start, item.end) for item in gold
             if item.format is not None and item.start is not None and item.end is not None]
    return tuple(spans) if len(spans) == len(gold) else ()


def _evidence_extents(evidence: Sequence[StoredPassage], marked: Sequence[Extent]) -> tuple[Extent, ...]:
    named = {extent.document for extent in marked}
    return tuple(Extent(one.source if one.source in named else one.document, one.format, one.start, one.end)
                 for one in evidence)


def outcome_as_published(result: Result) -> Result:
    """Return the result with the outcome `answered` if it refuses in other words than the prompt's, which the published
    code does not recognise."""
    subs = tuple(sub if sub.outcome != "refused" or begins_with_refusal(sub.text) else
                 sub.model_copy(update={"outcome": "answered"}) for sub in result.subs)
    reworded = result.outcome == "refused" and REWORDED in result.notes
    return result.model_copy(update={"outcome": "answered" if reworded else result.outcome, "subs": subs})


def text_as_published(result: Result) -> str:
    """Return the answer as CReSt's published code cuts it from the last reply (`evaluation/method/baseline.py`): the
    text after the last `<Answer>` and before the next `</Answer>`, case-sensitive and including whitespace. Without
    tags, it is the whole reply. An answer that is not a single reply, such as a vote or the fields of a schema, stays
    unchanged."""
    reply = next((step.text for step in reversed(result.trace) if step.purpose == "answer"), "")
    if read_answer(reply)[0] != result.text:
        return result.text
    return reply.split("<Answer>")[-1].split("</Answer>")[0]


def extract_reasoning(result: Result, options: Options) -> str:
    """Return everything that the model wrote outside its answer tags, in the order of its calls. A final reply without
    answer tags counts as reasoning too, unless it only names an option."""
    return "\n\n".join(text for step in result.trace if step.kind == "generate"
                       for text in (step.reasoning.strip(), _text_outside(step, options)) if text)


def _text_outside(step: StoredStep, options: Options) -> str:
    if step.purpose != "answer":
        return step.text.strip()
    besides = text_outside_answer(step.text)
    return "" if options and is_only_choice(besides, options) else besides
