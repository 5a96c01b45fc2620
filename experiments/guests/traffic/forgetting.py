"""Delete stored answers: of a user, a thread, or a document, or those older than some days.

What is deleted is gone from the files, too, which are written again. Only a count of deleted answers stays, by day and
reason.
"""
from __future__ import annotations

import json
import re
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from ragbed.agents.database import is_postgres
from ragbed.documents.errors import RunError, SettingsError
from ragbed.experiments.guests.traffic.postgres_traffic import PostgresDatabase
from ragbed.experiments.guests.traffic.traffic_runs import QUESTIONS, TRAFFIC, runs_of
from ragbed.experiments.runs.store import RunFolder, remove

if TYPE_CHECKING:
    from ragbed.experiments.guests.traffic.traffic_tables import TrafficFile

THREADS = "threads.sqlite"  # file of checkpoints in a folder of traffic
_HASH = re.compile(r'"([0-9a-f]{32})"')  # of a text in a record
_IDLE = "thread IN (SELECT thread FROM turns WHERE before IS NULL GROUP BY thread HAVING max(begun) < ?)"
_UNUSED = ("DELETE FROM texts WHERE hash IN ({hashes}) AND NOT EXISTS (SELECT 1 FROM records WHERE"
           " {find} > 0)")
_MARK = ("INSERT INTO secrets VALUES ('deletion', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value")
_LOCKED_SECONDS = 30


@dataclass(frozen=True)
class Forgotten:
    """What was deleted.

    Attributes:
        threads: ids of the deleted threads, whose checkpoints are to be deleted.
        answers: number of deleted answers.
    """

    threads: tuple[str, ...]
    answers: int


@dataclass(frozen=True)
class Selection:
    """Which answers to delete: all that meet every given condition.

    Attributes:
        owner: name of the key.
        thread: id of a thread. A conversation that its client keeps is one, too.
        document: id of a document. Threads in which an answer was shown a passage of it are deleted as a whole.
        days: answers older than this. A thread that the server keeps is as old as its last question.
    """

    owner: str | None = None
    thread: str | None = None
    document: str | None = None
    days: float | None = None

    @property
    def reason(self) -> str:
        """Return what the count of deleted answers says of the reason."""
        return next(name for name in ("document", "thread", "days", "owner") if getattr(self, name) is not None)


def delete_answers(database: TrafficFile | PostgresDatabase, place: str | Path, chosen: Selection) -> Forgotten:
    """Delete the chosen answers from the tables and runs. Raises SettingsError if one of them is not finished."""
    folder = None if isinstance(database, PostgresDatabase) else Path(place)
    shown = _shown(database, folder, chosen.document)
    where, values = ["1 = 1"], list[str]()
    for column, value in (("owner", chosen.owner), ("thread", chosen.thread)):
        if value is not None:
            where, values = [*where, f"{column} = ?"], [*values, value]
    if chosen.days is not None:
        end = (datetime.now(UTC) - timedelta(days=chosen.days)).isoformat(timespec="milliseconds")
        where = [*where, f"ended IS NOT NULL AND (before IS NOT NULL AND begun < ? OR {_IDLE})"]
        values = [*values, end, end]
    rows = database.read(f"SELECT record, run, thread, before IS NULL, ended FROM turns WHERE {' AND '.join(where)}",  # noqa: S608
                         values)
    if shown is not None:
        threads = {thread for record, _, thread, *_ in rows if record in shown}
        rows = [row for row in rows if row[2] in threads]
    if any(ended is None for *_, ended in rows):
        raise SettingsError("a question is being answered; wait for its answer, and try again")
    for run in {row[1] for row in rows}:
        _delete_records(database, folder, run, [row[0] for row in rows if row[1] == run])
    kept = tuple(sorted({row[2] for row in rows if row[3]}))
    with database.transaction():
        for table, key, ids in (("turns", "record", [row[0] for row in rows]), ("titles", "thread", kept),
                                ("feedback", "record", [row[0] for row in rows]),
                                ("threads", "id", sorted({row[2] for row in rows}))):
            for one in ids:
                database.put(f"DELETE FROM {table} WHERE {key} = ?", (one,))  # noqa: S608
        if rows:
            database.put("INSERT INTO forgotten VALUES (?, ?, ?)", (datetime.now(UTC).date().isoformat(), chosen.reason,
                                                                    len(rows)))
            database.put(_MARK, (secrets.token_hex(8),))
    if rows:
        _clean(database, folder)
    return Forgotten(kept, len(rows))


async def forget_traffic(place: str, chosen: Selection) -> Forgotten:
    """Delete the chosen answers from a folder or a PostgreSQL database. Raises RunError if there is none, or a server
    uses the folder."""
    from ragbed.agents.checkpoint import open_checkpointer
    from ragbed.experiments.guests.traffic.traffic import Traffic

    path: Path | str = place if is_postgres(place) else Path(place)
    if isinstance(path, Path) and not (path / TRAFFIC).is_file():
        raise RunError(f"{path} holds no traffic: no {TRAFFIC} in it")
    async with Traffic.open(path, ["none"]) as traffic, open_checkpointer(
            str(path / THREADS) if isinstance(path, Path) else path) as checkpointer:
        return await traffic.forget(chosen, checkpointer)


