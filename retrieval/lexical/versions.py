"""The versions of libraries that decide what tokens and scores are."""
from __future__ import annotations

import importlib.metadata
from functools import cache


@cache
def version_of(*distributions: str) -> str:
    """Their names and versions; one that is not installed is said to be absent."""
    return ", ".join(f"{name} {_version(name)}" for name in distributions)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
