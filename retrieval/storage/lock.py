"""One process at a time: SQLite's own lock on an empty database."""
from __future__ import annotations

import sqlite3
from pathlib import Path


def hold(file: Path) -> sqlite3.Connection:
    """Keep every other process and thread from holding this file until the connection is closed.

    The lock exists on every system, and ends with the process however that ends. Folders are made where needed.

    Raises:
        BlockingIOError: another one holds it.
        OSError: the file cannot be made or written; `strerror` says why.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = None
    try:
        connection = sqlite3.connect(file, timeout=0, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        kind = BlockingIOError if getattr(error, "sqlite_errorname", "") == "SQLITE_BUSY" else OSError
        raise kind(0, str(error), str(file)) from error
    return connection