def find_document(folder: Path, document: str) -> tuple[str, str]:
    """Return the id and the source of a document of an index, by either of the two. Raises SettingsError if the index
    has no such document, or its source has others, too."""
    from ragbed.retrieval.index import Index

    index = Index.open(folder)
    sources = {one: index.source_of(one) for one in {chunk.document for chunk in index.chunks}}
    with suppress(KeyError):
        sources[document] = index.source_of(document)  # it may have no chunk
    found = next((id for id, source in sources.items() if document in (id, source)), None)
    if found is None:
        raise SettingsError(f"{folder} has no document {document!r:.100}; give its id, as in the `evidence` of "
                            "answers, or the path of its file")
    source = sources[found]
    others = list(sources.values()).count(source)
    if others > 1 or set(source) & set("*?["):
        raise SettingsError(f"{folder}: the source {source!r:.200} has {others} documents, or its name is a pattern; "
                            "change the file, and run `ragbed index` again")
    return found, source


async def forget_document(place: str, chosen: Selection, index: Path) -> tuple[Forgotten, str]:
    """Delete the chosen answers, and the chosen document from an index; return its source, too. Raises RunError, before
    anything is deleted, if a server uses the folder of traffic."""
    from ragbed.retrieval.build import remove_from_index

    id, source = find_document(index, chosen.document or "")
    if is_postgres(place):  # servers may go on, and must not find the document for further answers
        remove_from_index([source], index)
    forgotten = await forget_traffic(place, replace(chosen, document=id))
    if not is_postgres(place):
        remove_from_index([source], index)
    return forgotten, source


def _shown(database: TrafficFile | PostgresDatabase, folder: Path | None, document: str | None) -> set[str] | None:
    """Return the answers to which a passage of a document was shown; None if no document is chosen."""
    if document is None:
        return None
    held = f'"document":{json.dumps(document)}'
    if folder is None:
        return {record for (record,) in database.read("SELECT question FROM records WHERE position(? in result) > 0",
                                                      (held,))}
    found: set[str] = set()
    for path in runs_of(folder):
        with closing(RunFolder.existing(path)) as run:
            found |= {record for (record,) in run.database.read(
                "SELECT question FROM records WHERE instr(result, ?) > 0", (held,))}
    return found


def _delete_records(database: TrafficFile | PostgresDatabase, folder: Path | None, run: str,
                    records: Sequence[str]) -> None:
    """Delete the records and questions of a run, the texts that no other record uses, and the files made of them."""
    if folder is None:
        with database.transaction():
            database.put("LOCK TABLE texts IN SHARE ROW EXCLUSIVE MODE", ())  # no server adds a record meanwhile
            for record in records:
                rows = database.read("DELETE FROM records WHERE run = ? AND question = ? RETURNING result",
                                     (run, record))
                candidates = sorted({hash for (result,) in rows for hash in _HASH.findall(result)})
                database.put(_UNUSED.format(hashes="SELECT unnest(?::text[])", find="position(texts.hash in result)"),
                             (candidates,))
        return
    if not (folder / run / "records.sqlite").is_file():
        return
    with closing(RunFolder.existing(folder / run)) as opened:
        with opened.database.transaction():
            hashes: set[str] = set()
            for record in records:
                for (result,) in opened.database.read("SELECT result FROM records WHERE question = ?", (record,)):
                    hashes |= set(_HASH.findall(result))
                opened.database.put("DELETE FROM records WHERE question = ?", (record,))
                opened.database.put("DELETE FROM questions WHERE id = ?", (record,))
            opened.database.put(_UNUSED.format(hashes="SELECT value FROM json_each(?)",
                                               find="instr(result, texts.hash)"), (json.dumps(sorted(hashes)),))
        opened.reopen()
        remove(folder / run / QUESTIONS)


def _clean(database: TrafficFile | PostgresDatabase, folder: Path | None) -> None:
    """Remove what deleted rows leave in the files."""
    if folder is None:
        database.put("VACUUM turns, feedback, threads, titles, records, texts", ())
        return
    for file in (folder / TRAFFIC, *(path / "records.sqlite" for path in runs_of(folder))):
        clean_file(file)


def clean_file(file: Path) -> None:
    """Write a SQLite file again, without deleted rows. Raises RunError if another process keeps it from that."""
    if not file.is_file():
        return
    try:
        with closing(sqlite3.connect(file, timeout=_LOCKED_SECONDS, isolation_level=None)) as connection:
            connection.execute("VACUUM")
            (busy, *_), = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        raise RunError(f"{file}: the rows are deleted, but their bytes may be in the file: {error}") from error
    if busy:
        raise RunError(f"{file}: the rows are deleted, but their bytes may be in {file.name}-wal until no other "
                       "process reads the file; run the command again")
