"""Store model calls by content in a journal, so that a run can be continued, or replayed without a model.

A key depends on the model's identity, the messages, every parameter, the repeat and the sample, but not on host or
path. Failures are stored too. A replay returns them, but a run that calls the model tries again."""
from __future__ import annotations

import asyncio
import hashlib
import json
import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, takewhile
from typing import Any, Generic, Literal, Protocol, TypeVar
from weakref import WeakValueDictionary

from ragbed.agents.database import Database, row_hash
from ragbed.agents.model_settings import PROMPT_CUT, is_prompt_cut
from ragbed.agents.replies import OnEvent
from ragbed.agents.types import CallOutcome, Cost, failure_from_error, outcome_to_json, reply_from_json
from ragbed.documents.errors import CallError, ReplayMiss, RunError
from ragbed.strategies.types import Failure, Generate, Message, Reply, Usage

End = TypeVar("End")
Mode = Literal["live", "record", "replay"]
SCHEMA = ("CREATE TABLE IF NOT EXISTS calls (key TEXT PRIMARY KEY, messages TEXT NOT NULL, parameters TEXT NOT NULL,"
          " reply TEXT, failure TEXT, hash TEXT NOT NULL)",)
_KEEP = "INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?)"
_MAX_SEARCHED = 50_000_000  # maximum characters of recorded prompts to compare when searching for the nearest one


def store_call(database: Database, *row: str | None) -> None:
    """Store a call: key, messages, parameters, and reply or failure."""
    database.put(_KEEP, (*row, row_hash(*row)))


def refused_parameters(database: Database) -> list[list[str]]:
    """Return served models, each with parameters that its server refused in a stored call; see `Reply.unsent`."""
    found = database.read("SELECT DISTINCT json_extract(reply, '$.unsent') FROM calls WHERE instr(reply, '\"unsent\"')")
    return [json.loads(unsent) for unsent, in found if unsent]


def call_key(identity: str, messages: Sequence[Message], parameters: Mapping[str, Any], repeat: int,
             sample: int) -> str:
    """Return the SHA-256 of everything that determines the reply."""
    content = [identity, [[message.role, message.content, *_tool_fields(message)] for message in messages], parameters,
               repeat, sample]
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _tool_fields(message: Message) -> list[Any]:
    return [list(message.tool_calls), message.call_id] if message.tool_calls or message.call_id else []


def _comparable(content: str, of_tools: list[Any]) -> str:
    return content + json.dumps(of_tools, ensure_ascii=False) if of_tools else content


class Journal:
    """Reads and stores calls in a database's table `calls`. Without a database, nothing is stored.

    Args:
        mode: `live` only writes. `record` reads stored outcomes and writes new ones. `replay` only reads.
    """

    def __init__(self, database: Database | None, mode: Mode = "record") -> None:
        self.database, self.mode = database, mode
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._failed: dict[str, Failure] = {}

    def turn(self, key: str) -> AbstractAsyncContextManager[None]:
        """Lock a call while it is made, so that an equal call of another cell waits for its outcome. Otherwise the
        journal would store only the later of two outcomes, and a replay would differ from the run."""
        if self.database is None or self.mode == "live":
            return nullcontext()
        return self._turns.setdefault(key, asyncio.Lock())

    def find(self, key: str) -> Reply | Failure | None:
        """Return the stored outcome of a call. Failures of earlier processes count only in mode `replay`."""
        if self.database is None or self.mode == "live":
            return None
        rows = self.database.read("SELECT * FROM calls WHERE key = ?", (key,))
        if not rows:
            return None
        *row, hash = rows[0]
        self.database.check(row_hash(*row) == hash, f"call {key[:12]}")
        if self.mode == "replay":
            self.database.used.add(key)
        *_, reply, failure = row
        if reply is not None:
            return reply_from_json(json.loads(reply))
        return Failure.from_json(json.loads(failure)) if self.mode == "replay" else self._failed.get(key)

    async def keep(self, key: str, messages: Sequence[Message], parameters: Mapping[str, Any],
                   outcome: Reply | Failure) -> None:
        """Store the outcome of a call; it is durable on return. A replay stores nothing."""
        if self.database is None or self.mode == "replay":
            return
        if isinstance(outcome, Failure):
            self._failed[key] = outcome
        reply, failure = (json.dumps(outcome_to_json(outcome)), None) if isinstance(outcome, Reply) else \
            (None, json.dumps(outcome_to_json(outcome)))
        shown = json.dumps([[message.role, [self.database.put_text(part) for part in message.parts],
                             *_tool_fields(message)] for message in messages])
        store_call(self.database, key, shown, json.dumps(parameters, sort_keys=True), reply, failure)
        await self.database.durable()

    def miss(self, key: str, messages: Sequence[Message], parameters: Mapping[str, Any]) -> ReplayMiss:
        """Return the error for a call that a replay does not find. Its message describes the nearest stored call."""
        wanted = "\n".join(_comparable(message.content, _tool_fields(message)) for message in messages)
        said = f"; {self._describe_nearest(wanted, parameters)}" if self._prompts else "; the journal has no calls"
        return ReplayMiss(f"no recorded reply to call {key[:12]}{said}", "replay_miss", 0)

    def _describe_nearest(self, wanted: str, parameters: Mapping[str, Any]) -> str:
        place = bisect_left(self._prompts, (wanted, ""))  # the nearest text is next to the insertion point
        same = [key for _, key in takewhile(lambda one: one[0] == wanted, islice(self._prompts, place, None))]
        if same:
            return self._describe_difference(same, parameters)
        at, nearest = max((_common_prefix(wanted, one), one) for one, _ in self._prompts[max(place - 1, 0):place + 1])
        return (f"the nearest recorded prompt differs from character {at}: recorded {nearest[at:at + 40]!r}, asked "
                f"{wanted[at:at + 40]!r}")

    def _describe_difference(self, keys: Sequence[str], parameters: Mapping[str, Any]) -> str:
        assert self.database is not None
        known = [json.loads(self.database.read("SELECT parameters FROM calls WHERE key = ?", (key,))[0][0])
                 for key in keys]
        names, nearest = min((([name for name in {**one, **parameters} if one.get(name) != parameters.get(name)], one)
                              for one in known), key=lambda pair: len(pair[0]))
        if not names:
            return "this prompt is recorded with a different model"
        differences = ", ".join(f"{name}: recorded {nearest.get(name)!r:.80}, asked {parameters.get(name)!r:.80}"
                                for name in names)
        repeat = " (another repeat)" * (names == ["seed"])
        return f"this prompt is recorded with different parameters: {differences}{repeat}"

    @cached_property
    def _prompts(self) -> list[tuple[str, str]]:
        if self.database is None:
            return []
        prompts: list[tuple[str, str]] = []
        room = _MAX_SEARCHED
        for key, messages in self.database.rows("SELECT key, messages FROM calls"):
            prompt = "\n".join(_comparable("".join(map(self.database.text, parts)), of_tools)
                               for _, parts, *of_tools in json.loads(messages))
            prompts.append((prompt, key))
            room -= len(prompt)
            if room < 0:
                break
        return sorted(prompts)


