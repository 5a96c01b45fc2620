"""Keep a conversation within a number of tokens: remove old results, summarise, or stop."""
from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from ragbed.experiments.guests.agent.agent_messages import Loop, TurnProtocol
from ragbed.experiments.guests.agent.protocols import Result, Talk, Turn
from ragbed.strategies.parts.conversation import assistant_message
from ragbed.strategies.prompting import template
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Asked, Decision, Reply

_BYTES = 4  # bytes of UTF-8 per token: about right for English, and for scripts with three bytes per character
_MAX_NOTES = 6_000  # characters of a summary that are kept


class ContextLimit(BaseModel):
    """Limits the conversation of an agent.

    Attributes:
        tokens: estimated tokens that the prompt of a turn may have, at four bytes per token.
        when_full: `clear_results` removes the oldest results until half of the tokens are left, but never those of the
            last turn; `summarise` asks the model for notes, which replace all turns; `stop` asks for the answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: Annotated[int, Field(ge=500)]
    when_full: Literal["clear_results", "summarise", "stop"] = "clear_results"

    def make_room(self, loop: Loop, protocol: TurnProtocol, talk: Talk) -> Generator[Asked, Any, Talk | None]:
        """Return the conversation, shortened if it is full; None if it cannot be shortened enough."""
        if _count(protocol, talk) <= self.tokens:
            return talk
        if self.when_full == "clear_results":
            for place in range(len(talk.turns) - 1):
                if _count(protocol, talk) <= self.tokens // 2:
                    break
                talk = replace(talk, turns=(*talk.turns[:place], _clear(talk.turns[place]), *talk.turns[place + 1:]))
            yield Decision("makes room", "old results are removed")
        elif self.when_full == "summarise" and len(talk.turns) > 1:
            reply: Reply = yield loop.ask(protocol, talk, "summarise", template("agent_summarise"))
            notes = assistant_message(strip_thinking(reply.text), _MAX_NOTES)
            yield Decision("makes room", f"notes replace {len(talk.turns)} turns")
            talk = replace(talk, turns=(Turn(notes, prompt=template("agent_resume")),))
        return talk if _count(protocol, talk) <= self.tokens else None


_ABOUT = {"description": "limits the prompt of a turn to `tokens`, estimated at four bytes each; `when_full` is "
                         "`clear_results` (the default), `summarise` or `stop`"}
Context = Annotated[ContextLimit | None, WithJsonSchema({  # without references: it becomes part of a larger schema
    "anyOf": [{**ContextLimit.model_json_schema(), **_ABOUT}, {"type": "null"}], **_ABOUT})]


def _count(protocol: TurnProtocol, talk: Talk) -> int:
    """Estimate the tokens of a prompt."""
    texts = [json.dumps(protocol.tools), *(
        message.content + json.dumps(message.tool_calls) for message in protocol.messages(talk))]
    return sum(len(text.encode("utf-8", "replace")) for text in texts) // _BYTES


def _clear(turn: Turn) -> Turn:
    """Replace the results of a turn that are longer than the note about their removal."""
    note = template("agent_cleared")
    return replace(turn, results=tuple(Result(note, (), one.call_id) if len(one.text) > len(note) else one
                                       for one in turn.results))
