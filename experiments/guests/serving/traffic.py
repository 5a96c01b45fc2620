"""Traffic: every answer that a server gave, durable before its client sees the end of it, and what people said of it.

    FOLDER/
      traffic.sqlite      threads, their turns, feedback
      NAME-1A2B3C4D/      of each configuration that answered, a run of one cell; see `traffic_runs`

A turn is written down when it begins, and once more with its answer. Where the process is killed in between, the next
one that opens the folder gives it a record that says so: every question that was asked has exactly one.
"""
from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from filelock import FileLock

from ragbed.agents.database import Database, storable
from ragbed.agents.types import Answer, failed_answer
from ragbed.documents.errors import RunError, SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.guests.serving.traffic_runs import TRAFFIC, TrafficRun, folder_name
from ragbed.experiments.question import Question
from ragbed.experiments.runs.store import hold
from ragbed.strategies.types import Failure, Turn

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant
    from ragbed.experiments.guests.serving.turns import Asked

T = TypeVar("T")
Thumb = Literal["up", "down"]
VERSION = 1  # of the tables
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS threads (id TEXT PRIMARY KEY, owner TEXT NOT NULL, configuration TEXT NOT NULL,"
    " probability REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS turns (record TEXT PRIMARY KEY, thread TEXT NOT NULL, place INTEGER NOT NULL,"
    " owner TEXT NOT NULL, configuration TEXT NOT NULL, run TEXT NOT NULL, probability REAL NOT NULL,"
    " before TEXT, question TEXT NOT NULL, standalone TEXT, outcome TEXT, text TEXT, shown TEXT, begun TEXT NOT NULL,"
    " ended TEXT)",
    "CREATE INDEX IF NOT EXISTS turns_of_thread ON turns (thread, place)",
    "CREATE INDEX IF NOT EXISTS turns_of_owner ON turns (owner)",
    # A live experiment rests on the first thumb, as it was when it came: what is changed later changes no earlier look.
    "CREATE TABLE IF NOT EXISTS feedback (record TEXT PRIMARY KEY, owner TEXT NOT NULL, thumb TEXT, comment TEXT,"
    " time TEXT NOT NULL, first TEXT, rated TEXT)")
_RATE = ("INSERT INTO feedback VALUES (?1, ?2, ?3, ?4, ?5, ?3, iif(?3 IS NULL, NULL, ?5)) ON CONFLICT (record) DO"
         " UPDATE SET thumb = ?3, comment = ?4, time = ?5, rated = coalesce(rated, excluded.rated),"
         " first = coalesce(first, ?3)")
_TITLE = 80  # characters of a thread's title
_KILLED = Failure("interrupted", "the server ended before the answer did")


def open_kept(place: Path) -> Database:
    """Open what is kept of traffic, to read it, by its folder or file; RunError where there is none."""
    file = place if place.is_file() else place / TRAFFIC
    if not file.is_file():
        raise RunError(f"{place} holds no traffic: there is no {TRAFFIC}; `ragbed serve --traffic` makes it")
    return Database(file, SCHEMA, VERSION, reading=True)


def drawn(salt: str, thread: str, names: Sequence[str], explore: float) -> tuple[str, float]:
    """Return the configuration that a thread is given, and the probability of that: the first, or with the probability
    `explore` one of the others, each as likely. The salt is the server's secret: who names a thread cannot choose."""
    place = int(digest(salt, thread)[:13], 16) / 16**13
    others = names[1:] if explore else []
    if not others or place >= explore:
        return names[0], 1.0 - explore if others else 1.0
    return others[int(place / explore * len(others))], explore / len(others)


