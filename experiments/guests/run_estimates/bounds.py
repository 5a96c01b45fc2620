"""Compute bounds on the calls and tokens of a question by running its strategy on scripted replies.

The lower bound comes from the shortest replies. The upper bound comes from a model that is never satisfied: each reply
uses its token limit and asks for more. Such replies may make a strategy give up early. So further plays let the model
be satisfied in one more round, or with one more kind of call, as long as this leads to more calls.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ragbed.agents.model_settings import Context
from ragbed.agents.replies import Pricer
from ragbed.agents.scripted import (
    answer_reply,
    drive,
    example_value,
    numbered_questions,
    tool_call_reply,
    unsatisfied_reply,
)
from ragbed.agents.search import request_json
from ragbed.agents.tools import ToolOutput
from ragbed.agents.types import Answer
from ragbed.documents.errors import CallTooLong
from ragbed.documents.types import Chunk
from ragbed.experiments.question import Question
from ragbed.experiments.running.plan import Tasks
from ragbed.strategies.token_estimates import estimate_prompt_tokens
from ragbed.strategies.types import Evidence, Failure, Generate, Reply, Search, Task, ToolCall, ToolSpec, Usage


@dataclass(frozen=True, slots=True)
class Use:
    """Numbers of calls, of their prompt tokens, and of the tokens of replies with maximum length."""

    calls: float = 0
    prompt: float = 0
    completion: float = 0

    def __add__(self, other: Use) -> Use:
        return Use(self.calls + other.calls, self.prompt + other.prompt, self.completion + other.completion)

    def times(self, factor: float) -> Use:
        """Return the use for `factor` times as many questions."""
        return Use(self.calls * factor, self.prompt * factor, self.completion * factor)

    def priced(self, price: Pricer) -> float | None:
        """Return the price in US dollars, assuming calls of equal size; None if it is unknown."""
        if not self.calls:
            return 0.0
        one = price(round(self.prompt / self.calls), round(self.completion / self.calls), 0)
        return None if one is None else one * self.calls


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most calls and tokens that questions use.

    Attributes:
        too_long: the number of questions with a prompt that cannot fit the context.
        probes: number of follow-up calls, which the upper bound includes.
        ended: the number of questions that can reach one of their limits.
        limits: descriptions of the limits that these questions can reach.
    """

    least: Use = Use()
    most: Use = Use()
    too_long: float = 0
    probes: float = 0
    ended: float = 0
    limits: tuple[str, ...] = ()

    def __add__(self, other: Bounds) -> Bounds:
        return Bounds(self.least + other.least, self.most + other.most, self.too_long + other.too_long,
                      self.probes + other.probes, self.ended + other.ended,
                      tuple(dict.fromkeys([*self.limits, *other.limits])))

    def times(self, factor: float) -> Bounds:
        """Return the bounds for `factor` times as many questions."""
        return Bounds(self.least.times(factor), self.most.times(factor), self.too_long * factor,
                      self.probes * factor, self.ended * factor, self.limits)


Find = Callable[[int | None, int], Sequence[Chunk]]


def estimate_bounds(tasks: Tasks, question: Question, search: Find, context: Context | None,
                    tools: tuple[ToolSpec, ...] = ()) -> Bounds:
    """Return the bounds of one question, including its sub-questions. `search` returns the chunks of a search or of a
    tool's call, given `k` and the query's number within the question, from 0."""
    played = _Plays(tasks, replace(tasks.whole(question), tools=tools), search, context).all()
    bounds = _bounds([play.use for play in played])
    ended = dict.fromkeys(play.answer.failure.message for play in played
                          if play.answer.outcome == "budget" and play.answer.failure)
    fitting = sorted((play.answer.in_view for play in played if play.answer.outcome != "too_long"), key=len)
    follow_up = tasks.plan.follow_up
    if follow_up is not None and fitting and tasks.whole(question).cites:
        again = bounds.most.times(follow_up.repeats(len(fitting[-1])))
        bounds = replace(bounds, most=bounds.most + again, probes=again.calls)
    if tasks.sub_answers(question) == "asked" and fitting:
        for place, text in enumerate(question.sub_questions):
            bounds += _part_bounds(tasks, question, place, text, (fitting[0], fitting[-1]), context, tools)
    return replace(bounds, too_long=len(fitting) < len(played), ended=bool(ended), limits=tuple(ended))


def _part_bounds(tasks: Tasks, question: Question, place: int, text: str, views: Sequence[Evidence],
                 context: Context | None, tools: tuple[ToolSpec, ...]) -> Bounds:
    uses = [play.use for view in dict.fromkeys(views) for play in _Plays(
        tasks, replace(tasks.part(question, place, text, view), tools=tools), lambda k, turn, shown=view: [  # type: ignore[misc]
            passage.chunk for passage in shown], context).all()]
    return _bounds(uses)


