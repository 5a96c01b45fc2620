"""Checking model files against their hashes."""
from __future__ import annotations

from pathlib import Path

from documents.errors import ModelError
from retrieval.storage.files import remembered_sha256


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex; remembered until the file changes.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        return remembered_sha256(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from None


def check(path: Path, sha256: str, remedy: str) -> None:
    """Refuse a file whose hash is not the expected one.

    Raises:
        ModelError: another hash, or the file cannot be read.
    """
    found = sha256_of(path)
    if found != sha256:
        raise ModelError(f"{path}: has sha256 {found[:16]}… instead of {sha256[:16]}…; {remedy}")
