"""What the cache holds under hashes goes once nobody opened it for long: new versions and contents have others."""
from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

UNUSED = 90 * 86_400
"""Seconds after which what nobody opened is removed."""


def opened(entry: Path) -> None:
    """Note that a file or folder of the cache is in use."""
    with suppress(OSError):  # what cannot be written is at worst made anew
        os.utime(entry)


def made(entry: Path) -> None:
    """Note that a file or folder of the cache is new, and remove those beside it that nobody opened for long; once in a
    process."""
    opened(entry)
    _swept(entry.parent)


@cache
def _swept(folder: Path) -> None:
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            with suppress(OSError):
                if time.time() - entry.lstat().st_mtime > UNUSED:
                    _remove(entry)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
        return
    for beside in (entry, *(entry.with_name(entry.name + end) for end in ("-wal", "-shm"))):  # of SQLite's files
        beside.unlink(missing_ok=True)
