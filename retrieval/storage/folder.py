"""Replace a folder completely or not at all, by one process at a time. If the folder is a link, its target is
replaced."""
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
from ragbed.retrieval.storage.files import find_changed, hash_files, hold, mark_new, mark_used, read_object, unwritable


def current_folder(folder: Path) -> Path:
    """Return the folder, or its backup if a process was killed while replacing it."""
    aside = backup_of(folder)
    try:
        return aside if aside.is_dir() and not folder.exists() else folder
    except OSError:
        return folder  # reading the folder will raise the error


def backup_of(folder: Path) -> Path:
    """Return the path of the backup, which has the old content while the folder is being replaced."""
    real = _real(folder)
    return real.parent / f".{real.name}.old"


@contextmanager
def exclusive(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold a lock that keeps other processes from replacing the folder. The lock file is in the cache.

    Args:
        wait: wait for another process that holds the lock.

    Raises:
        IndexFolderError: another process holds the lock, and `wait` is false.
        SettingsError: the cache folder cannot be written.
    """
    try:
        lock = hold(cache_dir() / "locks" / digest(str(_real(folder))), wait)
    except Timeout as error:
        raise IndexFolderError(f"{folder} is being built by another process; wait for it, or name another "
                               "folder") from error
    except OSError as error:
        raise unwritable(error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Yield a new folder, which replaces `folder` if the block succeeds. Hold `exclusive(folder)` meanwhile. If the
    process is killed, `current_folder` finds the old content or the new. Raises IndexFolderError if the folder cannot
    be written."""
    folder = _real(folder)
    with write_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _clean(folder)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_prefix(folder)))
        fresh.chmod(0o755)
    try:
        yield fresh
        with write_errors(folder):
            for path in (*fresh.iterdir(), fresh):
                _sync(path)
            _swap(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes left next to a folder. Hold `exclusive(folder)`."""
    real = _real(folder)
    with write_errors(folder):
        _clean(real)
        _remove(backup_of(real))


@contextmanager
def write_errors(folder: Path) -> Iterator[None]:
    """Turn OSError into IndexFolderError."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno not in (None, errno.EIO) else error.strerror or str(error)
        raise IndexFolderError(f"{folder} cannot be written: {reason}") from error


def _real(folder: Path) -> Path:
    return Path(os.path.realpath(folder))


def _swap(fresh: Path, folder: Path) -> None:
    aside = backup_of(folder)
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
        # Rename it first, so that a half-removed folder is not taken for a backup.
        folder = path.with_name(path.name.removeprefix(".").removesuffix(".old"))
        waste = path.parent / f"{_prefix(folder)}{uuid4().hex}"
        os.rename(path, waste)
        shutil.rmtree(waste, ignore_errors=True)


def _prefix(folder: Path) -> str:
    """Return the prefix of new folders' names. It identifies the machine and the cache of the lock."""
    return f".{folder.name}.new-{digest(platform.node(), os.path.realpath(cache_dir()))[:8]}-"


def _clean(folder: Path) -> None:
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
    """Tell whether every file of a cache folder is unchanged, and mark the folder as used."""
    try:
        sums = read_object(folder / _SUMS)
        if not sums or find_changed(sums, folder) is not None:
            return False
    except OSError:
        return False
    mark_used(folder)
    return True


def keep(folder: Path, write: Callable[[Path], None]) -> None:
    """Create a cache folder with the function `write`, which fills a new folder. Hold `exclusive(folder)`. Raises
    SettingsError if the cache folder cannot be written."""
    try:
        with replacing(folder) as fresh:
            write(fresh)
            (fresh / _SUMS).write_text(json.dumps(hash_files(fresh)), encoding="utf-8")
    except OSError as error:
        raise unwritable(error) from error
    except IndexFolderError as error:
        raise SettingsError(f"{error}; set RAGBED_CACHE to a writable folder") from error
    mark_new(folder)
