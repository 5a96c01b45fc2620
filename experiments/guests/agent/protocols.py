"""The two ways to write calls of tools and their results: the server's tool calls, or lines of text for other models.

A conversation is append-only unless its context fills up, so serving engines compute each part once.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ragbed.experiments.guests.agent.reading import (
    FINISH,
    MAX_ARGUMENTS,
    MAX_CALLS,
    Call,
    ReadTurn,
    read_sent,
    read_written,
)
from ragbed.strategies.parts.conversation import assistant_message
from ragbed.strategies.parts.merging import concatenate
from ragbed.strategies.prompting import neutralize_turns, template
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Evidence, Message, Reply, ToolSpec

STOP = ("\nResult:", "\nObservation:", "\nDocuments:", "\n<documents>")  # what a model makes up after a call in text
STOP_OF_CALLS = (*STOP, "}\n")  # small models go on after a call to make up its result

ProtocolName = Literal["auto", "native", "text"]
Accept = Callable[[str, Mapping[str, Any]], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call as prompts show it, and the evidence whose text it contains.

    Attributes:
        informs: whether it may hold the answer, unlike an error, a handle, a list of documents, or no match.
    """

    text: str
    evidence: Evidence = ()
    call_id: str = ""
    informs: bool = False


@dataclass(frozen=True, slots=True)
class ReadReply:
    """What a protocol reads from a reply.

    Attributes:
        kept: the part that stays in the conversation.
        calls: at most `MAX_CALLS`; `left_out` is the number of further ones.
        why: why the loop ends after these calls, for the trace; empty if it continues.
    """

    kept: Message
    calls: tuple[Call, ...] = ()
    why: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of the model. `prompt` asks for the next one instead of the protocol's usual prompt."""

    reply: Message
    results: tuple[Result, ...] = ()
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation: its first messages, with the evidence that they show, and the turns after them."""

    opening: tuple[Message, ...]
    evidence: Evidence = ()
    turns: tuple[Turn, ...] = ()
    ended: str = ""  # why the loop ended: `answer`, `turns`, `idle` or `context`

    @property
    def shown(self) -> Evidence:
        return concatenate((self.evidence, *(result.evidence for turn in self.turns for result in turn.results)))


@dataclass(frozen=True, slots=True)
class Native:
    """Tool calls as chat completions define them. `accept` returns the arguments of a call as the conversation keeps
    them, or None if they are not valid."""

    specs: tuple[ToolSpec, ...]
    accept: Accept

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        nothing = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        finish = ToolSpec(FINISH, template("tool_finish"), nothing)
        return tuple({"type": "function", "function": {
            "name": one.name, "description": one.description, "parameters": one.parameters}}
            for one in (*self.specs, finish))

    @property
    def stop(self) -> tuple[str, ...]:
        return ()

    def messages(self, talk: Talk, last: str = "") -> tuple[Message, ...]:
        said = [*talk.opening]
        for turn in talk.turns:
            said += [turn.reply, *(Message("tool", (one.text,), call_id=one.call_id) for one in turn.results),
                     *([Message("user", (turn.prompt,))] if turn.prompt else [])]
        return _add_last(said, last)

    def read(self, reply: Reply, turn: int) -> ReadReply:
        """Read the tool calls of a reply. If the server found none, read calls that the model wrote as JSON in its
        text."""
        calls = [*read_sent(reply, turn)] or read_written(reply.text, self.specs, f"call_{turn}_")
        calls = [self._checked(call) for call in calls]
        made = tuple(calls[:MAX_CALLS])
        ends = any(call.tool == FINISH for call in made)
        why = "finish is called" if ends else "" if made else "the reply calls no tool"
        return ReadReply(self._kept(reply, made), made, why, len(calls) - len(made))

    def _checked(self, call: Call) -> Call:
        if call.tool == FINISH:
            return Call(call.id, FINISH, {})
        return Call(call.id, call.tool, None if call.arguments is None else self.accept(call.tool, call.arguments))

    def _kept(self, reply: Reply, calls: Sequence[Call]) -> Message:
        text = neutralize_turns(strip_thinking(reply.text)[:MAX_ARGUMENTS].strip())
        if not calls:
            return assistant_message(text)
        # Arguments are always sent as an object, since servers refuse anything else. Calls written in the text are
        # sent as calls only.
        sent = tuple({"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": neutralize_turns(
            json.dumps(call.arguments or {}, ensure_ascii=False))}} for call in calls)
        return Message("assistant", (text,) if text and reply.tool_calls else (), sent)


@dataclass(frozen=True, slots=True)
class Text:
    """Calls as lines of text, read by `reader`. `following` returns the prompt for the next turn; its argument is
    whether any result so far informs."""

    following: Callable[[bool], str]
    reader: Callable[[str], ReadTurn]
    stop: tuple[str, ...] = ()

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        return ()

    def messages(self, talk: Talk, last: str = "") -> tuple[Message, ...]:
        said, informed = [*talk.opening], bool(talk.evidence)
        for place, turn in enumerate(talk.turns, 1):
            informed = informed or bool(turn.prompt) or any(one.informs for one in turn.results)
            prompt = last if last and place == len(talk.turns) else turn.prompt or self.following(informed)
            results = "".join(f"{one.text}\n\n" for one in turn.results)
            said += [turn.reply, Message("user", (results, prompt) if results else (prompt,))]
        return tuple(said) if talk.turns else _add_last(said, last)

    def read(self, reply: Reply, turn: int) -> ReadReply:
        read = self.reader(reply.text)
        return ReadReply(assistant_message(read.kept), read.calls,
                         "" if read.calls else read.why or "the search has no words")


def _add_last(said: list[Message], last: str) -> tuple[Message, ...]:
    """Add a prompt: to the last message if the user sent it, since some servers refuse two messages of one role."""
    if last and said[-1].role == "user":
        return (*said[:-1], Message("user", (*said[-1].parts, f"\n\n{last}")))
    return (*said, Message("user", (last,))) if last else tuple(said)
