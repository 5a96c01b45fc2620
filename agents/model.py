"""A model as a question sees it: the journal first, then the client."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from agents.asked import CallOutcome, failure_of
from agents.journal import Journal, call_key
from agents.streamed import Tell
from documents.errors import CallError
from strategies.types import Generate


class Client(Protocol):
    """What reaches the model over the wire."""

    @property
    def identity(self) -> str: ...

    def parameters(self, action: Generate, max_tokens: int, repeat: int) -> dict[str, Any]: ...

    async def complete(self, action: Generate, *, max_tokens: int, repeat: int, deadline: float,
                       tell: Tell | None) -> Any: ...


class Model:
    """Asks the client for what the journal does not hold.

    Args:
        max_tokens: limit on a reply where the action names none.
        repeat: which repeat of the cell this is; part of every key.
    """

    def __init__(self, client: Client, journal: Journal, max_tokens: int, repeat: int = 0) -> None:
        self.client = client
        self.journal = journal
        self.max_tokens = max_tokens
        self.repeat = repeat

    def key(self, action: Generate) -> str:
        """The journal key of a call."""
        return call_key(self.client.identity, action.messages, self._parameters(action), self.repeat, action.sample)

    async def ask(self, action: Generate, deadline: float, tell: Tell | None = None) -> CallOutcome:
        """The outcome of a call, durable in the journal before it is handed on.

        Args:
            deadline: of the question, in `time.monotonic` seconds.
            tell: told the pieces of a reply that comes over the wire, as they come.
        """
        parameters = self._parameters(action)
        key = call_key(self.client.identity, action.messages, parameters, self.repeat, action.sample)
        async with self.journal.turn(key):
            if (known := self.journal.find(key)) is not None:
                return CallOutcome(key, known, replayed=True)
            asked = await self._made(key, action, deadline, tell)
            await self.journal.keep(key, action.messages, parameters, asked.outcome)
        return asked

    async def _made(self, key: str, action: Generate, deadline: float, tell: Tell | None) -> CallOutcome:
        """The outcome of a call that the journal does not hold."""
        try:
            if self.journal.mode == "replay":
                raise self.journal.miss(key, action.messages, self._parameters(action))
            done = await self.client.complete(action, max_tokens=self._limit(action), repeat=self.repeat,
                                              deadline=deadline, tell=tell)
        except CallError as error:
            return CallOutcome(key, failure_of(error), error.attempts)
        return CallOutcome(key, done.reply, done.attempts)

    def _limit(self, action: Generate) -> int:
        return action.max_tokens or self.max_tokens

    def _parameters(self, action: Generate) -> Mapping[str, Any]:
        return self.client.parameters(action, self._limit(action), self.repeat)
