"""A folder that is replaced whole or not at all."""
from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from documents.errors import IndexFolderError

ABANDONED = 3_600
"""Seconds after which a half-written sibling is of a killed process: writing one takes seconds."""


def settled(folder: Path) -> Path:
    """Where the folder's content is: the folder, or what a process killed between two renames set aside."""
    aside = _aside(folder)
    return aside if aside.is_dir() and not folder.exists() else folder


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, which takes its place if the body ends well.

    A kill at any moment leaves the old content or the new: between the two renames the old one is where
    `settled` finds it.

    Raises:
        IndexFolderError: the place cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _clean(folder)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.new-"))
        fresh.chmod(0o755)
        try:
            yield fresh
            _flush(fresh)
            _swap(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise IndexFolderError(f"{folder} cannot be written: {error.strerror}") from error


def _aside(folder: Path) -> Path:
    return folder.parent / f".{folder.name}.old"


def _swap(fresh: Path, folder: Path) -> None:
    aside = _aside(folder)
    if folder.exists():
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(folder, aside)
    os.rename(fresh, folder)
    _sync(folder.parent)
    shutil.rmtree(aside, ignore_errors=True)


def _clean(folder: Path) -> None:
    for left in folder.parent.glob(f".{folder.name}.new-*"):
        if time.time() - left.stat().st_mtime > ABANDONED:
            shutil.rmtree(left, ignore_errors=True)


def _flush(folder: Path) -> None:
    for path in folder.iterdir():
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
