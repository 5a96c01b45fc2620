"""Where ragbed keeps what it fetched or computed once: models, embeddings, verified hashes."""
from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_dir() -> Path:
    """The folder for things that can be made again: `RAGBED_CACHE`, else the platform's own; not created here."""
    chosen = os.environ.get("RAGBED_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return _platform_cache() / "ragbed"


def _platform_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    # The XDG specification says that a relative path is to be ignored.
    xdg = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return xdg if xdg.is_absolute() else Path.home() / ".cache"
