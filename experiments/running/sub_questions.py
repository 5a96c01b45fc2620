"""Sub-questions: what a model answers to each step of a multi-hop question.

`asked` puts each as a question of its own, in order, over the evidence that the question had, after the question's
own answer, which knows nothing of them; each has the question's limits anew. In the place of `#1` stands the model's
own answer to the first; where there is none, since it refused, failed or said nothing to read, the sub-question itself
stands there as words ("the answer to ..."), so that the chain goes on without gold. With `filled: gold` the gold
sub-answer stands there. `in_prompt` reads the lines of the one reply that was asked for them all.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents.database import Database
from agents.types import Answer, Cost, GenerateStep
from experiments.benchmarks.chained import with_references
from experiments.question import Question
from experiments.record import StoredSub
from experiments.running.results import stored_trace, used
from strategies.prompting import fill
from strategies.reading import is_refusal, strip_citations
from strategies.sub_answers import read_sub_answers
from strategies.types import Usage

if TYPE_CHECKING:
    from experiments.running.play import CellPlayer

_NO_REPLY = ("connection", "timeout")  # a key that is refused ends the run


@dataclass(frozen=True, slots=True)
class Subs:
    """The answers to the sub-questions, and what they used and cost."""

    stored: tuple[StoredSub, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cost: Cost = field(default_factory=Cost)


async def subs_of(player: CellPlayer, question: Question, answer: Answer, database: Database) -> Subs:
    """The sub-questions of a question that was played, as its cell has them answered.

    Where the question ended before any prompt was sent, its evidence is not known to be whole; where no reply came
    from its server, none is to be had for them either. Then its sub-questions are not asked and share its outcome.
    """
    mode = player.sub_answers(question)
    if mode == "none":
        return Subs()
    if mode == "in_prompt":
        return Subs(tuple(_read(question, answer)))
    if answer.failure is not None and (answer.failure.kind in _NO_REPLY or not any(
            isinstance(step, GenerateStep) for step in answer.trace)):
        return Subs(tuple(StoredSub(question=text, outcome=answer.outcome) for text in question.sub_questions))
    return await _ask(player, question, answer, database)


def with_gold(subs: Sequence[StoredSub], question: Question) -> list[tuple[StoredSub, str | None]]:
    """Each sub-question of a record with its gold answer, None where none is known."""
    return list(zip(subs, [*question.sub_answers, *[None] * len(subs)], strict=False))


async def _ask(player: CellPlayer, question: Question, answer: Answer, database: Database) -> Subs:
    known: list[str] = []
    stored: list[StoredSub] = []
    usage, cost = Usage(), Cost()
    for place, text in enumerate(question.sub_questions):
        asked = with_references(text, known)
        came = await player.answer_part(question, place, asked, answer.in_view)
        stored.append(StoredSub(question=asked, outcome=came.outcome, text=came.text,
                                trace=stored_trace(came.trace, database)))
        known.append(question.sub_answers[place] if player.settings.filled == "gold" else _phrase(asked, came))
        usage += used(came)
        cost += came.cost
    return Subs(tuple(stored), usage, cost)


def _phrase(asked: str, answer: Answer) -> str:
    """What stands for the answer in later sub-questions: on one line, without citations and its full stop."""
    said = " ".join(strip_citations(answer.text).split()) if answer.outcome == "answered" else ""
    if said.endswith(".") and "." not in said.split()[-1][:-1]:
        said = said[:-1].rstrip()
    return said or fill("unanswered", question=asked)


def _read(question: Question, answer: Answer) -> list[StoredSub]:
    """The lines of the last reply that was asked for an answer. Where none came, each shares the question's outcome."""
    replies = [step for step in answer.trace if isinstance(step, GenerateStep) and step.failure is None]
    if answer.failure is not None or not replies:
        return [StoredSub(question=text, outcome=answer.outcome) for text in question.sub_questions]
    # What comes after an answer, such as a check that it passes, was not asked for the lines.
    last = [step for step in replies if step.purpose == "answer"] or replies
    read = read_sub_answers(last[-1].text, len(question.sub_questions))
    return [StoredSub(question=text, outcome="malformed" if said is None else "refused" if is_refusal(said)
                      else "answered", text=said or "")
            for text, said in zip(question.sub_questions, read, strict=True)]
