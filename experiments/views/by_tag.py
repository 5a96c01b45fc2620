"""The columns by a tag of the questions, such as language or sub-task."""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from experiments.benchmarks.mrceval_subtasks import TASKS
from experiments.question import Question
from experiments.record import Result
from experiments.views.apart import VERSIONS, apart
from experiments.views.figures import figures
from experiments.views.types import Material, Value, View

ALL = "all"
_ORDERS = {
    "task": tuple(dict.fromkeys(TASKS.values())),
    "subtask": tuple(TASKS),
    "difficulty_type": ("SimpleQA", "ComplexQA"),
    "version": VERSIONS}


def by_tag(material: Material, tag: str) -> View | None:
    """Every cell over the questions of each value of the tag, and over all; of each version where there are two.

    Figures are averages over questions: those of `all` are not averages of the rows above it.
    """
    return _by_tag(material, tag) if tag == "version" else apart(_by_tag)(material, tag)


def _by_tag(material: Material, tag: str) -> View | None:
    values = _values(tag, material.questions.values())
    untagged = any(tag not in question.tags for question in material.questions.values())
    if len(values) + untagged < 2 or not values:
        return None
    wanted: list[str | None] = [*values, *([None] if untagged else [])]
    rows = [row for value in wanted for row in _rows(material, tag, value)]
    rows += [(ALL, label, cell["n"], *(cell["metrics"].get(name) for name in material.metrics))
             for label, cell in material.labelled()]
    words = tag.replace("_", " ")
    return View(f"by:{tag}", f"By {words}", (words, "cell", "n", *map(material.shown, material.metrics)), tuple(rows),
                2, 3, tuple(_notes(tag, material.questions.values())))


def _values(tag: str, questions: Iterable[Question]) -> list[str]:
    order = _ORDERS.get(tag, ())
    found = {value for question in questions for value in question.tags.get(tag, ())}
    return sorted(found, key=lambda value: (order.index(value) if value in order else len(order),
                                            int(value) if value.isdecimal() else 0, value))


def _rows(material: Material, tag: str, value: str | None) -> list[tuple[Value, ...]]:
    rows: list[tuple[Value, ...]] = []
    for label, cell in material.labelled():
        chosen = [result for result in material.results[cell["id"]]
                  if _fits(material.questions, result, tag, value)]
        if chosen:
            rows.append((f"no {tag.replace('_', ' ')}" if value is None else value, label, len(chosen),
                         *figures(material, cell, chosen, material.metrics)))
    return rows


def _fits(questions: Mapping[str, Question], result: Result, tag: str, value: str | None) -> bool:
    found = questions[result.question].tags.get(tag, ())
    return value in found if value is not None else not found


def _notes(tag: str, questions: Iterable[Question]) -> list[str]:
    several = sum(len(question.tags.get(tag, ())) > 1 for question in questions)
    return [f"Questions with several values, which count in each: {several}."] if several else []
