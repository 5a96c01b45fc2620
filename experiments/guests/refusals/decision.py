"""Ask a model whether a reply refuses if the rules cannot decide."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ragbed.agents.journal import Exchange, ExchangeResult, Model, complete_with_repair
from ragbed.agents.types import Answer
from ragbed.experiments.judges.judge import strip_emphasis
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.strategies.prompting import fill, fill_untrusted
from ragbed.strategies.reading import REWORDED, is_refusal, read_answer, read_refusal
from ragbed.strategies.types import Failure, Generate, Message

DECIDED = "refusal_by_model"  # prefix of the note; the decision or the error follows


class RefusalModel(BaseModel):
    """The model that decides whether a reply refuses if the rules cannot, such as `{model: M}`.

    Attributes:
        model: the model, as for `--model`.
        max_tokens: largest number of tokens in a reply. Raise it for a model that reasons first.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    max_tokens: int = Field(default=64, gt=0)

    def decide(self, question: str, text: str) -> Exchange[str]:
        """Ask for `refusal` or `answer`, again if the reply cannot be parsed. Return it, or the error."""
        asked = [Message("user", (fill_untrusted("refusal", question=question, reply=text),))]
        for purpose in ("refusal", "refusal_repair"):
            reply = yield Generate(tuple(asked), purpose, max_tokens=self.max_tokens, see_failure=True)
            if isinstance(reply, Failure):
                return f"call failed: {reply.kind}"
            said = strip_emphasis(read_answer(reply.text)[0]).strip("\"'").lower()
            if said in ("refusal", "answer") and reply.finish_reason != "length":
                return said
            asked += [Message("assistant", (reply.text or "(empty)",)), Message("user", (fill("refusal_repair"),))]
        return "unreadable twice"


def settle_words(answer: Answer, question: Question) -> Answer:
    """Turn a refusal into an answer if a gold answer is itself worded like a refusal, such as `not specified`."""
    if answer.outcome != "refused" or REWORDED not in answer.notes or not any(map(is_refusal, question.answers)):
        return answer
    notes = tuple(note for note in answer.notes if note != REWORDED)
    return replace(answer, outcome="answered", refused=False, notes=notes)


async def settle_refusal(answer: Answer, question: Question, settings: Any, model: Model | None,
                         deadline: Callable[[], float]) -> ExchangeResult[Answer]:
    """Return the answer with its final outcome. If the rules cannot decide, the model does. If its decision cannot be
    parsed, the reply counts as an answer. Without `model`, only the rules decide."""
    answer = settle_words(answer, question)
    if model is None or answer.outcome != "answered" or read_refusal(answer.text) != "open":
        return ExchangeResult(answer)
    exchange = settings.refusals.decide(question.in_context, answer.text)
    found = await complete_with_repair(model, exchange, deadline)
    notes = (*answer.notes, f"{DECIDED}:{found.end}", *[REWORDED] * (found.end == "refusal"))
    if found.end == "refusal":
        answer = replace(answer, outcome="refused", refused=True)
    return ExchangeResult(replace(answer, notes=notes), found.usage, found.cost)


def note_refusal(settings: Any, results: Iterable[Result]) -> list[str]:
    """Note how many replies the rules left to a model, and what it decided."""
    found = Counter(note.partition(":")[2] for one in results for note in one.notes if note.startswith(f"{DECIDED}:"))
    unread = found.total() - found["refusal"] - found["answer"]
    return [f"{settings.refusals.model} read {found.total():,} replies that may be refusals. It found "
            f"{found['refusal']:,} refusals and {found['answer']:,} answers; {unread:,} without a readable decision "
            "count as answers."]
