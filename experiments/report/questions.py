"""The question browser as data: each question with its gold, its answers side by side, its evidence."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from experiments.question import Question
from experiments.record import Record, Result
from experiments.report.answers import linked
from experiments.report.asked import AskedSub, Reference, Sub, asked, found, graded, references, subs
from experiments.report.cells import Cell, column
from experiments.report.passages import Passage, passages
from experiments.report.store import TextStore
from experiments.report.text import Bounded, bounded, visible
from experiments.report.trace import Step, steps

ANSWER = 6_000
QUESTION = 6_000


@dataclass(frozen=True, slots=True)
class Card:
    """One cell's answer to one question; `outcome` is `missing` where the run has no record of it."""

    anchor: str
    cell: Cell
    outcome: str
    grade: str = ""
    judge: str = ""
    grade_note: str = ""
    answer: Markup | None = None
    left_out: int = 0
    scores: tuple[tuple[str, float | None], ...] = ()
    cited: tuple[tuple[int, str, bool], ...] = ()
    invalid: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str = ""
    tokens: int = 0
    calls: int = 0
    price: float | None = None
    seconds: float = 0.0
    steps: tuple[Step, ...] = ()
    asked: tuple[AskedSub, ...] = ()
    found: tuple[tuple[Bounded, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One question as shown."""

    anchor: str
    number: int
    id: str
    text: Bounded
    answerable: bool
    gold: tuple[Bounded, ...]
    options: tuple[tuple[str, Bounded], ...]
    subs: tuple[Sub, ...]
    references: tuple[Reference, ...]
    tags: tuple[str, ...]
    cards: tuple[Card, ...]
    passages: tuple[Passage, ...]
    gold_note: str

    @property
    def outcomes(self) -> list[tuple[str, int]]:
        return list(Counter(card.outcome for card in self.cards).items())

    @property
    def grades(self) -> list[tuple[str, int]]:
        return list(Counter(card.grade for card in self.cards if card.grade not in ("", "unjudged")).items())


def entries(questions: Mapping[str, Question], records: Iterable[Record], cells: Sequence[Cell],
            store: TextStore) -> Iterator[Entry]:
    """Every question of the run or of its records, in the benchmark's order; the unknown ones last."""
    by_question: dict[str, dict[str, Record]] = {name: {} for name in questions}
    for record in records:
        by_question.setdefault(record.result.question, {})[record.result.cell] = record
    for number, (name, answered) in enumerate(by_question.items(), 1):
        question = questions.get(name) or Question(name, "(not among the run's questions)", (), answerable=False)
        yield _entry(number, question, answered, cells, store)


def _entry(number: int, question: Question, records: Mapping[str, Record], cells: Sequence[Cell],
           store: TextStore) -> Entry:
    anchor = f"q{number}"
    shown = [(cell.label, records[cell.id].result) for cell in cells if cell.id in records]
    evidence = passages(anchor, shown, store)
    shared = _shared([result for _, result in shown])
    cards = tuple(_card(f"{anchor}-c{cell.number}", cell, question, records.get(cell.id), evidence, store, shared)
                  for cell in cells)
    return Entry(
        anchor, number, visible(question.id), bounded(question.text, QUESTION), question.answerable,
        gold=tuple(bounded(answer, ANSWER) for answer in question.answers),
        options=tuple((visible(label), bounded(text, ANSWER)) for label, text in question.options),
        subs=subs(question), references=references(question),
        tags=tuple(visible(f"{name}: {', '.join(values)}") for name, values in question.tags.items()),
        cards=cards, passages=tuple(evidence.values()), gold_note=_gold_note([result for _, result in shown], evidence))


def _shared(results: Sequence[Result]) -> set[str]:
    counts = Counter(key for result in results for step in result.trace for message in step.messages
                     for key in message.parts)
    return {key for key, count in counts.items() if count > 1}


def _gold_note(results: Sequence[Result], found: Mapping[str, Passage]) -> str:
    total = max((result.gold_total for result in results), default=0)
    marked = sum(passage.gold is not None for passage in found.values())
    if total == 0:
        return "This question names no gold evidence."
    return f"Gold evidence: {total} in all; {marked} passage{'s' if marked != 1 else ''} shown here count as gold."


def _card(anchor: str, cell: Cell, question: Question, record: Record | None, evidence: Mapping[str, Passage],
          store: TextStore, shared: set[str]) -> Card:
    if record is None:
        return Card(anchor, cell, "missing")
    result = record.result
    anchors = {passage.number: evidence[passage.chunk] for passage in result.evidence}
    answer, verdict = bounded(result.text, ANSWER), result.verdict
    return Card(
        anchor, cell, result.outcome, graded(verdict, question),
        visible(verdict.judge) if verdict else "", visible(verdict.note[:QUESTION]) if verdict else "",
        linked(answer, {number: passage.anchor for number, passage in anchors.items()}), answer.left_out,
        scores=_scores(result, cell),
        cited=tuple((number, anchors[number].anchor, anchors[number].gold is not None)
                    for number in result.cited if number in anchors),
        invalid=result.invalid_citations, notes=tuple(visible(note) for note in _notes(result)),
        failure=visible(f"{result.failure.kind}: {result.failure.message}"[:ANSWER]) if result.failure else "",
        tokens=result.usage.prompt_tokens + result.usage.completion_tokens, calls=result.usage.calls,
        price=result.usage.price, seconds=record.timing.seconds, steps=tuple(steps(result.trace, store, shared)),
        asked=asked(result), found=found(result, question))


def _scores(result: Result, cell: Cell) -> tuple[tuple[str, float | None], ...]:
    judge = result.verdict.judge if result.verdict else cell.judge
    return tuple((column(name, judge), value) for name, value in result.scores.items())


def _notes(result: Result) -> list[str]:
    notes = list(result.notes)
    if result.verdict and result.verdict.error_type:
        notes.append(f"error type: {result.verdict.error_type}")
    if result.gold_in_view is False:
        notes.append("no gold evidence in view")
    return notes
