"""Store the traffic of a server: each answer, before the client sees its end, and the feedback on it.

    FOLDER/
      traffic.sqlite threads, their turns, feedback
      NAME-1A2B3C4D/ for each configuration that answered, a run of one cell; see `traffic_runs`

A turn is written when it starts, and again with its answer. If the process is killed in between, the next server that
opens the folder adds a record that says so: every question has exactly one record.
"""
from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from filelock import FileLock

from ragbed.agents.database import Database, is_postgres, storable
from ragbed.agents.types import Answer, failed_answer
from ragbed.documents.errors import RunError, SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.guests.traffic.forgetting import THREADS, Forgotten, Selection, clean_file, delete_answers
from ragbed.experiments.guests.traffic.postgres_traffic import PostgresDatabase, PostgresRun
from ragbed.experiments.guests.traffic.traffic_runs import IN_USE, TRAFFIC, TrafficRun, folder_name
from ragbed.experiments.guests.traffic.traffic_tables import SCHEMA, VERSION, TrafficFile
from ragbed.experiments.question import Question
from ragbed.experiments.runs.store import lock_run
from ragbed.strategies.types import Failure, Turn

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant
    from ragbed.experiments.guests.operations.spending import Allowance
    from ragbed.experiments.guests.traffic.turns import ChatTurn


T = TypeVar("T")
Thumb = Literal["up", "down"]
_RATE = ("INSERT INTO feedback (record, owner, thumb, comment, time, first, rated) VALUES (?, ?, ?, ?, ?, ?, ?)"
         " ON CONFLICT (record) DO UPDATE SET thumb = excluded.thumb, comment = excluded.comment, time = excluded.time,"
         " rated = coalesce(feedback.rated, excluded.rated), first = coalesce(feedback.first, excluded.first)")
_THREADS = ("SELECT t.thread, coalesce(n.title, t.question), l.last FROM turns t LEFT JOIN titles n ON"
            " n.thread = t.thread JOIN (SELECT thread, min(place) AS place, max(begun) AS"
            " last FROM turns WHERE owner = ? AND before IS NULL GROUP BY thread) l ON l.thread = t.thread AND"
            " l.place = t.place WHERE t.owner = ? AND t.before IS NULL ORDER BY l.last DESC LIMIT ?")
_SPEND = ("INSERT INTO spending (owner, day, usd) VALUES (?, ?, ?) ON CONFLICT (owner, day) DO UPDATE SET"
          " usd = spending.usd + excluded.usd")
_SPENT = ("SELECT (SELECT coalesce(sum(usd), 0) FROM spending WHERE owner = ? AND day >= ?), (SELECT count(*) FROM"
          " running r JOIN turns t ON t.record = r.record WHERE t.owner = ? AND t.begun > ?)")
_UNFINISHED = ("SELECT t.record, t.run, r.server FROM turns t LEFT JOIN running r ON r.record = t.record"
               " WHERE t.ended IS NULL")
_MAX_TITLE = 80  # characters of a thread's title
_KILLED = Failure("interrupted", "the server stopped before the answer ended")


def open_traffic(path: Path) -> Database:
    """Open the traffic in a folder or file for reading. Raises RunError if there is none."""
    file = path if path.is_file() else path / TRAFFIC
    if not file.is_file():
        raise RunError(f"{path} holds no traffic: no {TRAFFIC} in it; `ragbed serve --traffic` creates it")
    return Database(file, SCHEMA, VERSION, reading=True)


def assign_variant(salt: str, thread: str, names: Sequence[str], explore: float) -> tuple[str, float]:
    """Return the configuration that a thread is assigned, and the probability of that assignment.

    The first configuration has the probability 1 - explore; the others share the rest equally. The salt is secret, so
    that a client cannot choose by naming its thread.
    """
    place = int(digest(salt, thread)[:13], 16) / 16**13
    others = names[1:] if explore else []
    if not others or place >= explore:
        return names[0], 1.0 - explore if others else 1.0
    return others[int(place / explore * len(others))], explore / len(others)


