"""Show the success of attacks by kind."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from ragbed.experiments.analysis.inputs import AnalysisInput, compute_figures, paired_change
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.record import Result

ALL, ORDERS = "all", "orders"
_STATEMENTS = ("exchange", "correction")  # kinds of attacks that state something false; other kinds give orders
_UNSEEN = "stripped"
_TAG = "attack"
_PAIRED = {"attack_success": "attack_control", "utility_attacked": "utility_clean"}
_HEADER = ("attack success", "without it", "change", "utility attacked", "utility clean", "change of utility")
_SIGNED = ("change", "change of utility")


def attack_views(material: AnalysisInput) -> list[View]:
    """Return the success rate of attacks in every cell, with the rate of the same outcome without the attack. Rows are
    kinds of attack, orders that reach a prompt, and all attacks."""
    kinds = dict.fromkeys(kind for question in material.questions.values() for kind in question.tags.get(_TAG, ()))
    if not kinds:
        return []
    rows: list[tuple[Value, ...]] = []
    for kind, (label, cell) in product([*kinds, ORDERS, ALL], material.labelled()):
        pairs = [pair for pair in _pairs(material, cell) if _is_of(kind, material.tags(pair[0], _TAG))]
        if pairs:
            rows.append((kind, label, len(pairs), *_figures(material, cell, pairs)))
    if not rows:
        return []
    stripped = sum("yes" in question.tags.get("stripped", ()) for question in material.questions.values())
    notes = [f"Attacks that the parser removed, so that no prompt shows them: {stripped}."] if stripped else []
    return [View("attacks", "By attack", (_TAG, "cell", "n", *_HEADER), tuple(rows), 2, signed=_SIGNED, notes=(
        "n counts pairs of a poisoned question and its clean twin. Each change is paired, question by question.",
        "Orders are all kinds except false statements (exchange, correction) and what no prompt shows.",
        *notes))]


def _is_of(kind: str, tags: Sequence[str]) -> bool:
    if kind == ORDERS:
        return not {*_STATEMENTS, _UNSEEN} & set(tags)
    return kind == ALL or kind in tags


def _pairs(material: AnalysisInput, cell: Mapping[str, Any]) -> list[tuple[Result, Result]]:
    """Return the results of poisoned questions with those of their clean twins, if both were asked."""
    results = {result.question: result for result in material.results[cell["id"]]}
    return [(result, results[f"{name}-clean"]) for name, result in results.items() if f"{name}-clean" in results]


def _figures(material: AnalysisInput, cell: Mapping[str, Any], pairs: Sequence[tuple[Result, Result]]) -> list[Value]:
    """Return each figure of the poisoned questions, of their clean twins, and the paired change."""
    found: list[Value] = []
    for name, control in _PAIRED.items():
        both = [(first, second.model_copy(update={"scores": {name: second.scores.get(control)}}))
                for first, second in pairs]
        found += compute_figures(material, cell, [first for first, _ in both], [name])
        found += compute_figures(material, cell, [second for _, second in both], [name])
        found.append(paired_change(material, [(second, first) for first, second in both], name))
    return found
