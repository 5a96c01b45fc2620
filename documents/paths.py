"""Resolve paths that users name, and find the cache folder, processor cores and the environment of child processes."""
from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import BinaryIO

from ragbed.documents.errors import BenchmarkError

_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_MAX_SHOWN = 60  # characters of a path in a message


def count_cores() -> int:
    """Count the processor cores that this process may use, which a container or `taskset` may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keep_hidden_text() -> bool:
    """Return whether parsers keep text that a reader cannot see, because `RAGBED_KEEP_HIDDEN` is set."""
    return bool(os.environ.get("RAGBED_KEEP_HIDDEN"))


def child_environment(**changes: str) -> dict[str, str]:
    """Return this process's environment without secrets and with `changes`, for a child process that needs no key. The
    child can import ragbed from any folder."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(_SECRET_ENDINGS)}
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), **changes}


def cache_dir() -> Path:
    """Return ragbed's cache folder, which need not exist: `RAGBED_CACHE`, or the platform's usual place."""
    named = os.environ.get("RAGBED_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ragbed"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ragbed" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragbed"


def open_file(path: Path, max_bytes: int | None = None) -> BinaryIO:
    """Open a file for reading. Raises OSError for a pipe or device too, since reading one might never end, and for a
    file of more than `max_bytes`."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "a pipe or a device, not a file", str(path))
    if max_bytes is not None and path.is_file() and path.stat().st_size > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes:,} bytes", str(path))
    return path.open("rb")


def expand_path(path: str | Path) -> Path:
    """Expand `~` in a path, which need not exist. Raises BenchmarkError if it is empty or not a valid path."""
    if not str(path).strip():
        raise BenchmarkError("an empty path; name a file or a folder")
    try:
        place = Path(path).expanduser()
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return place
    except (OSError, ValueError, RuntimeError) as error:
        shown = str(path) if len(str(path)) <= _MAX_SHOWN else f"{str(path)[:_MAX_SHOWN]}..."
        raise BenchmarkError(f"{shown!r}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return place
