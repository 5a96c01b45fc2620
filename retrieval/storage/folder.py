"""A folder that is replaced whole or not at all, by one process at a time. Where it is a link, what it leads to is."""
from __future__ import annotations

import errno
import glob
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from filelock import Timeout

from ragbed.documents.errors import IndexFolderError, SettingsError
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest
from ragbed.retrieval.storage.files import body_of, changed, hashes_of, hold, made, opened, unwritable


def settled(folder: Path) -> Path:
    """Return where the folder's content is: the folder, or what a process killed between two renames set aside."""
    aside = set_aside(folder)
    try:
        return aside if aside.is_dir() and not folder.exists() else folder
    except OSError:
        return folder  # whoever reads it is told why not


def set_aside(folder: Path) -> Path:
    """Return where the folder's content is while another takes its place."""
    real = _real(folder)
    return real.parent / f".{real.name}.old"


@contextmanager
def alone(folder: Path, wait: bool = False) -> Iterator[None]:
    """Keep every other process from replacing the folder; with `wait`, once another one that is about to is done. The
    lock is in the cache: nothing is left beside the folder. Raises IndexFolderError where another process is about to
    replace it, and SettingsError where the cache folder cannot be written."""
    try:
        lock = hold(cache_dir() / "locks" / digest(str(_real(folder))), wait)
    except Timeout as error:
        raise IndexFolderError(f"{folder}: another process is building this; wait for it, or name another "
                               "folder") from error
    except OSError as error:
        raise unwritable(error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Yield a new folder beside `folder`, which takes its place if the body ends well; to be used while `alone`. A kill
    at any moment leaves the old content or the new: between the two renames the old one is where `settled` finds it.
    Raises IndexFolderError where the place cannot be written."""
    folder = _real(folder)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _clean(folder)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_prefix(folder)))
        fresh.chmod(0o755)
    try:
        yield fresh
        with writing(folder):
            for path in (*fresh.iterdir(), fresh):
                _sync(path)
            _swap(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def tidy(folder: Path) -> None:
    """Remove what killed processes left beside a folder that stays as it is; to be used while `alone`."""
    real = _real(folder)
    with writing(folder):
        _clean(real)
        _remove(set_aside(real))


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Give a failure to write below the folder the one line that it needs: IndexFolderError in place of OSError."""
    try:
        yield
    except OSError as error:
        told = os.strerror(error.errno) if error.errno not in (None, errno.EIO) else error.strerror or str(error)
        raise IndexFolderError(f"{folder} cannot be written: {told}") from error


def _real(folder: Path) -> Path:
    return Path(os.path.realpath(folder))


def _swap(fresh: Path, folder: Path) -> None:
    aside = set_aside(folder)
    if folder.exists():
        _remove(aside)
        os.rename(folder, aside)
    os.rename(fresh, folder)
    _sync(folder.parent)
    _remove(aside)


def _remove(path: Path) -> None:
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        # Renamed first: what a kill leaves half removed must not be taken for content that was set aside.
        folder = path.with_name(path.name.removeprefix(".").removesuffix(".old"))
        waste = path.parent / f"{_prefix(folder)}{uuid4().hex}"
        os.rename(path, waste)
        shutil.rmtree(waste, ignore_errors=True)


def _prefix(folder: Path) -> str:
    """Of half-written siblings' names, the prefix that says which machine and cache its process holds the lock in."""
    return f".{folder.name}.new-{digest(platform.node(), os.path.realpath(cache_dir()))[:8]}-"


def _clean(folder: Path) -> None:
    """Remove what killed processes left that held the same lock."""
    for left in folder.parent.glob(f"{glob.escape(_prefix(folder))}*"):
        shutil.rmtree(left, ignore_errors=True)


def _sync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_SUMS = "sums.json"


def is_whole(folder: Path) -> bool:
    """Tell whether the folder is there with every file as it was written; it counts as opened then."""
    try:
        sums = body_of(folder / _SUMS)
        if not sums or changed(sums, folder) is not None:
            return False
    except OSError:
        return False
    opened(folder)
    return True


def keep(folder: Path, write: Callable[[Path], None]) -> None:
    """Make the folder, by a function that writes its files into a new one, in the place of one that is damaged; to be
    used while `alone`. Raises SettingsError where the cache folder cannot be written."""
    try:
        with replaced(folder) as fresh:
            write(fresh)
            (fresh / _SUMS).write_text(json.dumps(hashes_of(fresh)), encoding="utf-8")
    except OSError as error:
        raise unwritable(error) from error
    except IndexFolderError as error:
        raise SettingsError(f"{error}; set RAGBED_CACHE to a folder that can be written") from error
    made(folder)
