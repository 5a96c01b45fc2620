"""Places: the path that a user names, the cache folder, and the processors that this process may use."""
from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import BinaryIO

import ragbed
from ragbed.documents.errors import BenchmarkError


def processors() -> int:
    """Count the processors that this process may use: a container or `taskset` may leave fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keeps_hidden() -> bool:
    """Tell whether what no reader of a document can see is kept: `RAGBED_KEEP_HIDDEN` is set."""
    return bool(os.environ.get("RAGBED_KEEP_HIDDEN"))


_SECRETS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")  # what names of variables end in that hold one


def child_environment(**changes: str) -> dict[str, str]:
    """Return the environment for a process of ours that needs no key: this one's without secrets, with the
    folder of these packages on its path wherever it is started, and with the changes."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(_SECRETS)}
    paths = [str(Path(ragbed.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), **changes}


def cache_dir() -> Path:
    """Return the user's cache folder of ragbed, which need not exist: `RAGBED_CACHE`, else the platform's own place."""
    named = os.environ.get("RAGBED_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ragbed"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ragbed" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragbed"


def open_file(path: Path) -> BinaryIO:
    """Open a file to read it; OSError also where it is a pipe or a device, which may never come to an end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "a pipe or a device, and no file", str(path))
    return path.open("rb")


_SHOWN = 60  # characters of a path that is none


def local(path: str | Path) -> Path:
    """Return the place that a path names, `~` expanded, whether or not something is there. Raises BenchmarkError where
    the path is empty, or can name nothing on this machine."""
    if not str(path).strip():
        raise BenchmarkError("an empty path; name a file or a folder")
    try:
        place = Path(path).expanduser()
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return place
    except (OSError, ValueError, RuntimeError) as error:
        said = str(path) if len(str(path)) <= _SHOWN else f"{str(path)[:_SHOWN]}..."
        raise BenchmarkError(f"{said!r}: no path that can be read: {getattr(error, 'strerror', None) or error}"
                             ) from error
    return place
