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
_SAME = tuple(name for name in FACTORS if name not in ("perturbation", "seed"))


def order(material: Material) -> View | None:
    """Cells that differ only in the order of their documents and their separators, each beside the original.

    The change is paired: each question's score less its score with the documents as they are.
    """
    rows = [row for group in _groups(material.cells) for row in _rows(material, group)]
    if not rows:
        return None
    header = [name for metric in material.each for name in (material.shown(metric), f"{metric}: change")]
    return View("order", "Order of the documents", ("documents", "cell", "n", *header), tuple(rows), 2, 3,
                ("The change is the mean difference to the original, question by question.",))


def _groups(cells: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Cells that agree in all else, of each group that has the original and another, in the order of the table."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for cell in cells:
        if cell["perturbation"] in _ORDER and cell["condition"] != "closed-book":
            groups.setdefault(tuple(str(cell.get(name)) for name in _SAME), []).append(cell)
    names = list(_ORDER)
    return [sorted(group, key=lambda cell: names.index(cell["perturbation"])) for group in groups.values()
            if {None} < {cell["perturbation"] for cell in group}]


def _rows(material: Material, group: Sequence[Mapping[str, Any]]) -> list[tuple[Value, ...]]:
    shared = [name for name in varying(material.cells) if name != "perturbation"]
    rows: list[tuple[Value, ...]] = []
    for cell in group:
        results = material.results[cell["id"]]
        original = _original(cell, group) if cell["perturbation"] else None
        before = {result.question: result for result in material.results[original["id"]]} if original else {}
        pairs = [(before[result.question], result) for result in results if result.question in before]
        rows.append((_ORDER[cell["perturbation"]], called(cell, shared) or called(cell, ["reasoning"]), len(results),
                     *_beside(material, cell, results, pairs)))
    return rows


def _original(cell: Mapping[str, Any], group: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The cell with the documents as they are, of the same seed where it has one."""
    return next((one for one in group if one["perturbation"] is None and one.get("seed") in (None, cell.get("seed"))),
                None)


def _beside(material: Material, cell: Mapping[str, Any], results: Sequence[Result],
            pairs: Sequence[tuple[Result, Result]]) -> list[Value]:
    means = figures(material, cell, results, material.each)
    return [value for mean, metric in zip(means, material.each, strict=True)
            for value in (mean, change(material, pairs, metric))]
