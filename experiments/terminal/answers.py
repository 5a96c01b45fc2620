"""One question and what the cells of a run made of it, in the terminal."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from experiments.question import Question
from experiments.record import Record, Result, StoredPassage, Verdict
from experiments.report.words import plural
from experiments.running.sub_questions import with_gold
from experiments.terminal.display import print_records, print_table, say
from experiments.terminal.passages import place
from experiments.terminal.trace import Places, cut, restored, show_steps
from experiments.words import price

Text = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell, and what it made of the question.

    Attributes:
        record: None where there is none yet.
        cause: in words; None where there is none to tell.
        searches: whether its evidence is searched for, rather than placed.
    """

    label: str
    record: Record | None
    cause: str | None
    searches: bool


def show_answers(title: str, question: Question, cells: Sequence[Shown], columns: Sequence[str], text: Text,
                 prompts: bool, every: bool) -> None:
    """The question with its gold, a line for each cell, then each cell: figures, and the steps that led to them. What
    evidence several cells were shown has its passages once.

    Args:
        columns: metrics of the run's table, the first one above all.
        text: a text by its hash.
        prompts: whether with the prompts as sent.
        every: whether with all scores, or those of the columns.
    """
    print_records([(title, list(_asked(question)))])
    say("")
    print_table(["cell", "outcome", *columns[:1], "cause"], [_line(one, columns[:1]) for one in cells])
    first: dict[tuple[StoredPassage, ...], str] = {}
    for one in cells:
        if one.record is None:
            continue
        result = one.record.result
        say("")
        print_records([(one.label, list(_answered(one.record, question, () if every else columns)))])
        known = first.setdefault(result.evidence, one.label)
        places = Places({passage.number: _placed(passage) for passage in result.evidence}, one.searches,
                        known if known != one.label else None)
        show_steps([restored(step, text) for step in result.trace], places, prompts)
        for number, sub in enumerate(result.subs, 1):
            if sub.trace:
                say(f"sub-question {number}:")
                show_steps([restored(step, text) for step in sub.trace], places, prompts)


def _line(one: Shown, columns: Sequence[str]) -> list[str]:
    if one.record is None:
        return [one.label, "not asked yet", *("-" for _ in columns), "-"]
    scores = one.record.result.scores
    return [one.label, one.record.result.outcome,
            *("-" if (score := scores.get(name)) is None else f"{score:g}" for name in columns), one.cause or "-"]


def _asked(question: Question) -> Iterator[tuple[str, str]]:
    yield "question", cut(question.text)
    for label, option in question.options:
        yield "option", f"{label}. {option}"
    yield "gold", " | ".join(question.answers) or "none is known"
    if not question.answerable:
        yield "", "unanswerable: a refusal is right"
    for number, (sub, answer) in enumerate(zip(question.sub_questions, question.sub_answers, strict=False), 1):
        yield f"hop {number}", f"{sub} {answer}"
    for number, step in enumerate(question.steps, 1):
        yield f"step {number}", cut(step.text)
    if question.tags:
        yield "tags", ", ".join(f"{name}={'+'.join(values)}" for name, values in question.tags.items())


def _answered(record: Record, question: Question, columns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """With the scores of the columns; without columns, all."""
    result, timing = record.result, record.timing
    yield "outcome", result.outcome + (f": {result.failure.message}" if result.failure else "")
    yield "answer", cut(result.text) or "none"
    yield from _cited(result)
    yield "gold shown", "none is known" if result.gold_in_view is None else \
        ", ".join(f"[{one.number}]" for one in result.in_view if one.gold) or f"none of {result.gold_total}"
    scores = [f"{name} {value:g}" for name, value in result.scores.items()
              if value is not None and (not columns or name in columns)]
    yield "scores", ", ".join(scores) or "none applies"
    if result.figures and columns:
        yield "measured", ", ".join(f"{cut(name)} {value:g}" for name, value in result.figures.items())
    if result.verdict is not None:
        yield "verdict", _verdict(result.verdict)
    for number, (sub, gold) in enumerate(with_gold(result.subs, question), 1):
        yield f"sub {number}", (f"{sub.question} {sub.outcome}: {cut(sub.text) or 'nothing'}"
                                f"{'' if gold is None else f' (gold: {gold})'}")
    if result.notes:
        yield "notes", ", ".join(result.notes)
    usage = result.usage + result.sub_usage
    again = f" (calls retried: {timing.retried})" if timing.retried else ""
    yield "used", (f"{plural(usage.calls, 'call')}, {usage.prompt_tokens} + {usage.completion_tokens} tokens, "
                   f"{price(usage.price)}; {plural(timing.attempts, 'request')}{again} in {timing.seconds} s")


def _cited(result: Result) -> Iterator[tuple[str, str]]:
    by_number = {passage.number: passage for passage in result.evidence}
    for number in result.cited:
        yield "cites", f"[{number}] {_placed(by_number[number])}"
    if result.invalid_citations:
        yield "", f"cited but never shown: {list(result.invalid_citations)}"


def _placed(passage: StoredPassage) -> str:
    """Where a passage comes from, and whether it is gold."""
    gold = f" (gold {passage.gold})" if passage.gold else ""
    return place({"document": passage.source, "pages": passage.pages}) + gold


def _verdict(verdict: Verdict) -> str:
    said = [f"{verdict.grade}" if verdict.grade else "",
            "" if verdict.points is None else f"{verdict.points} of 10 points",
            "" if verdict.steps is None else f"holds the steps {[one + 1 for one in verdict.steps]}",
            verdict.error_type or "", verdict.note]
    return f"{', '.join(one for one in said if one) or 'nothing'} (by {verdict.judge})"
