"""One process at a time works on a run's folder."""
from __future__ import annotations

import sqlite3
from pathlib import Path

from documents.errors import RunError


def hold(folder: Path) -> sqlite3.Connection:
    """Make the folder where needed and keep every other process from working on its run until closed.

    SQLite's own lock on an empty database: it exists on every system, and ends with the process however that ends.

    Raises:
        RunError: another process holds it, or the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot make the run folder: {error.strerror}") from error
    connection = None
    try:
        connection = sqlite3.connect(folder / ".lock", timeout=0, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        if getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY":
            raise RunError(f"{folder}: another process is working on this run; wait for it, or give this one another "
                           "name") from error
        raise RunError(f"{folder}: cannot write the run folder: {error}") from error
    return connection
