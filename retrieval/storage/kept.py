"""Folders of the cache that are made once, whole or not at all, and checked when they are opened."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from documents.errors import IndexFolderError, SettingsError
from retrieval.storage.files import unwritable
from retrieval.storage.folder import replaced
from retrieval.storage.sealed import changed, hashes_of
from retrieval.storage.unused import made, opened

_SUMS = "sums.json"


def is_whole(folder: Path) -> bool:
    """Whether the folder is there with every file as it was written; it counts as opened then."""
    try:
        sums = json.loads((folder / _SUMS).read_bytes())
        if not isinstance(sums, dict) or not sums or changed(sums, folder) is not None:
            return False
    except (OSError, ValueError, RecursionError):
        return False
    opened(folder)
    return True


def keep(folder: Path, write: Callable[[Path], None]) -> None:
    """Make the folder, in the place of one that is damaged; to be used while `alone`.

    Args:
        write: writes its files into a new folder.

    Raises:
        SettingsError: the cache folder cannot be written.
    """
    try:
        with replaced(folder) as fresh:
            write(fresh)
            (fresh / _SUMS).write_text(json.dumps(hashes_of(fresh)), encoding="utf-8")
    except OSError as error:
        raise unwritable(error) from error
    except IndexFolderError as error:
        raise SettingsError(f"{error}; set RAGBED_CACHE to a folder that can be written") from error
    made(folder)
