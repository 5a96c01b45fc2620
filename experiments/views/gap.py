"""MRKE's gap: the same model on original questions and on their edited versions, paired."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.record import Result
from experiments.views.figures import change, figures
from experiments.views.types import Material, Value, View

ALL = "all"
_METRICS = ("em", "f1")


def gap(material: Material) -> View | None:
    """Every cell on the originals and on the edited questions of the same `pair`, by hops of the edited one.

    An original with several edited versions counts beside each of them. The change is the edited question's score
    less the original's, so memory that helps with the original makes it negative.
    """
    metrics = [name for name in _METRICS if any(name in result.scores for results in material.results.values()
                                                for result in results)]
    rows = [row for label, cell in material.labelled() for row in _rows(material, label, cell, metrics)]
    if not rows:
        return None
    header = [words for name in metrics for words in (f"{name}: original", f"{name}: edited", f"{name}: change")]
    order = {str(row[0]): None for row in sorted(rows, key=lambda row: str(row[0]))}
    rows = [row for hops in order for row in rows if row[0] == hops]
    return View("gap", "Original against edited questions", ("hops", "cell", "n", *header), tuple(rows), 2, 5,
                ("n counts pairs: an original counts once for each of its edited versions. The change is the edited "
                 "question's score less the original's.",))


def _rows(material: Material, label: str, cell: Mapping[str, Any], metrics: Sequence[str]) -> list[tuple[Value, ...]]:
    pairs = _pairs(material, cell)
    by_hops: dict[str, list[tuple[Result, Result]]] = {}
    for pair in pairs:
        for hops in material.questions[pair[1].question].tags.get("hops", ()):
            by_hops.setdefault(hops, []).append(pair)
    parts = by_hops if len(by_hops) > 1 else {}
    return [(hops, label, len(part), *_beside(material, cell, part, metrics))
            for hops, part in [*sorted(parts.items()), (ALL, pairs)] if part]


def _pairs(material: Material, cell: Mapping[str, Any]) -> list[tuple[Result, Result]]:
    """Original and edited, in the order of the edited ones."""
    originals: dict[str, Result] = {}
    for result in material.results[cell["id"]]:
        if _version(material, result) == "original":
            originals |= dict.fromkeys(_pair(material, result), result)
    return [(originals[name], result) for result in material.results[cell["id"]]
            if _version(material, result) == "edited" for name in _pair(material, result) if name in originals]


def _version(material: Material, result: Result) -> str:
    return next(iter(material.questions[result.question].tags.get("version", ())), "")


def _pair(material: Material, result: Result) -> tuple[str, ...]:
    return material.questions[result.question].tags.get("pair", ())


def _beside(material: Material, cell: Mapping[str, Any], pairs: Sequence[tuple[Result, Result]],
            metrics: Sequence[str]) -> list[Value]:
    originals = figures(material, cell, [first for first, _ in pairs], metrics)
    edited = figures(material, cell, [second for _, second in pairs], metrics)
    return [value for place, name in enumerate(metrics)
            for value in (originals[place], edited[place], change(material, pairs, name))]
