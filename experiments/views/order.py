"""MDBench's order ablation: documents as they are, without separators, shuffled, and both."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.cells import FACTORS, called, varying
from experiments.record import Result
from experiments.views.figures import change, figures
from experiments.views.types import Material, Value, View

_ORDER = {None: "original", "separators_off": "separators off", "shuffle": "shuffled",
          "shuffle+separators_off": "separators off, shuffled"}
_SAME = tuple(name for name in FACTORS if name != "perturbation")


def order(material: Material) -> View | None:
    """Cells that differ only in the order of their documents and their separators, each beside the original.

    The change is paired: each question's score less its score with the documents as they are.
    """
    rows: list[tuple[Value, ...]] = []
    for group in _groups(material.cells):
        rows += _rows(material, group)
    if not rows:
        return None
    header = [name for metric in material.each for name in (material.shown(metric), f"{metric}: change")]
    return View("order", "Order of the documents", ("documents", "cell", "n", *header), tuple(rows), 2, 3,
                ("The change is the mean difference to the original, question by question.",))


def _groups(cells: Sequence[Mapping[str, Any]]) -> list[dict[str | None, Mapping[str, Any]]]:
    """Cells by perturbation, of each group that has the original and another."""
    groups: dict[tuple[str, ...], dict[str | None, Mapping[str, Any]]] = {}
    for cell in cells:
        if cell["perturbation"] in _ORDER and cell["condition"] != "closed-book":
            groups.setdefault(tuple(str(cell.get(name)) for name in _SAME), {})[cell["perturbation"]] = cell
    return [group for group in groups.values() if None in group and len(group) > 1]


def _rows(material: Material, group: Mapping[str | None, Mapping[str, Any]]) -> list[tuple[Value, ...]]:
    shared = [name for name in varying(material.cells) if name != "perturbation"]
    original = {result.question: result for result in material.results[group[None]["id"]]}
    rows: list[tuple[Value, ...]] = []
    for perturbation, words in _ORDER.items():
        if perturbation not in group:
            continue
        cell = group[perturbation]
        results = material.results[cell["id"]]
        pairs = [(original[result.question], result) for result in results if result.question in original]
        rows.append((words, called(cell, shared) or called(cell, ["reasoning"]), len(results),
                     *_beside(material, cell, results, pairs if perturbation else [])))
    return rows


def _beside(material: Material, cell: Mapping[str, Any], results: Sequence[Result],
            pairs: Sequence[tuple[Result, Result]]) -> list[Value]:
    means = figures(material, cell, results, material.each)
    return [value for mean, metric in zip(means, material.each, strict=True)
            for value in (mean, change(material, pairs, metric))]
