"""A folder with a manifest that holds the hashes of its other files, and its own."""
from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrieval.storage.files import sha256_of, unchanged_sha256

_OWN = "sha256"


def hashes_of(folder: Path) -> dict[str, str]:
    """SHA-256 of each file in a folder, by name."""
    return {path.name: sha256_of(path) for path in sorted(folder.iterdir())}


def seal(body: Mapping[str, Any], path: Path) -> None:
    """Write a manifest with its own hash."""
    text = json.dumps({_OWN: _hash(body), **body}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def body_of(path: Path) -> dict[str, Any] | None:
    """What a manifest says, whole or not; None where it holds no JSON object.

    Raises:
        OSError: it cannot be read.
    """
    try:
        body = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def unsealed(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a manifest says without its own hash; None where that is missing or not its hash."""
    rest = {name: value for name, value in body.items() if name != _OWN}
    try:
        return rest if body.get(_OWN) == _hash(rest) else None
    except RecursionError:
        return None


def changed(files: Mapping[str, str], folder: Path, verify: bool = False) -> Path | None:
    """The first file that is missing or has another hash; None where all are as they were written.

    Args:
        verify: read every byte also of large files that did not change since they were last read (`unchanged_sha256`).

    Raises:
        OSError: a file cannot be read.
    """
    for name, expected in files.items():
        path = folder / name
        if not path.is_file() or (sha256_of(path) if verify else unchanged_sha256(path)) != expected:
            return path
    return None


def _hash(body: object) -> str:
    canonical = json.dumps(body, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(canonical).hexdigest()
