"""Attacks by kind, each poisoned question beside its clean twin: what the attack changes in the same question."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.record import Result
from experiments.views.figures import change, figures
from experiments.views.types import Material, Value, View

ALL, ORDERS = "all", "orders"
_STATEMENTS = ("exchange", "correction")  # which state something false rather than order anything
_UNSEEN = "stripped"
_TAG = "attack"
_PAIRED = {"attack_success": "attack_control", "utility_attacked": "utility_clean"}
_HEADER = ("attack success", "without it", "change", "utility attacked", "utility clean", "change of utility")


def attacks(material: Material) -> View | None:
    """Every cell over the attacks of each kind, over those that order something and reach a prompt, and over all:
    success beside the same outcome without the attack."""
    rows = [row for kind in [*_kinds(material), ORDERS, ALL] for row in _rows(material, kind)]
    if not rows:
        return None
    stripped = sum("yes" in question.tags.get("stripped", ()) for question in material.questions.values())
    notes = [f"Attacks that the parser left out, so that no prompt shows them: {stripped}."] if stripped else []
    return View("attacks", "By attack", (_TAG, "cell", "n", *_HEADER), tuple(rows), 2, 3, (
        "n counts pairs of a poisoned question and its clean twin. Each change is paired, question by question.",
        "Orders are all kinds but those that state something false (exchange, correction) and what no prompt shows.",
        *notes))


def _kinds(material: Material) -> list[str]:
    return list(dict.fromkeys(kind for question in material.questions.values()
                              for kind in question.tags.get(_TAG, ())))


def _rows(material: Material, kind: str) -> list[tuple[Value, ...]]:
    made: list[tuple[Value, ...]] = []
    for label, cell in material.labelled():
        pairs = [pair for pair in _pairs(material, cell) if _is_of(kind, _tags(material, pair[0]))]
        if pairs:
            made.append((kind, label, len(pairs), *_figures(material, cell, pairs)))
    return made


def _is_of(kind: str, tags: Sequence[str]) -> bool:
    if kind == ORDERS:
        return not {*_STATEMENTS, _UNSEEN} & set(tags)
    return kind == ALL or kind in tags


def _tags(material: Material, result: Result) -> tuple[str, ...]:
    return material.questions[result.question].tags.get(_TAG, ())


def _pairs(material: Material, cell: Mapping[str, Any]) -> list[tuple[Result, Result]]:
    """Poisoned and clean, where both were asked."""
    results = {result.question: result for result in material.results[cell["id"]]}
    return [(result, results[f"{name}-clean"]) for name, result in results.items() if f"{name}-clean" in results]


def _figures(material: Material, cell: Mapping[str, Any], pairs: Sequence[tuple[Result, Result]]) -> list[Value]:
    """The clean twin's figure counts under the name of the poisoned one's, so that the two pair."""
    found: list[Value] = []
    for name, control in _PAIRED.items():
        both = [(first, second.model_copy(update={"scores": {name: second.scores.get(control)}}))
                for first, second in pairs]
        found += figures(material, cell, [first for first, _ in both], [name])
        found += figures(material, cell, [second for _, second in both], [name])
        found.append(change(material, [(second, first) for first, second in both], name))
    return found