def _common_prefix(one: str, other: str) -> int:
    differing = (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differing, min(len(one), len(other)))


Exchange = Generator[Generate, Reply | Failure, End]
"""A generator that yields model calls, receives their outcomes, and returns a result."""


@dataclass(frozen=True, slots=True)
class ExchangeResult(Generic[End]):
    """The result of an exchange, with its usage and cost."""

    end: End
    usage: Usage = field(default_factory=Usage)
    cost: Cost = field(default_factory=Cost)


async def complete_with_repair(model: Model | None, exchange: Exchange[End],
                               deadline: Callable[[], float]) -> ExchangeResult[End]:
    """Run an exchange: send the calls that it yields to the model, and return its result. Raises RunError if it makes a
    call and there is no model."""
    sent: Reply | Failure | None = None
    usage, cost, started = Usage(), Cost(), time.monotonic()
    while True:
        try:
            action = next(exchange) if sent is None else exchange.send(sent)
        except StopIteration as end:
            return ExchangeResult(end.value, usage, replace(cost, seconds=time.monotonic() - started))
        if model is None:
            raise RunError(f"a call for {action.purpose} needs a model, but none is open")
        asked = await model.ask(action, deadline())
        sent = asked.outcome
        usage += sent.usage if isinstance(sent, Reply) else Usage(calls=1)
        if isinstance(sent, Reply) and is_prompt_cut(action.messages, sent.usage):
            sent = Failure(PROMPT_CUT, f"the server counted {sent.usage.prompt_tokens} tokens of a longer prompt")
        cost += asked.cost


class Client(Protocol):
    """Sends calls to a model; `ModelClient` implements it."""

    @property
    def identity(self) -> str: ...

    def parameters(self, action: Generate, max_tokens: int, repeat: int) -> dict[str, Any]: ...

    async def complete(self, action: Generate, *, max_tokens: int, repeat: int, deadline: float,
                       tell: OnEvent | None) -> Any: ...


class Model:
    """Answers calls from the journal or, if they are not there, from the client.

    Args:
        max_tokens: limit on a reply if the action sets none.
        repeat: number of the cell's repeat, which is part of each call's key.
    """

    def __init__(self, client: Client, journal: Journal, max_tokens: int, repeat: int = 0) -> None:
        self.client, self.journal, self.max_tokens, self.repeat = client, journal, max_tokens, repeat

    def key(self, action: Generate) -> str:
        return call_key(self.client.identity, action.messages, self._parameters(action), self.repeat, action.sample)

    async def ask(self, action: Generate, deadline: float, tell: OnEvent | None = None) -> CallOutcome:
        """Return a call's outcome from the journal, or make the call and return its outcome once it is stored.

        Args:
            deadline: deadline of the question, in `time.monotonic` seconds.
            tell: called with pieces of the reply as they arrive from the client.
        """
        parameters = self._parameters(action)
        key = call_key(self.client.identity, action.messages, parameters, self.repeat, action.sample)
        async with self.journal.turn(key):
            if (known := self.journal.find(key)) is not None:
                return CallOutcome(key, known, replayed=True)
            try:
                if self.journal.mode == "replay":
                    raise self.journal.miss(key, action.messages, parameters)
                done = await self.client.complete(action, max_tokens=self._limit(action), repeat=self.repeat,
                                                  deadline=deadline, tell=tell)
            except CallError as error:
                asked = CallOutcome(key, failure_from_error(error), error.attempts)
            else:
                asked = CallOutcome(key, done.reply, done.attempts, replayed=not done.attempts)
            await self.journal.keep(key, action.messages, parameters, asked.outcome)
        return asked

    def _limit(self, action: Generate) -> int:
        return action.max_tokens or self.max_tokens

    def _parameters(self, action: Generate) -> Mapping[str, Any]:
        return self.client.parameters(action, self._limit(action), self.repeat)
