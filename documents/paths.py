"""Where ragbed keeps what it may compute or fetch again."""
from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_dir() -> Path:
    """The user's cache folder of ragbed: `RAGBED_CACHE`, else the platform's own place.

    The folder need not exist yet.
    """
    named = os.environ.get("RAGBED_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ragbed"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ragbed" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ragbed"
