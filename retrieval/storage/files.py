"""Files: hashes, sealed manifests, locks, atomic writes, and cleaning the cache."""
from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from filelock import FileLock

from ragbed.documents.errors import RunError, SettingsError
from ragbed.documents.json import loads
from ragbed.documents.paths import cache_dir
from ragbed.documents.types import digest


def hold(file: Path, wait: bool = False) -> FileLock:
    """Lock a file against other processes and threads, until the lock is released or the process ends. Missing folders
    are created. If another process holds the lock, wait for it if `wait` is set, and otherwise raise filelock.Timeout.
    Raises OSError if the file cannot be written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file, timeout=-1 if wait else 0, thread_local=False)
    lock.acquire()
    return lock


_UNUSED = 90 * 86_400  # seconds after which unused entries of the cache are removed


def mark_used(entry: Path) -> None:
    """Mark a file or folder of the cache as used, so that it is kept."""
    with suppress(OSError):  # if this fails, the entry may be removed, and is made again when needed
        os.utime(entry)


def mark_new(entry: Path) -> None:
    """Mark a file or folder of the cache as used and, once per process, remove unused ones next to it."""
    mark_used(entry)
    _remove_unused(entry.parent)


@cache
def _remove_unused(folder: Path) -> None:
    with suppress(OSError):
        for entry in list(folder.iterdir()):
            with suppress(OSError):
                if time.time() - entry.lstat().st_mtime <= _UNUSED:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                    continue
                for end in ("", "-wal", "-shm"):  # suffixes of SQLite's files
                    entry.with_name(entry.name + end).unlink(missing_ok=True)


_BLOCK = 65_536  # bytes to read at once
_LARGE = 8_000_000  # bytes; smaller files are read in about 10 ms
_SETTLED = 2.0  # seconds after which another change certainly gets a different time


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex digits."""
    state = hashlib.sha256()  # `hashlib.file_digest` takes twice as long for a small file
    with open(path, "rb", buffering=0) as stream:
        while block := stream.read(_BLOCK):
            state.update(block)
    return state.hexdigest()


def sha256_of_span(path: Path, first: int, end: int) -> str:
    """Return the SHA-256 of the bytes from `first` to `end`, in hex digits."""
    with path.open("rb") as stream:
        stream.seek(first)
        return hashlib.sha256(stream.read(end - first)).hexdigest()


def unchanged_sha256(path: Path) -> str:
    """Return the SHA-256 of a file. A large file is read again only if it has changed since the last time.

    The system sets a file's time of change (ctime) at every write, and programs cannot set it back. So altered bytes
    are found even if the modification time is forged (not on Windows). Damage below the file system is not found. Small
    files, and files that changed within the last two seconds, are always read.
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
            mark_used(note)
            return known[-1]
    found = sha256_of(path)
    after = path.stat()
    if (after.st_size, after.st_ctime_ns, after.st_ino) == (state.st_size, state.st_ctime_ns, state.st_ino):
        with suppress(OSError):  # without a writable cache, files are read again
            note.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(note, json.dumps([*seen, found]).encode())
            mark_new(note)
    return found


def unwritable(error: OSError) -> SettingsError:
    """Return the error to raise if the cache folder cannot be written."""
    return SettingsError(f"cannot write the cache folder {cache_dir()} ({error.strerror}); "
                         "set RAGBED_CACHE to a writable folder")


# Advice if a file cannot be written.
_REMEDIES: Mapping[int, str] = MappingProxyType({
    errno.ENOENT: "make the folder first", errno.ENOTDIR: "its parent is not a folder; name another path",
    **dict.fromkeys((errno.EISDIR, errno.EBUSY), "a folder has this name; name another file, or move the folder"),
    errno.ENAMETOOLONG: "give a shorter name"})


def explain_write_error(error: OSError) -> str:
    """Explain why a file of a run cannot be written, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write: {error.strerror}; free space, and rerun the command to continue"
    remedy = _REMEDIES.get(error.errno or 0, "make its folder writable, or copy it to a writable place")
    return f"cannot write: {error.strerror}; {remedy}"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file completely or not at all, even if power is lost."""
    with replacing_file(path) as partial, partial.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


_MAX_BEGINNING = 4096  # bytes


def check_replaceable(path: Path, is_ours: Callable[[bytes], object]) -> None:
    """Raise RunError unless the path does not exist, is an empty file, or `is_ours` of its first bytes is true."""
    if path.is_dir():
        raise RunError(f"{path} is a folder; name a file")
    if not path.exists():
        return
    if not path.is_file():
        raise RunError(f"{path} is a device or a pipe; name a file")
    try:
        with path.open("rb") as stream:
            beginning = stream.read(_MAX_BEGINNING)
    except OSError as error:
        raise RunError(f"{path} exists and cannot be read: {error.strerror}; name another file") from error
    if beginning and not is_ours(beginning):
        raise RunError(f"{path} exists and is not an earlier export in this format; name another file")


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Yield the path of a new file, which replaces this one if the block succeeds."""
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


_OWN = "sha256"


def hash_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder, by name."""
    return {path.name: sha256_of(path) for path in sorted(folder.iterdir())}


def write_sealed(body: Mapping[str, Any], path: Path) -> None:
    """Write a manifest with a hash of itself."""
    text = json.dumps({_OWN: _hash(body), **body}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_object(path: Path) -> dict[str, Any] | None:
    """Read a JSON object without checking its hash; None if it is not one. Raises OSError if it cannot be read."""
    try:
        body = loads(path.read_bytes(), mend=True)  # `mend` is faster, and duplicate keys cannot pass the hash check
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def check_seal(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a manifest without its hash; None if the hash is missing or wrong."""
    rest = {name: value for name, value in body.items() if name != _OWN}
    return rest if body.get(_OWN) == _hash(rest) else None


def find_changed(files: Mapping[str, str], folder: Path, verify: bool = False) -> Path | None:
    """Return the first file that is missing or has another hash; None if all are unchanged. With `verify`, every file
    is read, even those that `unchanged_sha256` would skip. Raises OSError if a file cannot be read."""
    for name, expected in files.items():
        path = folder / name
        if not path.is_file() or (sha256_of(path) if verify else unchanged_sha256(path)) != expected:
            return path
    return None


def _hash(body: object) -> str:
    canonical = json.dumps(body, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(canonical).hexdigest()
