"""Where the files of an index were when it was built, so that what shows a document can show its file. It stands in the
cache: an index says nothing of the machine that it was made on."""
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
from ragbed.retrieval.storage.files import made, opened, write_atomically

_MOST = 50  # folders that are remembered of an index


def remember(out: Path, sources: Iterable[Source]) -> None:
    """Note the folders that sources were found in, before those of earlier builds; where the cache cannot be written,
    nothing is."""
    folders = {str(Path(os.path.abspath(source.path)).parents[source.relative.count("/")]) for source in sources}
    note = _note(out)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        known = list(dict.fromkeys([*sorted(folders), *_folders(note)]))[:_MOST]
        write_atomically(note, json.dumps(known).encode())
        made(note)


def file_of(folder: Path, source: str, sha256: str) -> bytes | None:
    """Return the bytes of a source of the index in a folder; None where its file is not where it was, or has not the
    SHA-256 that the manifest says."""
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
            opened(note)
            return known
    return []