class Traffic:
    """Stores a server's answers. A separate thread reads and writes, so that the event loop never waits for the disk.

    Attributes:
        clear_caches: clear what this process keeps of answers, after any process has deleted some.
    """

    def __init__(self, place: str | Path, configurations: Sequence[str], explore: float, thread: ThreadPoolExecutor,
                 process: tuple[int, int] | None) -> None:
        self.place, self._configurations, self._explore, self._thread = place, configurations, explore, thread
        self._process = process
        self._runs: dict[str, TrafficRun | PostgresRun] = {}
        self._lock: FileLock | None = None
        self._database: TrafficFile | PostgresDatabase
        self._salt = self._deletion = ""
        self.clear_caches: list[Callable[[], None]] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, place: str | Path, configurations: Sequence[str], explore: float = 0.0,
                   process: tuple[int, int] | None = None) -> AsyncIterator[Traffic]:
        """Open the traffic in a folder or a PostgreSQL database, and close it at the end. A missing folder is created.

        Args:
            configurations: their names; the first is the default.
            explore: share of threads that are assigned to another configuration.
            process: number of this process and how many share the folder, whose lock another process holds; None if
                this process locks the folder.

        Raises:
            RunError: another server uses the folder, or it cannot be written, or the database cannot be reached.
        """
        with ThreadPoolExecutor(1, thread_name_prefix="traffic") as thread:
            traffic = cls(place, configurations, explore, thread, process)
            await traffic._do(traffic._open)
            try:
                yield traffic
            finally:
                await traffic._do(traffic._close)

    @property
    def name(self) -> str:
        """Return the name of the folder or the database, without a password."""
        return self._database.name if isinstance(self._database, PostgresDatabase) else str(self.place)

    def secret(self, purpose: str) -> bytes:
        """Return a secret that all servers with this traffic share."""
        return hmac.digest(self._salt.encode(), purpose.encode(), "sha256")

    async def choose(self, thread: str, requested: str | None = None) -> tuple[str, float]:
        """Return the configuration that answers in a thread, and the probability of its assignment, which is 1 if the
        client requested it. A thread keeps its first configuration."""
        if requested is not None:
            return requested, 1.0
        known = await self._do(self._database.read, "SELECT configuration, probability FROM threads WHERE id = ?",
                               (thread,))
        if known and known[0][0] in self._configurations:
            return known[0]
        return assign_variant(self._salt, thread, self._configurations, self._explore)

    async def position(self, thread: str, owner: str) -> int:
        """Return the position of the next turn in an owner's thread. Raises SettingsError if the owner has no such
        thread."""
        (last,), = await self._do(self._database.read, "SELECT max(place) FROM turns WHERE thread = ? AND owner = ?",
                                  (thread, owner))
        if last is None:
            raise SettingsError(f"there is no thread {thread!r:.100}")
        return int(last) + 1

    async def start(self, turn: ChatTurn, allowance: Allowance | None = None) -> None:
        """Store a turn when it starts. Raises SettingsError if the thread belongs to another owner, or the turn was
        already started, and OverSpent if the allowance is spent."""
        if turn.history is None:
            await self._do(self._check_idle, turn.thread)
        await self._do(self._start, turn, allowance)

    async def end(self, turn: ChatTurn, answer: Answer, shown: Mapping[str, Any], usd: float = 0.0) -> None:
        """Store the answer of a turn. It is durable on return, and stored even if the caller is cancelled.

        Args:
            shown: answer that the client sees and `thread` returns; its `standalone` is the question rewritten for the
                search.
            usd: US dollars to add to what the owner has spent.
        """
        await self._do(self._database.retry, partial(self._end, turn, answer, shown, usd))

    async def feedback(self, record: str, owner: str, thumb: Thumb | None, comment: str = "") -> str | None:
        """Store an owner's feedback, which replaces any earlier one. Return the answer's configuration; None if the
        owner has no such answer."""
        return await self._do(self._rate, record, owner, thumb, storable(comment))

    async def threads(self, owner: str, limit: int = 200) -> list[dict[str, Any]]:
        """Return an owner's threads that the server stores, latest first."""
        rows = await self._do(self._database.read, _THREADS, (owner, owner, limit))
        return [{"id": thread, "title": " ".join(title.split())[:_MAX_TITLE], "updated": updated}
                for thread, title, updated in rows]

    async def rename(self, thread: str, owner: str, title: str) -> bool:
        """Give an owner's thread a title. Return False if the owner has no such thread."""
        def rename() -> bool:
            if not self._database.read("SELECT 1 FROM threads WHERE id = ? AND owner = ?", (thread, owner)):
                return False
            self._database.put("INSERT INTO titles (thread, title) VALUES (?, ?) ON CONFLICT (thread) DO UPDATE SET"
                               " title = excluded.title", (thread, storable(title)))
            self._database.flush()
            return True

        return await self._do(rename)

    async def thread(self, thread: str, owner: str) -> dict[str, Any] | None:
        """Return the turns of a thread in order; None if the owner has no such thread. An answer of an A/B test has no
        configuration until it is rated."""
        rows = await self._do(self._database.read, (
            "SELECT t.question, t.probability < 1 AND f.first IS NULL, t.shown, t.filter, f.thumb, f.comment FROM turns"
            " t LEFT JOIN feedback f ON f.record = t.record WHERE t.thread = ? AND t.owner = ? ORDER BY t.place"),
            (thread, owner))
        return {"turns": [{"question": question, "answer": _shown_answer(shown, hidden),
                           "where": _filter_text(json.loads(where)),
                           "feedback": {"thumb": thumb, "comment": comment or ""}}
                          for question, hidden, shown, where, thumb, comment in rows]} if rows else None

    async def conversation(self, record: str, owner: str) -> tuple[tuple[Turn, ...], list[str] | None] | None:
        """Return the turns that a client sent before an answer, and the answer itself as the last one. Then return what
        they are based on; None if it is unknown (see `ChatTurn`).

        Returns None if the owner has no such answer, the question failed, or the server stores the thread.
        """
        rows = await self._do(self._database.read, (
            "SELECT before, question, shown FROM turns WHERE record = ? AND owner = ? AND before IS NOT NULL"
            " AND shown IS NOT NULL"), (record, owner))
        for before, question, shown in rows:
            if (answer := json.loads(shown))["failure"] is None:
                turns = *(Turn(**turn) for turn in json.loads(before)), Turn(question, answer["text"])
                return turns, answer.get("basis")
        return None

    async def forget(self, chosen: Selection, checkpointer: Any) -> Forgotten:
        """Delete the chosen answers, and the checkpoints of their threads. Raises SettingsError if one of them is not
        finished."""
        found = await self._do(delete_answers, self._database, self.place, chosen)
        await self.last_deletion()
        for thread in found.threads:
            await checkpointer.adelete_thread(thread)
        if found.threads and not isinstance(self._database, PostgresDatabase):
            await asyncio.to_thread(clean_file, Path(self.place) / THREADS)
        return found

    async def last_deletion(self) -> str:
        """Return a mark of the last deletion of answers, by any process. If it is new, clear the caches. To be called
        before each use of a cache."""
        rows = await self._do(self._database.read, "SELECT value FROM secrets WHERE name = 'deletion'")
        mark = str(rows[0][0]) if rows else ""
        if mark != self._deletion:
            self._deletion = mark
            for clear in self.clear_caches:
                clear()
        return mark

    async def check(self, answering: Mapping[str, Assistant]) -> None:
        """Raise RunError if answers of these configurations cannot be stored now."""
        await self._do(self._write)
        await self._do(lambda: [self._run(folder_name(name, one), one) for name, one in answering.items()])

    async def _do(self, work: Callable[..., T], *given: Any) -> T:
        # the shield completes the write even if the client disconnects
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, work, *given))

    def _write(self) -> None:
        self._database.put(_SPEND, ("", "", 0.0))
        self._database.flush()

    def _open(self) -> None:
        if is_postgres(self.place):
            self._database = PostgresDatabase(str(self.place), SCHEMA)
        else:
            folder = Path(self.place)
            self._lock = None if self._process else lock_run(folder, IN_USE)
            self._database = TrafficFile(folder, *self._process or (0, 1))
        self._database.put("INSERT INTO secrets VALUES ('salt', ?) ON CONFLICT DO NOTHING", (secrets.token_hex(16),))
        self._database.flush()
        (self._salt,), = self._database.read("SELECT value FROM secrets WHERE name = 'salt'")
        for record, run, server in self._database.read(_UNFINISHED):
            if self._database.is_dead(server):
                self._recover(record, run)

    def _recover(self, record: str, run: str) -> None:
        """End a turn that a killed process left unfinished, using its record if there is one. The server starts even if
        the run was deleted."""
        if isinstance(self._database, TrafficFile) and not (Path(self.place) / run).is_dir():
            self._finish(record, "error", "")
            return
        opened = self._run(run)
        if opened.result(record) is None:
            opened.add(question_of(self._database, record), failed_answer(_KILLED), str)
        outcome, text = opened.result(record) or ("error", "")
        self._finish(record, outcome, text)

    def _run(self, name: str, assistant: Assistant | None = None) -> TrafficRun | PostgresRun:
        if name not in self._runs:
            self._runs[name] = PostgresRun(self._database, name, assistant) if isinstance(
                self._database, PostgresDatabase) else TrafficRun(Path(self.place) / name, assistant,
                                                                  self._process is not None)
        return self._runs[name]

    def _start(self, turn: ChatTurn, allowance: Allowance | None) -> None:
        run, thread = folder_name(turn.configuration, turn.run), turn.thread
        self._run(run, turn.run)
        before = None if turn.history is None else json.dumps([asdict(one) for one in turn.history])
        with self._database.transaction():
            self._database.lock(thread)
            if allowance is not None:
                self._database.lock(f"spending of {turn.owner}")  # so that two processes do not both find a rest
                (spent, running), = self._database.read(_SPENT, (turn.owner, allowance.first_day, turn.owner,
                                                                 allowance.oldest))
                allowance.check(spent, running)
            if turn.history is None or turn.probability < 1:  # the requested configuration answers this turn only
                self._database.put("INSERT INTO threads VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                                   (thread, turn.owner, turn.configuration, turn.probability))
                if self._database.read("SELECT owner FROM threads WHERE id = ?", (thread,)) != [(turn.owner,)]:
                    raise SettingsError(f"there is no thread {thread!r:.100}")
            if self._database.read("SELECT 1 FROM turns WHERE record = ?", (turn.record,)):
                raise SettingsError(f"thread {thread!r:.100}: a question is being answered; wait for its answer")
            self._database.put(
                "INSERT INTO turns (record, thread, place, owner, configuration, run, probability, before, filter,"
                " question, begun) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (turn.record, thread, turn.position, turn.owner, turn.configuration, run, turn.probability, before,
                 json.dumps(turn.where), storable(turn.question), _now()))
            self._database.put("INSERT INTO running VALUES (?, ?)", (turn.record, self._database.server))

    def _check_idle(self, thread: str) -> None:
        """Raise SettingsError if another server is answering a question of the thread. A dead server's is ended."""
        for record, run, server in self._database.read(f"{_UNFINISHED} AND t.thread = ? AND t.before IS NULL",
                                                       (thread,)):
            if server == self._database.server or not self._database.is_dead(server):
                raise SettingsError(f"thread {thread!r:.100}: a question is being answered; wait for its answer")
            self._recover(record, run)

    def _end(self, turn: ChatTurn, answer: Answer, shown: Mapping[str, Any], usd: float) -> None:
        name = folder_name(turn.configuration, turn.run)  # another run than at the start if another model answered
        run = self._run(name, turn.run)
        question = question_of(self._database, turn.record)
        run.add(question, answer, turn.assistant.index.source_of)
        self._database.put("UPDATE turns SET run = ? WHERE record = ?", (name, turn.record))
        self._finish(turn.record, answer.outcome, answer.text, shown, (turn.owner, usd))

    def _finish(self, record: str, outcome: str, text: str, shown: Mapping[str, Any] | None = None,
                spent: tuple[str, float] = ("", 0.0)) -> None:
        with self._database.transaction():
            self._database.put(
                "UPDATE turns SET outcome = ?, text = ?, shown = ?, standalone = ?, ended = ? WHERE record = ?",
                (outcome, storable(text), None if shown is None else json.dumps(shown),
                 None if shown is None else shown.get("standalone"), _now(), record))
            self._database.put("DELETE FROM running WHERE record = ?", (record,))
            if spent[1]:
                self._database.put(_SPEND, (spent[0], _now()[:10], spent[1]))

    def _rate(self, record: str, owner: str, thumb: Thumb | None, comment: str) -> str | None:
        found = self._database.read("SELECT configuration FROM turns WHERE record = ? AND owner = ?", (record, owner))
        if not found:
            return None
        now = _now()
        self._database.put(_RATE, (record, owner, thumb, comment, now, thumb, thumb and now))
        self._database.flush()
        return str(found[0][0])

    def _close(self) -> None:
        try:
            for run in self._runs.values():
                run.close()
            self._database.close()
        finally:
            if self._lock is not None:
                self._lock.release()


def question_of(database: Database | PostgresDatabase, record: str) -> Question:
    """Return a turn's question, with the turns before it and the filter of its request as the tag `where`."""
    (thread, place, before, where, text), = database.read(
        "SELECT thread, place, before, filter, question FROM turns WHERE record = ?", (record,))
    turns = [Turn(**turn) for turn in json.loads(before)] if before is not None else [
        Turn(*row) for row in database.read("SELECT question, coalesce(text, '') FROM turns WHERE thread = ? AND "
                                            "place < ? AND before IS NULL ORDER BY place", (thread, place))]
    return Question(record, text, (), answerable=True, turns=tuple(turns),
                    tags={"where": tuple(found)} if (found := json.loads(where)) else {})


def _shown_answer(shown: str | None, hidden: bool) -> dict[str, Any] | None:
    answer: dict[str, Any] | None = json.loads(shown) if shown else None
    if answer and hidden:
        answer.pop("configuration", None)
    return answer


def _filter_text(where: Sequence[str]) -> str:
    """Return the conditions of a filter as one text, which reads back as the same filter."""
    return " and ".join(f"({one})" if len(where) > 1 and " or " in one else one for one in where)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
