"""The loop of an agent: the model's turn, the calls of tools in it, their results, and the next turn.

A protocol, `Native` or `Text`, says how calls and results are written. A `TurnTools` says what the calls do.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ragbed.experiments.guests.agent.protocols import Native, ReadReply, Result, Talk, Text, Turn
from ragbed.experiments.guests.agent.reading import FINISH, MAX_CALLS, Call
from ragbed.strategies.answering import ask_for_answer_in, form_instruction
from ragbed.strategies.parts.conversation import assistant_message
from ragbed.strategies.prompting import fill, template
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Asked, Decision, Evidence, Failure, Generate, Reply, Task

TurnProtocol = Native | Text


class TurnTools(Protocol):
    """What calls do. `over` says why the loop must end; it is empty while it may continue."""

    over: str

    def perform(self, calls: Sequence[Call], shown: Evidence) -> Generator[Asked, Any, list[Result]]:
        """Perform the valid calls of a turn together. `shown` is the evidence that the conversation shows."""
        ...

    def unread(self, call: Call) -> str:
        """Return what to tell the model about a call that is not valid."""
        ...

    def progress(self, turn: int, turns: int) -> Decision:
        """Return a decision for the trace about the last calls, made in turn number `turn` from 0."""
        ...


@dataclass(frozen=True, slots=True)
class Loop:
    """Plays the turns of one question.

    Attributes:
        purpose: purpose of the calls for a turn, for the trace.
        room: shortens a conversation that is too long, before each turn. Returns None if that is not possible.
        plan: let the model write a plan before the first turn.
    """

    task: Task
    purpose: str
    tools: TurnTools
    turns: int
    room: Callable[[Loop, TurnProtocol, Talk], Generator[Asked, Any, Talk | None]] | None = None
    plan: bool = False

    def play(self, attempts: Sequence[tuple[TurnProtocol, Talk]]) -> Generator[Asked, Any, tuple[TurnProtocol, Talk]]:
        """Play the turns with the first protocol that works, and return it with the conversation. The last one is
        taken as working."""
        for protocol, talk in attempts[:-1]:
            if (ended := (yield from self._run(protocol, talk, True))) is not None:
                return protocol, ended
        protocol, talk = attempts[-1]
        return protocol, (yield from self._run(protocol, talk, False)) or talk

    def ask(self, protocol: TurnProtocol, talk: Talk, purpose: str, last: str = "") -> Generate:
        """Build the call for the next turn, or a call without tools that ends with the prompt `last`."""
        return Generate(protocol.messages(talk, last), purpose, tuple(one.number for one in talk.shown),
                        tools=protocol.tools, tool_choice="none" if last and protocol.tools else "auto",
                        stop=() if last else protocol.stop)

    def ask_for_answer(self, protocol: TurnProtocol, talk: Talk, prompt: str, more: str = "") -> Generate:
        """Build the call for the answer. Its prompt is `prompt`, the form of the answer, and `more`. The tools stay in
        view although none may be called: servers put them first, so without them the cached beginning would be lost."""
        last = prompt + form_instruction(self.task) + more
        call = ask_for_answer_in(self.task, protocol.messages(talk, last), talk.shown)
        return replace(call, tools=protocol.tools, tool_choice="none" if protocol.tools else "auto")

    def _run(self, protocol: TurnProtocol, talk: Talk, auto: bool) -> Generator[Asked, Any, Talk | None]:
        if self.plan:
            first = template("agent_plan")
            made = yield from _reply(self.ask(protocol, talk, "plan", first), auto)
            if made is None:
                return None
            plan = Turn(assistant_message(strip_thinking(made.text)), prompt=template("agent_planned"))
            talk = Talk(protocol.messages(talk, first), turns=(plan,))
        for turn in range(self.turns):
            if self.room:
                if (shorter := (yield from self.room(self, protocol, talk))) is None:
                    yield Decision("stops", "the context is full")
                    return replace(talk, ended="context")
                talk = shorter
            made = yield from _reply(self.ask(protocol, talk, self.purpose), auto and not turn)
            if made is None:
                return None
            read = protocol.read(made, turn)
            if auto and not turn and not read.calls:
                yield Decision("goes on in text", "the first reply calls no tool")
                return None
            talk = replace(talk, turns=(*talk.turns, Turn(read.kept, (yield from self._perform(read, talk.shown)))))
            if read.why:
                yield Decision("stops", read.why)
                return replace(talk, ended="answer")
            yield self.tools.progress(turn, self.turns)
            if self.tools.over:
                return replace(talk, ended="idle")
        return replace(talk, ended="turns")

    def _perform(self, read: ReadReply, shown: Evidence) -> Generator[Asked, Any, tuple[Result, ...]]:
        """Perform the valid calls together, and return the result of every call in order."""
        valid = [call for call in read.calls if call.arguments is not None and call.tool != FINISH]
        results = iter((yield from self.tools.perform(valid, shown)) if valid else ())
        told: list[Result] = []
        for place, call in enumerate(read.calls, 1):
            one = next(results) if call.arguments is not None and call.tool != FINISH else Result(
                template("tool_finished") if call.tool == FINISH else self.tools.unread(call))
            if read.left_out and place == len(read.calls):
                many = fill("tool_too_many", count=str(read.left_out), most=str(MAX_CALLS))
                one = replace(one, text=f"{one.text}\n\n{many}")
            told.append(replace(one, call_id=call.id))
        return tuple(told)


def _reply(call: Generate, auto: bool) -> Generator[Asked, Any, Reply | None]:
    """Make a call, with `auto` once more after a failure. Return None if the server refuses tools."""
    reply: Reply | Failure = yield replace(call, see_failure=auto)
    if isinstance(reply, Failure):
        if refuses_tools(reply):
            yield Decision("goes on in text", "the server takes no tools")
            return None
        reply = yield call  # a second failure ends the question
    assert isinstance(reply, Reply)
    return reply


_REFUSED = frozenset({"http_400", "http_404", "http_405", "http_422", "http_500", "http_501"})
_OF_TOOLS = re.compile(r"tool|function", re.IGNORECASE)


def refuses_tools(failure: Failure) -> bool:
    """Return whether a call failed because the server or its model reports that it does not support tools."""
    return failure.kind in _REFUSED and bool(_OF_TOOLS.search(failure.message))