class Traffic:
    """Keeps what a server answered. All of it is written and read in one thread of its own, turn by turn, so that the
    event loop never waits for a disk."""

    def __init__(self, folder: Path, configurations: Sequence[str], explore: float, thread: ThreadPoolExecutor) -> None:
        self.folder, self._configurations, self._explore, self._thread = folder, configurations, explore, thread
        self._runs: dict[str, TrafficRun] = {}
        self._lock: FileLock
        self._database: Database
        self._salt = ""

    @classmethod
    @asynccontextmanager
    async def open(cls, folder: Path, configurations: Sequence[str], explore: float = 0.0) -> AsyncIterator[Traffic]:
        """Open the traffic of a folder, made where absent, and close it at the end, with the summaries of its runs.

        Args:
            configurations: their names; the first is the default.
            explore: the share of threads that another one answers, drawn at random.

        Raises:
            RunError: another process holds the folder, or it cannot be written.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="traffic") as thread:
            traffic = cls(folder, configurations, explore, thread)
            await traffic._do(traffic._open)
            try:
                yield traffic
            finally:
                await traffic._do(traffic._close)

    async def choose(self, thread: str, asked: str | None = None) -> tuple[str, float]:
        """Return the configuration that answers in a thread, and the probability with which it was drawn. A thread
        stays with the one that it began with; one that the client `asked` for has the probability 1."""
        if asked is not None:
            return asked, 1.0
        known = await self._do(self._database.read, "SELECT configuration, probability FROM threads WHERE id = ?",
                               (thread,))
        if known and known[0][0] in self._configurations:
            return known[0]
        return drawn(self._salt, thread, self._configurations, self._explore)

    async def place(self, thread: str, owner: str) -> int:
        """Return how many turns an owner's thread has; SettingsError where the owner has no such thread."""
        (count,), = await self._do(self._database.read, "SELECT count(*) FROM turns WHERE thread = ? AND owner = ?",
                                   (thread, owner))
        if not count:
            raise SettingsError(f"there is no thread {thread!r:.100}")
        return int(count)

    async def begun(self, asked: Asked) -> None:
        """Write down that a turn begins. Raises SettingsError where the thread is another owner's, or the turn was
        begun before."""
        await self._do(self._begin, asked)

    async def ended(self, asked: Asked, answer: Answer, shown: Mapping[str, Any]) -> None:
        """Keep the answer of a turn, and return when it is durable; also where who waits for that is cancelled.

        Args:
            answer: of a turn that nobody waited for until its end, with the failure that says so.
            shown: the answer as the client has it, given again by `thread`; its `standalone`, where it has one, is the
                question as it was searched for.
        """
        await self._do(self._end, asked, answer, shown)

    async def feedback(self, record: str, owner: str, thumb: Thumb | None, comment: str = "") -> bool:
        """Keep what an owner says of an answer, in the place of what was said before; False where the owner has no such
        answer."""
        return await self._do(self._rate, record, owner, thumb, storable(comment))

    async def threads(self, owner: str, most: int = 200) -> list[dict[str, Any]]:
        """Return the threads of an owner that are kept here, the latest first."""
        # Of several rows SQLite takes the columns from the one with the minimum.
        rows = await self._do(self._database.read, (
            "SELECT t.thread, t.question, min(t.place), (SELECT max(begun) FROM turns WHERE thread = t.thread) AS last,"
            " h.configuration FROM turns t JOIN threads h ON h.id = t.thread WHERE t.owner = ? AND t.before IS NULL"
            " GROUP BY t.thread ORDER BY last DESC LIMIT ?"), (owner, most))
        return [{"id": thread, "title": " ".join(question.split())[:_TITLE], "updated": updated,
                 "configuration": configuration} for thread, question, _, updated, configuration in rows]

    async def thread(self, thread: str, owner: str) -> dict[str, Any] | None:
        """Return the turns of a thread, in order; None where the owner has no such thread."""
        rows = await self._do(self._database.read, (
            "SELECT t.question, t.shown, f.thumb, f.comment FROM turns t LEFT JOIN feedback f ON f.record = t.record"
            " WHERE t.thread = ? AND t.owner = ? ORDER BY t.place"), (thread, owner))
        return {"turns": [{"question": question, "answer": json.loads(shown) if shown else None,
                           "feedback": {"thumb": thumb, "comment": comment or ""}}
                          for question, shown, thumb, comment in rows]} if rows else None

    async def conversation(self, record: str, owner: str) -> tuple[Turn, ...] | None:
        """Return the turns that an owner's client sent before an answer, and last that answer; None where the owner has
        no such answer, the question failed, or its turns are a thread's."""
        rows = await self._do(self._database.read, (
            "SELECT before, question, shown FROM turns WHERE record = ? AND owner = ? AND before IS NOT NULL"
            " AND shown IS NOT NULL"), (record, owner))
        for before, question, shown in rows:
            if (answer := json.loads(shown))["failure"] is None:
                return *(Turn(**turn) for turn in json.loads(before)), Turn(question, answer["text"])
        return None

    async def _do(self, work: Callable[..., T], *given: Any) -> T:
        # shielded: a client that leaves cancels who waits, not what is written
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, work, *given))

    def _open(self) -> None:
        self._lock = hold(self.folder)
        self._database = Database(self.folder / TRAFFIC, SCHEMA, VERSION)
        self._database.put("INSERT OR IGNORE INTO secrets VALUES ('salt', ?)", (secrets.token_hex(16),))
        self._database.flush()
        (self._salt,), = self._database.read("SELECT value FROM secrets WHERE name = 'salt'")
        for record, run in self._database.read("SELECT record, run FROM turns WHERE ended IS NULL"):
            self._recover(record, run)

    def _recover(self, record: str, run: str) -> None:
        """End a turn that a killed process left: by its record, where that was kept. A run that somebody removed keeps
        no server from starting."""
        if not (self.folder / run).is_dir():
            self._finish(record, "error", "")
            return
        kept = self._run(run)
        if not kept.holds(record):
            kept.add(question_of(self._database, record), failed_answer(_KILLED), str)
        (result,) = (one.result for one in kept.folder.records_of(record))
        self._finish(record, result.outcome, result.text)

    def _run(self, name: str, assistant: Assistant | None = None) -> TrafficRun:
        if name not in self._runs:
            self._runs[name] = TrafficRun.open(self.folder / name, assistant)
        return self._runs[name]

    def _begin(self, asked: Asked) -> None:
        run, thread = folder_name(asked.configuration, asked.assistant), asked.thread
        self._run(run, asked.assistant)
        before = None if asked.turns is None else json.dumps([asdict(turn) for turn in asked.turns])
        with self._database.transaction():
            if asked.turns is None or asked.probability < 1:  # what clients of whole talks name binds no later
                self._database.put("INSERT OR IGNORE INTO threads VALUES (?, ?, ?, ?)",
                                   (thread, asked.owner, asked.configuration, asked.probability))
                if self._database.read("SELECT owner FROM threads WHERE id = ?", (thread,)) != [(asked.owner,)]:
                    raise SettingsError(f"there is no thread {thread!r:.100}")
            if self._database.read("SELECT 1 FROM turns WHERE record = ?", (asked.record,)):
                raise SettingsError(f"the thread {thread!r:.100} is being answered; ask again once it is")
            self._database.put(
                "INSERT INTO turns (record, thread, place, owner, configuration, run, probability, before, question,"
                " begun) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (asked.record, thread, asked.place, asked.owner, asked.configuration, run, asked.probability, before,
                 storable(asked.question), _now()))

    def _end(self, asked: Asked, answer: Answer, shown: Mapping[str, Any]) -> None:
        run = self._run(folder_name(asked.configuration, asked.assistant))
        run.add(question_of(self._database, asked.record), answer, asked.assistant.index.source_of)
        self._finish(asked.record, answer.outcome, answer.text, shown)

    def _finish(self, record: str, outcome: str, text: str, shown: Mapping[str, Any] | None = None) -> None:
        self._database.put(
            "UPDATE turns SET outcome = ?, text = ?, shown = ?, standalone = ?, ended = ? WHERE record = ?",
            (outcome, storable(text), None if shown is None else json.dumps(shown),
             None if shown is None else shown.get("standalone"), _now(), record))
        self._database.flush()

    def _rate(self, record: str, owner: str, thumb: Thumb | None, comment: str) -> bool:
        if not self._database.read("SELECT 1 FROM turns WHERE record = ? AND owner = ?", (record, owner)):
            return False
        self._database.put(_RATE, (record, owner, thumb, comment, _now()))
        self._database.flush()
        return True

    def _close(self) -> None:
        try:
            for run in self._runs.values():
                run.close()
            self._database.close()
        finally:
            self._lock.release()


def question_of(database: Database, record: str) -> Question:
    """Return a question as it was asked, after the turns before it."""
    (thread, place, before, text), = database.read(
        "SELECT thread, place, before, question FROM turns WHERE record = ?", (record,))
    turns = [Turn(**turn) for turn in json.loads(before)] if before is not None else [
        Turn(*said) for said in database.read("SELECT question, coalesce(text, '') FROM turns WHERE thread = ? AND "
                                              "place < ? AND before IS NULL ORDER BY place", (thread, place))]
    return Question(record, text, (), answerable=True, turns=tuple(turns))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
