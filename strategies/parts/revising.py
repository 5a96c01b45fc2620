"""Strategies that write an answer a second time: what the draft before it hands on."""
from __future__ import annotations

from dataclasses import replace

from strategies.reading import fold
from strategies.types import Draft

NO_ANSWER = "(no answer)"
"""What stands for a draft that has none."""


def revised(before: Draft, after: Draft, **figures: float) -> Draft:
    """The later draft with the notes and figures of both.

    Args:
        figures: more of them. With them comes `revised`: 1.0 where the two say different things, else 0.0.
    """
    changed = {"revised": float(fold(before.text) != fold(after.text))}
    return replace(after, notes=tuple(dict.fromkeys([*before.notes, *after.notes])),
                   figures={**before.figures, **after.figures, **figures, **changed})
