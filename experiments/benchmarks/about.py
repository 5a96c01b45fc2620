"""About: what a benchmark is, for whoever chooses one, and how its paper ran it."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class About:
    """A benchmark in words.

    Attributes:
        paper: title, authors and year, with its address.
        licence: of the data.
        size: how many questions, of what.
        get: where the files are had, and what of them `path` names.
        settings: a run's settings as the paper has them, where they are not ragbed's usual ones.
        as_published: the benchmark's own settings that as-published scoring implies where they are not given.
    """

    paper: str
    licence: str
    size: str
    get: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    as_published: Mapping[str, Any] = field(default_factory=dict)
