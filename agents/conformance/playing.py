"""Every play of one strategy, in one process, and a look at whatever the strategy asks for."""
from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, cast

from agents.conformance.situations import EXEMPLAR, MODELS, SITUATIONS, TELLING, Situation, answers, mark, refuses
from agents.scripted import drive
from agents.settings import Limits
from agents.types import Answer, Cost, DecisionStep
from documents.errors import RecipeFailed
from documents.types import Chunk, digest
from retrieval.foreign import Foreign
from strategies.answering import answer
from strategies.catalogue import RETRIEVAL
from strategies.settings.choosing import Strategy
from strategies.types import Evidence, Failure, Generate, Recipe, Reply, Retrieval, Search, Task, Usage

_WIDE = Limits(calls=300, searches=300, tokens=10**12, seconds=1e9)  # what reaches them does not end
_LIMITS = (Limits(calls=1), Limits(calls=2), Limits(searches=0), Limits(searches=1), Limits(tokens=150))


@dataclass(slots=True)
class Examined:
    """What came of all plays.

    Attributes:
        asked: by play, each action and the end, in words and as a hash.
        calls, searches: the most of any play.
    """

    problems: list[tuple[str, str]] = field(default_factory=list)  # promises that were broken, each with where
    asked: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    calls: int = 0
    searches: int = 0
    reached: list[str] = field(default_factory=list)  # promises that plays came far enough to show kept


def examine(strategy: Strategy, begins: Callable[[], object], again: bool) -> Examined:
    """Play a strategy in every situation.

    Args:
        begins: is called before each play.
        again: whether to play it all a second time, the last first, and compare.
    """
    found = Examined()
    plays = [_Play(strategy, situation, model) for situation in SITUATIONS
             for model in islice(MODELS, situation.models)]
    plays.sort(key=lambda play: MODELS[play.model] not in (answers, refuses))
    for play in plays:
        begins()
        outcome = play.run().outcome
        found.asked[play.name] = play.asked
        found.calls, found.searches = max(found.calls, play.calls), max(found.searches, play.searches)
        found.problems += [(promise, f"{problem} ({play.name})") for promise, problem in play.problems]
        found.reached += ["answers", "shown", "gold"] if play.ended_well else []
        if outcome == "budget":
            return found  # and so would many another, each of them for long
    for play in reversed(plays) if again else ():
        begins()
        other = replace(play)
        other.run()
        if apart := difference(play.asked, other.asked):
            found.problems.append(("stateless", f"played again after other questions, {apart} ({play.name})"))
            break
    else:
        found.reached.append("stateless")
    if _keeps_limits(found, strategy, begins):
        found.reached.append("limits")
    return found


def difference(asked: Sequence[Sequence[str]], other: Sequence[Sequence[str]]) -> str:
    """Say where two plays first differ; empty where they do not."""
    for place, (one, two) in enumerate(zip(asked, other, strict=False), 1):
        if list(one) != list(two):
            return f"step {place} differs: {one[0]}, " + (f"then {two[0]}" if one[0] != two[0] else
                                                         "with another content")
    return "" if len(asked) == len(other) else f"one has {len(asked)} steps, the other {len(other)}"


def _keeps_limits(found: Examined, strategy: Strategy, begins: Callable[[], object]) -> bool:
    for limits in _LIMITS:
        begins()
        play = _Play(strategy, SITUATIONS[0], "a model that wants ever more", limits)
        try:
            with Foreign(RecipeFailed):
                play.run()
        except RecipeFailed as error:
            goes_on = isinstance(error.__cause__, RuntimeError)
            if goes_on or not found.problems:  # else told already, as what breaks the protocol
                what = "goes on after it was" if goes_on else "raises where it is"
                found.problems.append(("limits", f"{what} stopped: {error}"))
            return False
        if play.problems:
            return False  # told already too
        if play.calls > limits.calls or play.searches > limits.searches:
            found.problems.append(("limits", f"made {play.calls} calls and {play.searches} searches of {limits.calls} "
                                             f"and {limits.searches}"))
    return True


