"""Playing a cell's questions against the stand-in: how many calls, and how many tokens."""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NoReturn

from agents.context import Context
from agents.outcome import CallOutcome
from agents.playback import Means, Playback
from agents.types import Answer
from documents.errors import CallTooLong, RunError
from documents.types import Chunk
from experiments.question import Question
from experiments.running.scripted import FINDING, MANNERS, Manner, prompt_tokens, reply_to
from experiments.running.tasks import Tasks
from strategies.types import Failure, Generate, Task


@dataclass(frozen=True, slots=True)
class Use:
    """Calls, and the tokens of their prompts and of replies that use their limits up."""

    calls: float = 0
    prompt: float = 0
    completion: float = 0

    def __add__(self, other: Use) -> Use:
        return Use(self.calls + other.calls, self.prompt + other.prompt, self.completion + other.completion)

    def times(self, factor: float) -> Use:
        return Use(self.calls * factor, self.prompt * factor, self.completion * factor)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most, and how many questions have a prompt that cannot fit the context.

    Attributes:
        ended: how many questions some manner of replies leads to where the limits of a question end them.
        limits: what ended them, in words.
    """

    least: Use = Use()
    most: Use = Use()
    too_long: float = 0
    ended: float = 0
    limits: tuple[str, ...] = ()

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.least + other.least, self.most + other.most, self.too_long + other.too_long,
                      self.ended + other.ended, tuple(dict.fromkeys([*self.limits, *other.limits])))

    def times(self, factor: float) -> Bounds:
        return Bounds(self.least.times(factor), self.most.times(factor), self.too_long * factor, self.ended * factor,
                      self.limits)


Find = Callable[[int | None, int], Sequence[Chunk]]


def bounds_of(tasks: Tasks, question: Question, search: Find, context: Context | None) -> Bounds:
    """The bounds of one question, its sub-questions included.

    Args:
        search: what a search for so many chunks returns, for the question's first query, its second and so on, from 0.
    """
    played = [_Play(tasks, search, context, manner).question(question) for manner in MANNERS]
    uses, ends = [use for use, _ in played], [answer for _, answer in played]
    limits = tuple(dict.fromkeys(one.failure.message for one in ends if one.outcome == "budget" and one.failure))
    return Bounds(least_of(uses), most_of(uses), any(one.outcome == "too_long" for one in ends), bool(limits), limits)


def least_of(uses: Sequence[Use]) -> Use:
    """The least of each figure."""
    return Use(min(use.calls for use in uses), min(use.prompt for use in uses), min(use.completion for use in uses))


def most_of(uses: Sequence[Use]) -> Use:
    """The most of each figure."""
    return Use(max(use.calls for use in uses), max(use.prompt for use in uses), max(use.completion for use in uses))


class _Play:
    """One question played with replies of one manner."""

    def __init__(self, tasks: Tasks, search: Find, context: Context | None, manner: Manner) -> None:
        self._tasks, self._search, self._context, self._manner = tasks, search, context, manner
        self._limits = tasks.settings.limits

    def question(self, question: Question) -> tuple[Use, Answer]:
        """What it uses, its sub-questions included, and its own end."""
        use, answer = self._played(self._tasks.whole(question), self._search)
        if self._tasks.sub_answers(question) == "asked" and answer.outcome != "too_long":
            for place, text in enumerate(question.sub_questions):
                task = self._tasks.part(question, place, text, answer.in_view)
                more, _ = self._played(task, lambda k, turn: [passage.chunk for passage in answer.in_view])
                use += more
        return use, answer

    def _played(self, task: Task, search: Find) -> tuple[Use, Answer]:
        play = Playback(task, self._tasks.reasoning,
                        Means(_unused, _unused, _unused, _unused, self._limits))
        use = Use()
        turns: dict[str, int] = {}
        purposes: set[str] = set()
        while play.node != "finish" and not play.stop_over_budget():
            if play.node == "search":
                for action in play.searches():
                    turns.setdefault(action.query, len(turns) if self._manner in FINDING else 0)
                play.take_found([search(action.k, turns[action.query]) for action in play.searches()])
            else:
                asked = [self._asked(call, task.question, purposes) for call in play.calls()]
                use = sum((one for _, one in asked), use)
                purposes |= {call.purpose for call in play.calls()}
                play.take_asked([one for one, _ in asked])
        return use, play.answer()

    def _asked(self, call: Generate, question: str, before: Collection[str]) -> tuple[CallOutcome, Use]:
        limit = call.max_tokens or self._limits.max_tokens
        try:
            if self._context is not None:
                self._context.check(call.messages, limit)
        except CallTooLong as error:
            return CallOutcome("", Failure("too_long", str(error))), Use()
        reply = reply_to(call, question, self._manner, limit, before)
        return CallOutcome("", reply), Use(1, prompt_tokens(call), limit)


def _unused(*given: object) -> NoReturn:
    raise RunError("a plan performs nothing")
