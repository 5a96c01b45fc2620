"""Downloading one file: bounded, hashed while it comes, and in place only when it is whole and right.

Checking model files against their hashes.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

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


Progress = Callable[[int, "int | None"], None]
_SECONDS = 60.0  # without a byte
_STALE = 6 * 3600.0  # seconds after which a left-over part belongs to nobody any more
_BLOCK = 1 << 18


@contextlib.contextmanager
def web() -> Iterator[httpx2.Client]:
    """An HTTP client that follows redirects and trusts the certificates that pip was told to trust."""
    bundle = os.environ.get("PIP_CERT")
    try:
        verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=bundle) if bundle else True
        client = httpx2.Client(timeout=_SECONDS, follow_redirects=True, verify=verify)
    except (OSError, ValueError, ImportError) as error:
        # The message may hold the proxy's password.
        raise ModelError("the proxy or certificates named in the environment cannot be used "
                         f"({type(error).__name__}); see PIP_CERT, SSL_CERT_FILE, HTTPS_PROXY, ALL_PROXY") from None
    with client:
        yield client


@contextlib.contextmanager
def named_errors(what: str, url: str) -> Iterator[None]:
    """Turn what can go wrong on the way into one line that names the model and the host."""
    host = urlsplit(url).hostname or "the index"
    try:
        yield
    except httpx2.HTTPStatusError as error:
        raise ModelError(f"{what}: {host} answers HTTP {error.response.status_code}") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ModelError(f"{what}: {host} cannot be reached or broke off ({type(error).__name__}); try again") from None
    except OSError as error:
        raise ModelError(f"{what}: cannot be written: {error.strerror or error}") from None


@contextlib.contextmanager
def part_file(folder: Path, name: str) -> Iterator[Path]:
    """A temporary path below `folder`, gone at the end. What killed downloads left there long ago is removed too."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _STALE:
                shutil.rmtree(old) if old.is_dir() else old.unlink()
    handle, path = tempfile.mkstemp(dir=folder, prefix=f".{name}-", suffix=".part")
    os.close(handle)
    try:
        yield Path(path)
    finally:
        Path(path).unlink(missing_ok=True)


def download(client: httpx2.Client, url: str, to: Path, most: int, progress: Progress) -> str:
    """Stream a URL into a file and return its SHA-256.

    Raises:
        ModelError: more than `most` bytes came.
    """
    state, done = hashlib.sha256(), 0
    with client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer, to.open("wb") as file:
        answer.raise_for_status()
        length = answer.headers.get("content-length", "")
        total = int(length) if length.isdigit() else None
        for block in answer.iter_bytes(_BLOCK):
            done += len(block)
            if done > most:
                raise ModelError(f"{urlsplit(url).hostname}: sends more than the {most} bytes that were expected")
            state.update(block)
            file.write(block)
            progress(done, total)
    return state.hexdigest()
