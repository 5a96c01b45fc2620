"""The folder that an index is to stand in: nothing but an index is ever replaced."""
from __future__ import annotations

from pathlib import Path

from documents.errors import IndexFolderError
from retrieval.storage.folder import set_aside
from retrieval.storage.manifest import CHUNKS, DOCUMENTS, MANIFEST, VECTORS, is_manifest

OWN_FILES = {MANIFEST, VECTORS, CHUNKS, DOCUMENTS}


def check_place(out: Path) -> None:
    """Raise IndexFolderError where `out` holds something else than an index, or cannot be used."""
    try:
        if out.exists() and not out.is_dir():
            raise IndexFolderError(f"{out} is a file: name a folder for the index")
        for replaceable in (out, set_aside(out)):
            if replaceable.is_dir():
                _check_own(replaceable)
    except OSError as error:
        raise IndexFolderError(f"{out} cannot be used: {error.strerror}; name another folder") from error


def _check_own(folder: Path) -> None:
    """Other things too have a file called manifest.json."""
    names = {path.name for path in folder.iterdir()}
    strange = sorted(names - OWN_FILES)
    if names and not (names == OWN_FILES or is_manifest(folder / MANIFEST)):
        raise IndexFolderError(f"{folder} is not empty and is no index: name another folder")
    if strange:
        raise IndexFolderError(f"{folder} is an index, but also holds {strange[0]}, which would be lost: move it away, "
                               "or name another folder")
