"""Hashes of model files, computed once and remembered by size, time and inode."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from documents.errors import ModelError
from documents.paths import cache_dir


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex; remembered in the cache folder until the file changes.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        stat = path.stat()
        stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        memory = _remembered()
        known = memory.get(str(path.resolve()))
        if isinstance(known, dict) and known.get("stamp") == stamp and isinstance(known.get("sha256"), str):
            return str(known["sha256"])
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None
    # A cache that cannot be written costs time at the next start and nothing else.
    with contextlib.suppress(OSError):
        _remember({**memory, str(path.resolve()): {"stamp": stamp, "sha256": found}})
    return found


def check(path: Path, sha256: str, remedy: str) -> None:
    """Refuse a file whose hash is not the expected one.

    Raises:
        ModelError: another hash, or the file cannot be read.
    """
    found = sha256_of(path)
    if found != sha256:
        raise ModelError(f"{path}: has sha256 {found[:16]}… instead of {sha256[:16]}…; {remedy}")


def _memory_path() -> Path:
    return cache_dir() / "hashes.json"


def _remembered() -> dict[str, Any]:
    try:
        found = json.loads(_memory_path().read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(memory: dict[str, Any]) -> None:
    target = _memory_path()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".hashes-")
    with os.fdopen(handle, "w") as file:
        json.dump(memory, file)
    os.replace(name, target)
