"""Hashes of files, remembered while a file keeps its size and time of change."""
from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

from documents.errors import SettingsError
from documents.paths import cache_dir
from documents.types import digest


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def remembered_sha256(path: Path) -> str:
    """As `sha256_of`, computed once as long as path, size and time of change stay the same.

    Raises:
        SettingsError: the cache folder cannot be written.
    """
    state = path.stat()
    seen = [str(path.resolve()), state.st_size, state.st_mtime_ns]
    note = cache_dir() / "hashes" / f"{digest(*map(str, seen))}.json"
    try:
        known = json.loads(note.read_bytes())
    except (OSError, ValueError):
        known = None
    if isinstance(known, list) and known[:3] == seen and len(known) == 4:
        return str(known[3])
    found = sha256_of(path)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(note, json.dumps([*seen, found]).encode())
    except OSError as error:
        raise unwritable(error) from error
    return found


def unwritable(error: OSError) -> SettingsError:
    """The one-line error of a cache folder that cannot be written."""
    return SettingsError(f"cannot write the cache folder {cache_dir()} ({error.strerror}): "
                         "set RAGBED_CACHE to a folder that can be written")


# What to do where a file cannot be written; elsewhere, its place has to be made writable.
_REMEDIES: Mapping[int, str] = MappingProxyType({
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free space, and the same command continues"),
    errno.ENOENT: "make the folder first", errno.ENOTDIR: "what it is to lie in is no folder; name another",
    **dict.fromkeys((errno.EISDIR, errno.EBUSY), "a folder has that name; name another file, or move the folder"),
    errno.ENAMETOOLONG: "give a shorter name"})


def why_unwritten(error: OSError) -> str:
    """Why a file of a run cannot be written, and what to do."""
    remedy = _REMEDIES.get(error.errno or 0, "make its folder writable, or copy that to where you can write")
    return f"cannot write: {error.strerror}; {remedy}"


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a loss of power."""
    partial = path.parent / f".{path.name}.{uuid4().hex[:8]}"
    try:
        with partial.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