def _bounds(uses: Sequence[Use]) -> Bounds:
    figures = [[use.calls for use in uses], [use.prompt for use in uses], [use.completion for use in uses]]
    return Bounds(Use(*map(min, figures)), Use(*map(max, figures)))


@dataclass(frozen=True, slots=True)
class _Played:
    """The result of one play. `rounds` counts concurrent calls as one."""

    answer: Answer
    use: Use
    rounds: int
    calls: Sequence[Generate]
    searches: int


_Says = Callable[[Generate, int, int], Reply]  # makes a reply from the call, its token limit and its round


class _Plays:
    def __init__(self, tasks: Tasks, task: Task, search: Find, context: Context | None) -> None:
        self._recipe, self._task, self._search, self._context = tasks.reasoning, task, search, context
        self._limits = tasks.settings.limits
        self._reply = tasks.settings.calls.config(tasks.cell.model).max_tokens or self._limits.max_tokens

    def all(self) -> list[_Played]:
        """Play the task with each kind of scripted reply: short, satisfied, lists, and those that cause the most calls.
        """
        doubt = self._play_doubt()
        played = [doubt, self._play(self._be_brief, finds_more=False), self._play(lambda call, limit, turn: _satisfied(
            call, limit), finds_more=False), self._play(lambda call, limit, turn: unsatisfied_reply(
                call, limit, lists=True, tools=False)), *self._play_further(doubt)]
        if any(call.tools for call in doubt.calls):
            played.append(self._play_doubt(tools=False))
        if doubt.searches > 1:
            played.append(self._play_doubt(finds_more=False))
        return played

    def _play_further(self, best: _Played) -> Iterator[_Played]:
        """Play again with a model that is also satisfied with the calls of one more purpose, with the first round, or
        with one of the last two. Repeat as long as the strategy uses more calls."""
        content: frozenset[int | str] = frozenset()
        while best.rounds and best.answer.outcome != "budget":
            changes: list[int | str] = [best.rounds - 1]
            if best.rounds > 1:
                changes += [best.rounds - 2, 0, *(call.purpose for call in best.calls)]
            further = {one: self._play_doubt(content | {one}) for one in dict.fromkeys(changes) if one not in content}
            yield from further.values()
            change = max(further, key=lambda one: further[one].use.calls, default=None)
            if change is None or further[change].use.calls <= best.use.calls:
                return
            content |= {change}
            best = further[change]

    def _play_doubt(self, content: Collection[int | str] = (), tools: bool = True, finds_more: bool = True) -> _Played:
        def says(call: Generate, limit: int, turn: int) -> Reply:
            if turn in content or call.purpose in content:
                return _satisfied(call, limit)
            return unsatisfied_reply(call, limit, tools=tools)

        return self._play(says, finds_more)

    def _be_brief(self, call: Generate, limit: int, turn: int) -> Reply:
        if call.tools and call.tool_choice == "auto":
            return tool_call_reply([(call.tools[-1]["function"]["name"], {})])
        return answer_reply(call, "Yes [1]") if call.purpose == "answer" or call.schema else Reply("")

    def _play(self, says: _Says, finds_more: bool = True) -> _Played:
        uses: list[Use] = []
        rounds: list[Sequence[Generate]] = []
        queries: dict[str, int] = {}

        def reply(calls: Sequence[Generate]) -> list[Reply | Failure]:
            rounds.append(calls)
            return [one(call) for call in calls]

        def one(call: Generate) -> Reply | Failure:
            limit = call.max_tokens or self._reply
            try:
                if self._context is not None:
                    self._context.check(call.messages, limit)
            except CallTooLong as error:
                return Failure("too_long", str(error))
            tokens = estimate_prompt_tokens(call)
            uses.append(Use(1, tokens, limit))
            return replace(says(call, limit, len(rounds) - 1), usage=Usage(tokens, limit, calls=1))

        def find(searches: Sequence[Search]) -> list[Sequence[Chunk]]:
            for search in searches:
                queries.setdefault(search.query, len(queries) if finds_more else 0)
            return [self._search(search.k, queries[search.query]) for search in searches]

        def called(calls: Sequence[ToolCall]) -> list[ToolOutput]:
            found = find([Search(request_json(call.arguments)) for call in calls])
            return [ToolOutput(tuple(chunks)) for chunks in found]

        answer = drive(self._recipe, self._task, reply, find, self._limits, called)
        return _Played(answer, sum(uses, Use()), len(rounds), [call for calls in rounds for call in calls],
                       len(queries))


_SATISFIED = """\
Grade: 3
Sufficiency: 10
Missing: nothing
1: yes
Yes.
"""


def _satisfied(call: Generate, limit: int) -> Reply:
    """Return a reply that gives everything the best grade, with an answer that no document supports."""
    if call.purpose == "answer":
        return answer_reply(call, "Part 9876543210 [1]")
    parsed = None if call.schema is None else example_value(call.schema, "nothing", most=True, items=1)
    return Reply(_SATISFIED + numbered_questions(limit), parsed=parsed)
