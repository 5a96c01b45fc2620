"""A chunker by its name alone."""
from __future__ import annotations

from typing import Any


def by_name(value: Any) -> Any:
    """The settings that a kind's name stands for: its defaults. Anything else as it is."""
    return {"kind": value} if isinstance(value, str) else value
