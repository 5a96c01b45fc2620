"""The index of the question browser: of each question what the list shows and its filters ask for."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from experiments.question import Question
from experiments.record import Record, Result
from experiments.report.asked import graded
from experiments.report.cells import Cell
from experiments.report.text import visible
from experiments.report.view import ReportInput

LINE = 240  # characters of a question in the list
ID = 200
TAG = 80


class Words:
    """Numbers words in the order of their first appearance.

    Attributes:
        known: the number of each.
    """

    def __init__(self, *words: str) -> None:
        self.known = {word: number for number, word in enumerate(words)}

    def __call__(self, word: str) -> int:
        return self.known.setdefault(word, len(self.known))


class Listing:
    """Collects the columns, one entry a question; those of answers have one for each cell of each question."""

    def __init__(self, view: ReportInput, cells: Sequence[Cell]) -> None:
        self._view, self._cells = view, cells
        self._rows: list[tuple[int, dict[str, Any]]] = []
        self._outcomes, self._grades, self._tags = Words("missing"), Words(""), Words()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, question: Question, records: Mapping[str, Record], item: int, place: int) -> None:
        """Takes a question.

        Args:
            item: the number of its item.
            place: where it stands in the list.
        """
        answers = [self._answer(question, records.get(cell.id)) for cell in self._cells]
        text = visible(question.text[:LINE]) + "…" * (len(question.text) > LINE)
        self._rows.append((place, {
            "id": question.id, "ids": visible(question.id[:ID]), "texts": text,
            "answerable": int(question.answerable), "items": item,
            "tags": [self._tags(visible(f"{name}: {value}"[:TAG])) for name, values in question.tags.items()
                     for value in values],
            "outcome": [answer[0] for answer in answers], "grade": [answer[1] for answer in answers],
            "score": [answer[2] for answer in answers]}))

    def _answer(self, question: Question, record: Record | None) -> tuple[int, int, float | None]:
        if record is None:
            return 0, 0, None
        result = record.result
        decides = deciding(result, self._view.rights)
        return (self._outcomes(result.outcome), self._grades(graded(result.verdict, question)),
                None if decides is None else round(decides[1], 3))

    def columns(self, causes: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
        """Everything but where the items are.

        Args:
            causes: by cell's id, then by question's.
        """
        rows = [row for _, row in sorted(self._rows, key=lambda row: row[0])]
        of_cells = [causes.get(cell.id, {}) for cell in self._cells]
        numbers = Words("")
        caused = [numbers(visible(of_cell.get(row["id"], ""))) for row in rows for of_cell in of_cells]
        return {
            "cells": [{"number": cell.number, "label": cell.label} for cell in self._cells],
            "words": {"outcome": list(self._outcomes.known), "grade": list(self._grades.known),
                      "cause": list(numbers.known), "tag": list(self._tags.known)},
            "causes": self._defined(numbers.known), "cause": caused, "rights": bool(self._view.rights),
            **{name: [row[name] for row in rows] for name in ("ids", "texts", "answerable", "items", "tags")},
            **{name: [value for row in rows for value in row[name]] for name in ("outcome", "grade", "score")}}

    def _defined(self, occurring: Collection[str]) -> dict[str, Any]:
        """Title and definition of each cause that occurs."""
        stored = (self._view.summary.get("attribution") or {}).get("causes") or ()
        return {one["name"]: [visible(one["title"]), visible(one["definition"])] for one in stored
                if one["name"] in occurring}


def deciding(result: Result, rights: Sequence[str]) -> tuple[str, float] | None:
    """The first of the metrics that say what is right, if any applies, and its score."""
    return next(((name, score) for name in rights if (score := result.scores.get(name)) is not None), None)
