"""The tables of threads, turns and feedback."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ragbed.agents.database import Database
from ragbed.experiments.guests.traffic.traffic_runs import TRAFFIC

T = TypeVar("T")
VERSION = 2  # version of the tables
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS threads (id TEXT PRIMARY KEY, owner TEXT NOT NULL, configuration TEXT NOT NULL,"
    " probability REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS turns (record TEXT PRIMARY KEY, thread TEXT NOT NULL, place INTEGER NOT NULL,"
    " owner TEXT NOT NULL, configuration TEXT NOT NULL, run TEXT NOT NULL, probability REAL NOT NULL,"
    " before TEXT, filter TEXT, question TEXT NOT NULL, standalone TEXT, outcome TEXT, text TEXT, shown TEXT,"
    " begun TEXT NOT NULL, ended TEXT)",
    "CREATE INDEX IF NOT EXISTS turns_of_thread ON turns (thread, place)",
    "CREATE INDEX IF NOT EXISTS turns_of_owner ON turns (owner)",
    "CREATE TABLE IF NOT EXISTS titles (thread TEXT PRIMARY KEY, title TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS forgotten (day TEXT NOT NULL, reason TEXT NOT NULL, answers INTEGER NOT NULL)",
    # Turns that are being answered, and the server that answers each.
    "CREATE TABLE IF NOT EXISTS running (record TEXT PRIMARY KEY, server INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS spending (owner TEXT NOT NULL, day TEXT NOT NULL, usd REAL NOT NULL,"
    " PRIMARY KEY (owner, day))",
    # An A/B test uses the first thumb, so that a later change does not alter an earlier result.
    "CREATE TABLE IF NOT EXISTS feedback (record TEXT PRIMARY KEY, owner TEXT NOT NULL, thumb TEXT, comment TEXT,"
    " time TEXT NOT NULL, first TEXT, rated TEXT)")


class TrafficFile(Database):
    """The tables in the file of a folder, for the processes of one server.

    Args:
        server: number of this process, from 0.
        processes: number of processes that use the folder.
    """

    other_version = "use that version, or name another folder with --traffic"

    def __init__(self, folder: Path, server: int = 0, processes: int = 1) -> None:
        super().__init__(folder / TRAFFIC, SCHEMA, VERSION)
        self.server, self._processes = server, processes

    def lock(self, name: str) -> None:
        """Hold the only lock of writers until the transaction ends."""
        self.put("DELETE FROM running WHERE record = ''", ())

    def is_dead(self, server: int | None) -> bool:
        """Tell whether a process no longer runs: an earlier one of this number, or one of an earlier server."""
        return server is None or server == self.server or server >= self._processes

    def retry(self, work: Callable[[], T]) -> T:
        """Return the result of work."""
        return work()
