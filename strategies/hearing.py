"""Listening to a strategy inside another: what it asks for passes through, and what its answer was shown is kept."""
from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any

from strategies.reading import fold
from strategies.types import Asked, Draft, Evidence, Generate, Passage, Recipe, Result, Search

Heard = Generator[Asked, Any, tuple[Draft, Evidence]]


def heard(recipe: Recipe) -> Heard:
    """Play the recipe, and return its draft with the evidence that its last call for an answer was shown.

    Later prompts over that evidence then begin with the bytes that the draft's prompt began with. A recipe that
    ended without a call for an answer has seen all that it found.
    """
    found: dict[int, Passage] = {}
    shown: tuple[int, ...] | None = None
    results: Any = None
    with contextlib.closing(recipe):
        while True:
            try:
                asked = recipe.send(results)
            except StopIteration as end:
                return end.value, tuple(found.values()) if shown is None else tuple(
                    found[number] for number in shown if number in found)
            results = yield asked
            for action, result in _pairs(asked, results):
                if isinstance(action, Search) and isinstance(result, tuple):
                    found |= {passage.number: passage for passage in result}
                elif isinstance(action, Generate) and action.purpose == "answer":
                    shown = action.shown


def _pairs(asked: Asked, results: Any) -> Iterable[tuple[Any, Result]]:
    return zip(asked, results, strict=True) if isinstance(asked, list) else [(asked, results)]


def revised(before: Draft, after: Draft, *notes: str, **figures: float) -> Draft:
    """The later draft with what both measured and noted, and whether it differs: the figure `revised`, 1.0 or 0.0."""
    measured: Mapping[str, float] = {**before.figures, **after.figures, **figures,
                                     "revised": float(fold(before.text) != fold(after.text))}
    return replace(after, notes=tuple(dict.fromkeys([*before.notes, *after.notes, *notes])), figures=measured)
