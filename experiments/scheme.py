"""Scheme: how a benchmark's answers are scored, what a judge is asked of them, and which figures a table shows."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# grades: Correct, Partially Correct, Wrong. points: 0 to 10. steps: which reference steps the reasoning holds.
Rubric = Literal["grades", "points", "steps"]
# By metric group, the metric of it whose score of 1 means that the answer is right; the first group that is there has
# the say.
_RIGHT: Mapping[str, str] = {"choice": "accuracy", "answers": "unified", "points": "graded_em", "overlap": "em"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """What a benchmark measures.

    Attributes:
        groups: the metric groups that are computed, by name (`experiments.metrics.catalogue.GROUPS`).
        rubric: what a judge is asked; None where none is.
        columns: the metrics of a run's table, in order; ` / ` joins those that share a column.
        views: the breakdowns of a finished run, by name (`experiments.views.VIEWS`).
        itself_ignored: whether a document with the id of a query is that query, and counts neither as found nor as
            missed, as BEIR's evaluation has it.
        published: the tables of the paper that stand beside a run's own, by name (`experiments.published`).
    """

    groups: tuple[str, ...]
    rubric: Rubric | None
    columns: tuple[str, ...]
    views: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    itself_ignored: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the columns, each by itself."""
        return tuple(name for column in self.columns for name in column.split(" / "))

    @property
    def right(self) -> str | None:
        """The metric whose score of 1 means that an answer is right; None where no answer is scored."""
        return next(iter(self.rights), None)

    @property
    def rights(self) -> tuple[str, ...]:
        """The metrics that say so, of which the first that applies to a question counts: of one's own questions some
        may have options and others none."""
        known = tuple(metric for group, metric in _RIGHT.items() if group in self.groups)
        return known[:2 if "choice" in self.groups else 1]


RANKED = Scheme(groups=("ranking",), rubric=None, columns=("ndcg@10", "recall@10", "recall@100", "mrr", "map"))
SPANS = Scheme(groups=("spans", "ranking"), rubric=None,
               columns=("char_recall@5", "char_precision@5", "char_iou@5"))
ANSWERS = Scheme(groups=("answers", "overlap", "form"), rubric="grades",
                 columns=("unified", "correct / partial / wrong", "refusal_accuracy", "citation_f1"))
