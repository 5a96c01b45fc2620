"""Files that are kept: hashes of them, manifests of folders, locks, writing whole or not at all, cleaning the cache."""
from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from filelock import FileLock

from ragbed.documents.errors import SettingsError
from ragbed.documents.json import loads
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest


def hold(file: Path, wait: bool = False) -> FileLock:
    """Keep every other process and thread from holding this file, until the lock is released or the process ends; with
    `wait`, once another one releases it. Folders are made where needed. Raises filelock.Timeout where another one holds
    it, and OSError, whose `strerror` says why, where the file cannot be made or written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file, timeout=-1 if wait else 0, thread_local=False)
    lock.acquire()
    return lock


UNUSED = 90 * 86_400  # seconds after which what nobody opened is removed


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
                if time.time() - entry.lstat().st_mtime <= UNUSED:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                    continue
                for end in ("", "-wal", "-shm"):  # of SQLite's files
                    entry.with_name(entry.name + end).unlink(missing_ok=True)


_LARGE = 8_000_000  # bytes of a file below which reading it takes less than 10 ms or so
_SETTLED = 2.0  # seconds after its last change at which no further change can have the same time


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unchanged_sha256(path: Path) -> str:
    """Return the SHA-256 of a file; of a large one that was not touched since it was last read, what was found then.

    The system sets a file's time of change (ctime) at every write, and no program can set it back: altered bytes are
    found whatever time of writing the file is given (on Windows, only where that is another). What is not found is
    damage below the file system. Small files, and those that changed within the last seconds, are always read: a
    clock's tick may hold two changes.
    """
    state = path.stat()
    seen: list[str | int] = [str(path.resolve()), state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino,
                             state.st_dev]
    settled = time.time() - max(state.st_mtime, state.st_ctime) > _SETTLED
    if state.st_size < _LARGE or not settled:
        return sha256_of(path)
    note = cache_dir() / "hashes" / f"{digest(*map(str, seen))}.json"
    with suppress(OSError, ValueError):
        known = json.loads(note.read_bytes())
        if isinstance(known, list) and known[:-1] == seen and isinstance(known[-1], str):
            opened(note)
            return known[-1]
    found = sha256_of(path)
    after = path.stat()
    if (after.st_size, after.st_ctime_ns, after.st_ino) == (state.st_size, state.st_ctime_ns, state.st_ino):
        with suppress(OSError):  # a cache that cannot be written costs time, no more
            note.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(note, json.dumps([*seen, found]).encode())
            made(note)
    return found


def unwritable(error: OSError) -> SettingsError:
    """Return the one-line error of a cache folder that cannot be written."""
    return SettingsError(f"cannot write the cache folder {cache_dir()} ({error.strerror}): "
                         "set RAGBED_CACHE to a folder that can be written")


# What to do where a file cannot be written; elsewhere, its place has to be made writable.
_REMEDIES: Mapping[int, str] = MappingProxyType({
    errno.ENOENT: "make the folder first", errno.ENOTDIR: "what it is to lie in is no folder; name another",
    **dict.fromkeys((errno.EISDIR, errno.EBUSY), "a folder has that name; name another file, or move the folder"),
    errno.ENAMETOOLONG: "give a shorter name"})


def why_unwritten(error: OSError, again: str = "the same command continues") -> str:
    """Return why a file of a run cannot be written, and what to do. `again`: how it goes on once there is space."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write: {error.strerror}; free space, and {again}"
    remedy = _REMEDIES.get(error.errno or 0, "make its folder writable, or copy that to where you can write")
    return f"cannot write: {error.strerror}; {remedy}"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a loss of power."""
    with in_place_of(path) as partial, partial.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def in_place_of(path: Path) -> Iterator[Path]:
    """Yield the path of a new file beside this one, whose place it takes if the body ends well."""
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


_OWN = "sha256"


def hashes_of(folder: Path) -> dict[str, str]:
    """SHA-256 of each file in a folder, by name."""
    return {path.name: sha256_of(path) for path in sorted(folder.iterdir())}


def seal(body: Mapping[str, Any], path: Path) -> None:
    """Write a manifest with its own hash."""
    text = json.dumps({_OWN: _hash(body), **body}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def body_of(path: Path) -> dict[str, Any] | None:
    """Read what a manifest says, whole or not; None where it holds no JSON object; OSError where it cannot be read."""
    try:
        body = loads(path.read_bytes(), mend=True)  # fast: equal names and halves fail the hash
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def unsealed(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a manifest says without its own hash; None where that is missing or not its hash."""
    rest = {name: value for name, value in body.items() if name != _OWN}
    return rest if body.get(_OWN) == _hash(rest) else None


def changed(files: Mapping[str, str], folder: Path, verify: bool = False) -> Path | None:
    """Return the first file that is missing or has another hash; None where all are as they were written. With `verify`
    every byte is read also of large files that did not change since they were last read (`unchanged_sha256`). Raises
    OSError where a file cannot be read."""
    for name, expected in files.items():
        path = folder / name
        if not path.is_file() or (sha256_of(path) if verify else unchanged_sha256(path)) != expected:
            return path
    return None


def _hash(body: object) -> str:
    canonical = json.dumps(body, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(canonical).hexdigest()
