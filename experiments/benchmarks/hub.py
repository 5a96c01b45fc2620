"""Load benchmarks by name from the Hugging Face hub, through its own cache."""
from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from ragbed.documents.errors import BenchmarkError
from ragbed.documents.paths import expand_path

_PREFIX = "hub:"
CARD = "card.json"
"""The file that describes what `ragbed construct` built in its folder."""
_ONLY_CACHED = ContextVar("_ONLY_CACHED", default=False)


@contextmanager
def only_cached() -> Iterator[None]:
    """Disable downloads inside this context, as `HF_HUB_OFFLINE=1` does, since a replay must open no connection."""
    before = _ONLY_CACHED.set(True)
    try:
        yield
    finally:
        _ONLY_CACHED.reset(before)


def fetch_files(path: str, also: tuple[str, ...] = ()) -> Path:
    """Return the local path of a benchmark.

    `hub:OWNER/NAME` or `hub:OWNER/NAME@REVISION` means the Parquet and JSON files of a data set on the hub, and files
    that match the patterns in `also`. They are downloaded unless the cache has them or `HF_HUB_OFFLINE=1` is set.
    Raises BenchmarkError if they are not cached and cannot be fetched, or a local path does not exist.
    """
    if not path.startswith(_PREFIX):
        place = expand_path(path)
        if not place.exists():
            raise BenchmarkError(f"{path}: no such file or folder")
        return _own_format(place)
    try:
        return _snapshot(path, ["*.parquet", "*.jsonl", "*.json", *also], _ONLY_CACHED.get())
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        why = "is not fetched by a replay" if _ONLY_CACHED.get() else f"could not be fetched ({reason})"
        raise BenchmarkError(f"{path}: not in the hub's cache and {why}; give the path of a folder with "
                             "the files") from error


def _own_format(place: Path) -> Path:
    try:
        card = json.loads((place / CARD).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # the card is not from ragbed
        return place
    kind = card.get("kind") if isinstance(card, dict) else None
    return place / kind if isinstance(kind, str) and (place / kind).is_dir() else place


def is_cached(path: str) -> bool:
    """Return whether files of a `hub:` path are in the hub's cache, without fetching anything."""
    try:
        return bool(_snapshot(path, None, only_cached=True))
    except (OSError, ValueError):
        return False


def _snapshot(path: str, patterns: list[str] | None, only_cached: bool) -> Path:
    from huggingface_hub import snapshot_download

    name, _, revision = path.removeprefix(_PREFIX).partition("@")
    return Path(snapshot_download(name, repo_type="dataset", revision=revision or None, allow_patterns=patterns,
                                  local_files_only=only_cached))
