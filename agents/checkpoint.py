"""Save questions after each step, and continue them in another process.

    async with open_checkpointer("threads.sqlite") as saver, Assistant.open(settings, saver) as assistant:
        await assistant.ask("Who founded it?", thread="mine")

A database may come from a stranger, so its content is only validated, compared and replayed. `PlainJson` stores states
as JSON, because LangGraph's own serialiser constructs any class that a database names. Strategies, retriever, index and
model come from the caller who continues a question."""
from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragbed.agents.database import is_postgres
from ragbed.agents.session import Session, action_hash
from ragbed.agents.tools import ToolOutput
from ragbed.agents.types import CallOutcome
from ragbed.documents.errors import MissingExtra, RecipeMismatch, SettingsError
from ragbed.documents.http import sanitize_line
from ragbed.documents.json import loads
from ragbed.documents.paths import expand_path
from ragbed.documents.types import Format
from ragbed.strategies.types import Failure, Reply, Turn

if TYPE_CHECKING:
    from ragbed.agents.graph import State

_RESULTS = {"found", "called", "asked", "lost"}
_OF_NODE = {"search": {"found", "lost"}, "call_tools": {"called", "lost"}, "generate": {"asked"}}


class _Saved(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SavedCall(_Saved):
    """The outcome of a call; see `CallOutcome.to_json`."""

    key: str
    reply: Reply | None = None
    failure: Failure | None = None
    attempts: int = Field(ge=0)
    replayed: bool

    @model_validator(mode="after")
    def _check_outcome(self) -> Self:
        if (self.reply is None) == (self.failure is None):
            raise ValueError("expected a reply or a failure")
        return self


class SavedOutput(_Saved):
    """The result of a tool's call; see `ToolOutput.to_json`."""

    parts: list[str | tuple[str, Format, int, int, str]]
    failure: str


class SavedStep(_Saved):
    """A step: hashes of its actions, and the ids of the chunks found, the results of tools, the outcomes of calls, or
    the failure of searches or tools."""

    actions: list[str] = Field(min_length=1)
    seconds: float = Field(ge=0, allow_inf_nan=False)
    found: list[list[str]] = []
    called: list[SavedOutput] = []
    asked: list[SavedCall] = []
    lost: Failure | None = None

    @model_validator(mode="after")
    def _check_results(self) -> Self:
        results = [getattr(self, name) for name in self.model_fields_set & _RESULTS]
        if len(results) != 1 or (self.lost is None and len(results[0]) != len(self.actions)):
            raise ValueError("expected a result for each action")
        return self


class SavedState(_Saved):
    """A question after some steps; see `agents.graph.State`."""

    id: str
    made: dict[str, Any]
    question: str = Field(min_length=1)
    asked: str = ""
    options: list[Annotated[list[str], Field(min_length=2, max_length=2)]]
    turns: list[Turn] = []
    results: list[SavedStep]
    answer: dict[str, Any] = {}


def check_mark(made: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise RecipeMismatch, with the differences, if the settings `made` of a saved question differ from `now`."""
    differing = [name for name in now if made.get(name) != now[name]]
    if differing:
        changes = "; ".join("the index has different content" if name == "index" else
                         f"{name} was {json.dumps(made.get(name))[:80]} and is now {json.dumps(now[name])[:80]}"
                         for name in differing)
        raise RecipeMismatch(f"the question was started with different settings: {changes}")


def check_state(state: Any, place: str) -> State:
    """Validate a stored state. Raises SettingsError, which names the `place`, if it is invalid."""
    try:
        return cast("State", SavedState.model_validate(state).model_dump(exclude_unset=True))
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_url=False, include_input=False)[0]["loc"])) or "the state"
        raise SettingsError(f"{place}: invalid state ({where}); ask the question again") from None


def restore(play: Session, results: Sequence[Mapping[str, Any]]) -> None:
    """Replay recorded results in a new session. They count against its budget. Raises RecipeMismatch if the recipe's
    requests differ from the recorded ones, or the index lacks a passage."""
    for entry in results:
        wanted = [*map(action_hash, play.pending_searches()), *map(action_hash, play.pending_tools()),
                  *map(play.runtime.key, play.pending_calls())]
        if not _OF_NODE.get(play.node, set()) & entry.keys() or wanted != entry["actions"]:
            raise RecipeMismatch(f"question {play.task.id}: step {len(play.trace) + 1} of the strategy differs from "
                                 "what was recorded; the strategy, its files or its prompts have changed since, or "
                                 "a step was edited without removing those after it")
        try:
            found = [[*map(play.runtime.chunk, ids)] for ids in entry.get("found", ())]
            called = [ToolOutput(tuple(part if isinstance(part, str) else play.runtime.span(*part)
                                       for part in one["parts"]), one["failure"]) for one in entry.get("called", ())]
        except KeyError as error:
            raise RecipeMismatch(f"question {play.task.id} uses a passage that the index does not have: "
                                 f"{error.args[0]!r:.80}") from None
        if "found" in entry:
            play.add_found(found)
        elif "called" in entry:
            play.add_called(called)
        elif "lost" in entry:
            play.add_lost(Failure(**entry["lost"]))
        else:
            play.add_replies([CallOutcome.from_json(one) for one in entry["asked"]])
        play.started -= entry.get("seconds", 0.0)
        play.reported = len(play.trace)  # do not emit replayed steps again


class PlainJson:
    """Serialises the states in LangGraph's checkpointers as JSON, so that reading constructs no classes."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        """Write a value. Messages of LangChain become objects; other types that JSON lacks become text."""
        return "json", json.dumps(value, default=lambda one: (
            one.model_dump() if isinstance(one, BaseModel) else str(one))).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read what `dumps_typed` wrote. Raises SettingsError for anything else."""
        kind, content = data
        try:
            if kind == "json":
                return loads(content)
        except ValueError:
            pass
        raise SettingsError("the thread store contains data that ragbed did not write; name another store")


@contextlib.asynccontextmanager
async def open_checkpointer(place: str | Path) -> AsyncIterator[Any]:
    """Open a store of threads for `Assistant.open`, and close it at the end.

    Args:
        place: a SQLite file, which is created if it is missing, or `postgres://USER:PASSWORD@HOST/DATABASE`.

    Raises:
        MissingExtra: its package is not installed.
        SettingsError: it cannot be opened; the message hides the password.
    """
    async with contextlib.AsyncExitStack() as opened:
        yield await (_open_postgres(str(place), opened) if is_postgres(place)
                     else _open_sqlite(expand_path(place), opened))


async def _open_sqlite(path: Path, opened: contextlib.AsyncExitStack) -> Any:
    try:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    except ImportError as error:
        raise MissingExtra("langgraph-checkpoint-sqlite", "serve") from error
    import sqlite3

    import aiosqlite

    try:
        connection = await opened.enter_async_context(aiosqlite.connect(path, timeout=30))
        saver = AsyncSqliteSaver(connection, serde=PlainJson())
        await saver.setup()
    except sqlite3.Error as error:
        raise SettingsError(f"{path}: cannot store threads: {error}") from error
    return saver


_TRY_LOCK = "SELECT pg_try_advisory_lock(7247234) AS taken"
_MAX_CONNECTIONS, _TIMEOUT = 16, 10  # connections per process, and seconds to wait for one


async def _open_postgres(url: str, opened: contextlib.AsyncExitStack) -> Any:
    try:
        import psycopg
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
        from psycopg.conninfo import conninfo_to_dict, make_conninfo
        from psycopg.rows import dict_row
        from psycopg_pool import AsyncConnectionPool
    except ImportError as error:
        raise MissingExtra("langgraph-checkpoint-postgres", "postgres") from error
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:  # the error's own message would show the password
        raise SettingsError("the thread store is not a PostgreSQL URL; write "
                            "postgres://USER:PASSWORD@HOST/DATABASE") from None
    address = make_conninfo(url, connect_timeout=_TIMEOUT)
    try:
        # Open one connection first, because the pool would report a timeout instead of the reason.
        async with AsyncPostgresSaver.from_conn_string(address, serde=PlainJson()) as first:
            # One process at a time makes the tables. It must not wait in a query, because LangGraph's CREATE INDEX
            # CONCURRENTLY waits for all queries. The end of the connection releases the lock.
            connection: Any = first.conn
            while not (await (await connection.execute(_TRY_LOCK)).fetchone())["taken"]:
                await asyncio.sleep(0.1)
            await first.setup()
        pool: Any = AsyncConnectionPool(  # Any, because the pool's type ignores the row type in `kwargs`
            address, min_size=1, max_size=_MAX_CONNECTIONS, timeout=_TIMEOUT, open=False,
            check=AsyncConnectionPool.check_connection,  # the server may have been restarted
            kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row})
        await opened.enter_async_context(pool)
    except psycopg.Error as error:
        named = f"PostgreSQL on {parts.get('host', 'this machine')}, database {parts.get('dbname', '')!r}"
        raise SettingsError(f"{named}: cannot store threads: "
                            f"{sanitize_line(str(error), str(parts.get('password', '')))}") from None
    return AsyncPostgresSaver(pool, serde=PlainJson())
