"""One process at a time works on a run's folder."""
from __future__ import annotations

import sqlite3
from pathlib import Path

from documents.errors import RunError
from retrieval.storage.files import hold as hold_file
from retrieval.storage.files import why_unwritten


def hold(folder: Path) -> sqlite3.Connection:
    """Make the folder where needed and keep every other process from working on its run until closed.

    Raises:
        RunError: another process holds it, or the folder cannot be made or written.
    """
    try:
        return hold_file(folder / ".lock")
    except BlockingIOError as error:
        raise RunError(f"{folder}: another process is working on this run; wait for it, or give this one another "
                       "name") from error
    except OSError as error:
        raise RunError(f"{folder}, the run folder: {why_unwritten(error)}") from error
