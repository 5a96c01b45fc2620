"""Metric: a figure by name. Group: the metrics of one subject, scored together."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from documents.errors import SettingsError
from experiments.metrics.scored import Scored, Scores, Scoring

ANSWERABLE = "answerable questions"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, whose name is the same in settings, records and tables.

    Attributes:
        over: the questions that it applies to.
        share: whether each question has 0 or 1, so that the mean is a share.
        judged: whether it rests on a judge's grades.
        of_set: whether it is computed of a whole set, and no question has one.
        cut: the number after `@`, of the family of metrics that has one, such as 5 of `recall@5`; 0 names the family.
    """

    name: str
    description: str
    over: str = "all questions"
    share: bool = False
    judged: bool = False
    of_set: bool = False
    cut: int | None = None

    def __str__(self) -> str:
        return self.name if self.cut is None else f"{self.name}@{self.cut}"

    def at(self, cut: int) -> Metric:
        """The metric of the family with that cut."""
        if self.cut is None or cut < 1:
            raise SettingsError(f"the metric {self.name} takes no @{cut}")
        return replace(self, cut=cut)


@dataclass(frozen=True, slots=True)
class Group:
    """The metrics of one subject.

    Attributes:
        score: the values of one question by printed name, without the `of_set` metrics; None where one does not apply.
    """

    metrics: tuple[Metric, ...]
    score: Callable[[Scored, Scoring], Scores]
