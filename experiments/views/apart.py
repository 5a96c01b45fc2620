"""MRKE's two versions of a question, which no figure of a view mixes."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Concatenate, ParamSpec

from experiments.views.figures import figures_of_cell
from experiments.views.types import Material, View

VERSIONS = ("original", "edited")
P = ParamSpec("P")


def apart(make: Callable[Concatenate[Material, P], View | None]) -> Callable[Concatenate[Material, P], View | None]:
    """The view of each version by itself, the version as its first key, where the run has both."""
    def made(material: Material, /, *args: P.args, **kwargs: P.kwargs) -> View | None:
        if not all(any(_is(material, id, version) for id in material.questions) for version in VERSIONS):
            return make(material, *args, **kwargs)
        views = [(version, view) for version in VERSIONS
                 if (view := make(_part(material, version), *args, **kwargs)) is not None]
        if not views:
            return None
        first = views[0][1]
        return replace(first, header=("version", *first.header), keys=first.keys + 1, main=first.main + 1,
                       rows=tuple((version, *row) for version, view in views for row in view.rows),
                       notes=tuple(dict.fromkeys(note if note in first.notes else f"{version}: {note}"
                                                 for version, view in views for note in view.notes)))
    return made


def _is(material: Material, id: str, version: str) -> bool:
    return version in material.questions[id].tags.get("version", ())


def _part(material: Material, version: str) -> Material:
    """The questions of that version, and the cells' figures over them."""
    results = {cell: [one for one in found if _is(material, one.question, version)]
               for cell, found in material.results.items()}
    cells = [{**cell, "n": len(results[cell["id"]]),
              "metrics": figures_of_cell(material, cell, results[cell["id"]])} for cell in material.cells]
    questions = {id: question for id, question in material.questions.items() if _is(material, id, version)}
    return replace(material, cells=cells, results=results, questions=questions)
