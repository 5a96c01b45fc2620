"""What those who watch a question are told of it, as plain JSON.

`searching`  a search begins: its `query`
`search`     it ended: `found` are evidence numbers, or its `failure`
`asking`     a call begins: its number `call` in the question, its `purpose`, and the evidence that it has `shown`
`token`      a piece of its reply, of which all pieces together are the text
`reasoning`  a piece of what the model thinks, where the server sends that
`retry`      it is sent again, and the pieces so far are void: `why`
`reply`      it ended: the whole `text`, or its `failure`
`decision`   the strategy made up its mind: `what` and `why`
`saved`      the question could go on from here in another process: the `steps` so far
`answer`     the end

Calls that are made together are told of in turns, each piece with the `call` that it is of.
"""
from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from agents.playback import Playback
from agents.types import CallOutcome, DecisionStep, SearchStep
from strategies.types import Failure, Generate, Reply

if TYPE_CHECKING:
    from langgraph.types import StreamWriter

Event = dict[str, Any]


class Teller:
    """Tells of one call as it goes on.

    Args:
        number: of the call in its question, from 1.
    """

    def __init__(self, writer: StreamWriter, number: int, call: Generate) -> None:
        self.call = call
        self._writer = writer
        self._of = {"call": number, "purpose": call.purpose}
        self._told: set[str] = set()
        writer({"event": "asking", **self._of, "shown": list(call.shown)})

    def __call__(self, kind: str, text: str) -> None:
        if kind == "retry":
            self._told.clear()
        self._told.add(kind)
        self._writer({"event": kind, **self._of, "why" if kind == "retry" else "text": text})

    async def outcome(self, asked: Awaitable[CallOutcome]) -> CallOutcome:
        """Return the call's outcome and tell of it; a reply that came in one is told in one piece before."""
        one = await asked
        reply = one.outcome if isinstance(one.outcome, Reply) else Reply("")
        for kind, text in (("reasoning", reply.reasoning), ("token", reply.text)):
            if text and kind not in self._told:
                self(kind, text)
        self._writer({"event": "reply", **self._of, "shown": list(self.call.shown), "text": reply.text,
                      "completion_tokens": reply.usage.completion_tokens,
                      "failure": one.outcome.message if isinstance(one.outcome, Failure) else None})
        return one


def begin_searches(play: Playback, writer: StreamWriter) -> None:
    """Tell that the pending searches begin."""
    for search in play.searches() if play.watched else ():
        writer({"event": "searching", "query": search.query})


def tell_steps(play: Playback, writer: StreamWriter) -> None:
    """Tell of the searches that ended and the decisions that were made since those who watch were told last."""
    for step in play.trace[play.told:] if play.watched else ():
        if isinstance(step, DecisionStep):
            writer({"event": "decision", "what": step.what, "why": step.why})
        elif isinstance(step, SearchStep):
            writer({"event": "search", "query": step.query, "found": list(step.found),
                    "failure": step.failure.message if step.failure else None})
    play.told = len(play.trace)
