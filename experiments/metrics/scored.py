"""The input of metrics: one question in one cell."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from ragbed.agents.types import Outcome
from ragbed.experiments.question import Attack, Gold, Question, World
from ragbed.experiments.record import Grade, Result, StoredPassage, StoredStep, Support, Verdict
from ragbed.strategies.choice import Options, is_only_choice
from ragbed.strategies.reading import read_answer, text_outside_answer
from ragbed.strategies.types import Rules

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
        answerable: whether the question is answerable by the benchmark, and its gold was not dropped.
        text: the final answer with its citations; empty if there is none.
        refused: whether the reply is a refusal by ragbed's rule: the answer begins with the refusal sentence, or the
            structured reply refuses.
        answers: accepted gold answers, or the label of a multiple-choice question; empty if the question has none.
        options: label and text of each option of a multiple-choice question.
        grade, points, steps: the judge's verdict, by rubric; None if the judge was not asked or its reply could not be
            parsed.
        step_count: number of reference steps.
        reasoned: whether any reply contains reasoning; see `extract_reasoning`.
        subs: the sub-questions in order.
        cited: evidence numbers that are cited and were shown.
        invalid: cited numbers that were not shown in any prompt of this question.
        hits: by evidence number, in the order of retrieval, the gold items that the passage contains.
        gold_total: number of distinct gold items, shown or not.
        gold_repeats: number of duplicate gold labels in the benchmark's record.
        rules: the prompt's rules. Citation metrics apply only if they ask for citations, refusal metrics only if they
            offer a refusal.
        separators: whether documents were shown with numbers, which citations need.
        searched: whether the evidence was searched for, rather than placed.
        grades: relevance of the gold items, in order; empty if all are 1.
        repeats: evidence numbers of further chunks of a document, if gold is whole documents; see `GoldView`.
        names: name of each evidence number in the judgements (`judgement_name`).
        judged: the relevance of judged passages other than gold, by these names; 0 for irrelevant ones.
        found: places of the evidence, in the order of retrieval.
        marked: places of the gold, if all of it is spans of characters.
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


def may_cite(rules: Rules, separators: bool) -> bool:
    """Return whether a prompt with these rules asks for citations; `separators` says whether its documents have
    numbers."""
    return separators and rules in ("grounded", "open")


def may_refuse(rules: Rules) -> bool:
    """Return whether a prompt with these rules offers a refusal."""
    return rules == "grounded"


def make_scored(result: Result, question: Question, rules: Rules, separators: bool, searched: bool) -> Scored:
    """Make the input of metrics from a finished record. Neither the evidence's texts nor a model are needed."""
    verdict = result.verdict or (_UNASKED_REFUSAL if result.refused else Verdict(judge=""))
    marked = _marked(question.gold)
    return Scored(
        outcome=result.outcome, answerable=result.answerable, text=result.text, refused=result.refused,
        tagged=result.tagged, answers=question.answers, options=question.options, grade=verdict.grade,
        points=verdict.points, steps=verdict.steps, step_count=len(question.steps),
        reasoned=bool(extract_reasoning(result, question.options)),
        subs=tuple(Sub(sub.outcome, sub.text, answer)
                   for sub, answer in zip(result.subs, question.sub_answers, strict=bool(result.subs))),
        cited=result.cited, invalid=result.invalid_citations,
        hits={passage.number: passage.holds for passage in result.in_view}, gold_total=result.gold_total,
        gold_repeats=question.gold_repeats, rules=rules, separators=separators, searched=searched,
        grades=result.gold_grades, repeats=frozenset(passage.number for passage in result.in_view if passage.repeats),
        names={one.number: judgement_name(one, question) for one in result.in_view},
        judged=dict.fromkeys(question.irrelevant, 0),
        found=_found(result.in_view, marked) if marked else (), marked=marked, attack=question.attack,
        world=question.world, figures=result.figures, support=result.support)


def judgement_name(passage: StoredPassage, question: Question) -> str:
    """Return the name of a passage in the question's judgements: its document, by id or source, or its chunk if gold is
    finer."""
    if any((item.chunk, item.start, item.page) != (None, None, None) for item in question.gold):
        return passage.chunk
    known = {*question.irrelevant, *(item.document for item in question.gold)}
    return passage.source if passage.source in known else passage.document


def _marked(gold: Sequence[Gold]) -> tuple[Extent, ...]:
    """Return the gold as spans, or nothing if any of it is not a span."""
    spans = [Extent(item.document, item.format, item.start, item.end) for item in gold
             if item.format is not None and item.start is not None and item.end is not None]
    return tuple(spans) if len(spans) == len(gold) else ()


def _found(evidence: Sequence[StoredPassage], marked: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the spans of the evidence, with documents named as in the gold."""
    named = {extent.document for extent in marked}
    return tuple(Extent(one.source if one.source in named else one.document, one.format, one.start, one.end)
                 for one in evidence)


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
                       for text in (step.reasoning.strip(), _besides(step, options)) if text)


def _besides(step: StoredStep, options: Options) -> str:
    if step.purpose != "answer":
        return step.text.strip()
    besides = text_outside_answer(step.text)
    return "" if options and is_only_choice(besides, options) else besides
