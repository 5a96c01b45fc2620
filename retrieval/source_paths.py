"""Remember where the files of an index were when it was built, so that viewers can show the original file of a
document.

The paths are in the cache, because an index contains nothing about the machine that built it."""
from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ragbed.documents.paths import cache_dir
from ragbed.documents.sources import MAX_BYTES, Source
from ragbed.documents.types import digest
from ragbed.retrieval.storage.files import mark_new, mark_used, write_atomically

_MAX_FOLDERS = 50  # folders remembered per index


def remember_folders(out: Path, sources: Iterable[Source]) -> None:
    """Remember the folders of sources, ahead of those of earlier builds. Does nothing without a writable cache."""
    places = {(os.path.dirname(source.path), source.relative.count("/")) for source in sources}
    folders = {str(Path(os.path.abspath(folder), "file").parents[depth]) for folder, depth in places}
    note = _note(out)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        known = list(dict.fromkeys([*sorted(folders), *_folders(note)]))[:_MAX_FOLDERS]
        write_atomically(note, json.dumps(known).encode())
        mark_new(note)


def read_source(folder: Path, source: str, sha256: str) -> bytes | None:
    """Return the bytes of a source of the index in a folder; None if its file was moved or has another SHA-256."""
    for place in _folders(_note(folder)):
        path = Path(place, source)
        with suppress(OSError, ValueError):
            if path.is_file() and path.stat().st_size <= MAX_BYTES:
                data = path.read_bytes()
                if hashlib.sha256(data).hexdigest() == sha256:
                    return data
    return None


def _note(folder: Path) -> Path:
    return cache_dir() / "origins" / f"{digest(os.path.realpath(folder))}.json"


def _folders(note: Path) -> list[str]:
    with suppress(OSError, ValueError):
        known = json.loads(note.read_bytes())
        if isinstance(known, list) and all(isinstance(one, str) for one in known):
            mark_used(note)
            return known
    return []
