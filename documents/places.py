"""The place that a path names."""
from __future__ import annotations

from pathlib import Path

from documents.errors import BenchmarkError

_SHOWN = 60  # characters of a path that is none


def local(path: str | Path) -> Path:
    """The place that a path names, `~` expanded, whether or not something is there.

    Raises:
        BenchmarkError: the path is empty, or can name nothing on this machine.
    """
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
