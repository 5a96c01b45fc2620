"""Reuse replies of the run's earlier settings, and of other runs, so that only calls that changed are sent."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from ragbed.agents.client import Completion, ModelClient
from ragbed.agents.database import Database, row_hash
from ragbed.agents.journal import call_key
from ragbed.agents.model_settings import is_prompt_cut
from ragbed.agents.replies import OnEvent
from ragbed.agents.types import reply_from_json
from ragbed.experiments.running.budget import Metered, Spending
from ragbed.experiments.settings import RunSettings
from ragbed.guests import loaded
from ragbed.strategies.types import Generate, Message, Reply


class CallCache(Protocol):
    """Replies that runs share. A guest adds one in the slot `cache`, a function from the settings to it or None."""

    def find(self, key: str, served_by: str) -> Reply | None:
        """Return the reply to a call, given by its journal key, of what serves the model; None if there is none."""
        ...

    def keep(self, key: str, served_by: str, reply: Reply) -> None:
        """Store a reply."""
        ...

    def close(self) -> str:
        """Close the cache. Return a note on why it could not be used, if so."""
        ...


@dataclass(slots=True)
class Reuse:
    """Replies that one run can reuse.

    Attributes:
        database: the run's database, which may have calls of earlier settings.
        cache: replies that runs share, if any.
        again: whether to send every call again and store its new reply.
        has_earlier: whether the database has calls of earlier settings.
        kept, shared: number of replies taken from earlier settings, and from the cache.
    """

    database: Database
    cache: CallCache | None
    again: bool = False
    has_earlier: bool = False
    kept: int = 0
    shared: int = 0

    @classmethod
    @contextmanager
    def opened(cls, settings: RunSettings, database: Database, again: bool, note: Callable[[str], None],
               ) -> Iterator[Reuse]:
        """Open the cache that the settings name, and close it at the end, with a note if it could not be used."""
        caches = loaded("cache")
        cache: CallCache | None = caches["calls"](settings) if "calls" in caches else None
        try:
            yield cls(database, cache, again, database.has("earlier_calls"))
        finally:
            if cache is not None and (problem := cache.close()):
                note(problem)

    def find(self, key: str, served_by: str | None, messages: Sequence[Message]) -> Reply | None:
        """Return the reply to a call, given by its journal key; None if it has to be sent, as when the server cut the
        prompt."""
        if self.again:
            return None
        if self.has_earlier:
            for *row, hash in self.database.read("SELECT * FROM earlier_calls WHERE key = ? AND reply IS NOT NULL",
                                                 (key,)):
                reply = reply_from_json(json.loads(row[3])) if row_hash(*row) == hash else None
                if reply is not None and not is_prompt_cut(messages, reply.usage):
                    self.kept += 1
                    return reply
        found = self.cache.find(key, served_by) if self.cache and served_by else None
        self.shared += found is not None
        return found

    def describe(self, sent: int) -> str:
        """Describe how many calls were sent and reused; empty if none was reused."""
        parts = [f"{sent} sent", *[f"{self.kept} kept from the earlier settings"] * (self.kept > 0),
                 *[f"{self.shared} taken from the cache"] * (self.shared > 0)]
        return f"calls: {', '.join(parts)}" if self.kept or self.shared else ""


class ReusingClient(Metered):
    """A metered client that sends a call only if there is no reply from before."""

    def __init__(self, client: ModelClient, spending: Spending, reuse: Reuse) -> None:
        super().__init__(client, spending)
        self._reuse = reuse

    async def complete(self, action: Generate, *, max_tokens: int, repeat: int, deadline: float,
                       tell: OnEvent | None = None) -> Any:
        """Return the reply from before at its present price, or send the call and share its reply."""
        client, reuse = self._client, self._reuse
        key = call_key(client.identity, action.messages, self.parameters(action, max_tokens, repeat), repeat,
                       action.sample)
        if (reply := reuse.find(key, client.served_by, action.messages)) is not None:
            reply = client.reprice(reply)
            self._spending.exempt(key, reply.usage)
            return Completion(reply, 0, 0.0)
        done = await super().complete(action, max_tokens=max_tokens, repeat=repeat, deadline=deadline, tell=tell)
        shared = done.attempts and not is_prompt_cut(action.messages, done.reply.usage)
        if reuse.cache and client.served_by and shared:
            reuse.cache.keep(key, client.served_by, done.reply)
        return done