@dataclass
class _Play:
    """One play of a strategy; `asked` and `problems` are as `Examined` has them."""

    strategy: Strategy
    situation: Situation
    model: str
    limits: Limits = _WIDE
    asked: list[tuple[str, str]] = field(init=False, default_factory=list)
    problems: list[tuple[str, str]] = field(init=False, default_factory=list)
    calls: int = field(init=False, default=0)
    searches: int = field(init=False, default=0)
    ended_well: bool = field(init=False, default=False)
    _numbers: dict[int, int] = field(init=False, default_factory=dict)
    _fields: bool = field(init=False, default=False)

    @property
    def name(self) -> str:
        return f"{self.situation.name}, with {self.model}"

    def run(self) -> Answer:
        """Play it to its end, and look at what it asks for and comes to."""
        gold = f"the right answer, {TELLING}, which a recipe that looks around finds here"
        function = self.strategy.function if self.limits is _WIDE else _bare(self.strategy.function)
        if self.strategy.family == "retrieval":
            recipe, task = _searches, self.situation.task(function)
        else:
            retrieval = RETRIEVAL["none" if self.situation.rules == "closed-book" else "once"]
            recipe, task = function, self.situation.task(cast(Retrieval, retrieval))
        ended = drive(recipe, task, lambda calls: [self._replied(task, call) for call in calls],
                      lambda searches: [self._found(search) for search in searches], self.limits)
        self._look_at_end(ended)
        self.ended_well = not self.problems
        if self.ended_well and self.limits is _WIDE:
            self._judge(ended.outcome)
        del gold
        return ended

    def _found(self, search: Search) -> list[Chunk]:
        self._keep(f"search for {search.query!r:.60}", [search.query, search.k])
        if not search.query.strip():
            self.problems.append(("protocol", "searches for an empty text"))
        elif TELLING in search.query:
            self.problems.append(("gold", f"the query {search.query!r:.60} names what tells where the gold is"))
        chunks = self.situation.found(search, self.searches)
        for chunk in chunks:
            self._numbers.setdefault(int(chunk.id.rpartition("-")[2]), len(self._numbers) + 1)
        self.searches += 1
        return chunks

    def _replied(self, task: Task, call: Generate) -> Reply | Failure:
        named, answering = f"call {call.purpose!r:.40}", call.purpose == "answer"
        text = "\n".join(message.content for message in call.messages)
        self._keep(named, repr(call))
        if TELLING in text or TELLING in json.dumps([call.tools, call.schema]):
            self.problems.append(("gold", f"{named} shows an id, or what else tells where the gold is"))
        undeclared = [number for found, number in self._numbers.items() if number not in call.shown
                      and mark(found) in text and (answering or f"[{number}]" in text)]
        if undeclared:
            self.problems.append(("shown", f"{named} shows document [{undeclared[0]}] and does not name it in `shown`"))
        unknown = [number for number in call.shown if number not in self._numbers.values()]
        if unknown:
            self.problems.append(("shown", f"{named} names [{unknown[0]}] in `shown`, which no search found"))
        if answering and _in_another_form(call, text):
            self.problems.append(("answers", f"{named} shows worked examples in another form than it asks for"))
        self._fields |= call.schema is not None and "answer" in call.schema.get("properties", {})
        reply = MODELS[self.model](task, call, self.calls)
        self.calls += 1
        return replace(reply, usage=Usage(100, 10, calls=1)) if isinstance(reply, Reply) else reply

    def _look_at_end(self, ended: Answer) -> None:
        if ended.failure is not None and ended.failure.kind == "strategy":
            self.problems.append(("protocol", ended.failure.message))
        for step in ended.trace:
            if isinstance(step, DecisionStep):
                if TELLING in step.what + step.why:
                    self.problems.append(("gold", f"the decision {step.what!r:.40} names what tells where the gold is"))
                self._keep(f"decision {step.what!r:.40}", [step.what, step.why])
        self._keep(f"its end, {ended.outcome}", repr(replace(ended, trace=(), cost=Cost())))

    def _judge(self, outcome: str) -> None:
        model, rules, wrong = MODELS[self.model], self.situation.rules, ""
        if outcome == "budget":
            self.problems.append(("ends", f"does not end within {_WIDE.calls} calls and {_WIDE.searches} searches"))
        elif outcome == "searched":
            return
        elif model is answers:
            if outcome != "answered" and (outcome, rules) != ("refused", "grounded"):
                wrong = f"a good reply ends as {outcome}"
            elif self.situation.changes.get("answer_format") == "json" and self.calls and not self._fields:
                wrong = "no call asks for the fields of an answer"
        elif model is refuses and rules == "grounded" and outcome != "refused":
            wrong = f"a refusal ends as {outcome}"
        elif "server without tools" in self.model and outcome == "error":
            wrong = "ends as an error where the server has no tools"
        self.problems += [("answers", wrong)] if wrong else []

    def _keep(self, what: str, content: Any) -> None:
        self.asked.append((what, digest(json.dumps(content))))


def _searches(task: Task) -> Recipe:
    evidence: Evidence = yield from task.gather(task.question)
    more: Evidence = yield from task.gather("Who built the bridge?")
    both = {passage.number: passage for passage in (*evidence, *more)}
    return (yield from answer(task, "direct", tuple(both.values()), thinks=False))


def _bare(function: Any) -> Any:
    """A strategy without what keeps a run from what it raises."""
    if isinstance(function, partial):
        return partial(inspect.unwrap(function.func), **function.keywords)
    return inspect.unwrap(function)


def _in_another_form(call: Generate, text: str) -> bool:
    """Whether worked examples stand in tags where the answer is asked for as fields, or the other way round."""
    tagged, fields = f"<Answer>{EXEMPLAR.answer}</Answer>", f'"answer": "{EXEMPLAR.answer}"'
    tags = call.schema is None and "<Answer>" in text.replace(tagged, "")
    return EXEMPLAR.question in text and (tagged in text, fields in text) != (tags, call.schema is not None)
