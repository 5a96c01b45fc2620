"""Multiple-choice questions on their way to MRCEval-shaped records."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from experiments.benchmarks.fields import lettered
from experiments.converters.conversion import Draw
from strategies.normalising import normalize_answer

_OPTIONS = 4  # at most


@dataclass(frozen=True, slots=True)
class Choice:
    """One question; `wrong` has no option twice, nor the right one."""

    id: str
    subtask: str
    context: str
    question: str
    right: str
    wrong: tuple[str, ...]

    def record(self, draw: Draw) -> dict[str, Any]:
        """The record, its options in an order that is drawn."""
        options = lettered(draw.ranked((self.right, *self.wrong), str, "options", self.id))
        return {"id": self.id, "context": self.context, "question": self.question,
                "choices": [text for _, text in options],
                "answer": next(label for label, text in options if text == self.right), "subtask": self.subtask}


def choice(id: str, subtask: str, context: str, question: str, right: str, wrong: Iterable[str]) -> Choice:
    """The question with as many of the wrong options, in order, as there is room for; equal ones are left out."""
    kept: dict[str, str] = {normalize_answer(right): right}
    for text in wrong:
        if len(kept) < _OPTIONS:
            kept.setdefault(normalize_answer(text), text)
    return Choice(id, subtask, context, question, right, tuple(kept.values())[1:])
