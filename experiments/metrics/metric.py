"""`Metric`: a named figure. `MetricGroup`: metrics of one subject that are scored together."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ragbed.documents.errors import SettingsError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbed.experiments.metrics.scored import Scored, Scores, Scoring
    from ragbed.experiments.record import Result

    Floats = NDArray[np.float64]

ANSWERABLE = "answerable questions"
Sizes = Mapping[str, tuple[int, int]]  # by score name: how many answerable and unanswerable questions have it
BY_SPLIT = "unified"  # the metric that is the mean of two splits' means
_LONGEST_CUT = 9


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, whose name is the same in settings, records and tables."""

    name: str
    description: str
    over: str = "all questions"  # the questions that it applies to
    share: bool = False  # each question scores 0 or 1, so the mean is a share
    judged: bool = False  # it uses a judge's grades
    of_set: bool = False  # it is defined only for a set of questions, not for a single one
    cut: int | None = None  # the number after `@`; 0 for the family itself
    uncut: bool = False  # the name without a cut is a metric too: `mrr` as well as `mrr@10`
    low: float = 0.0  # `low` and `high` bound a question's value; `high` is None if unbounded
    high: float | None = 1.0
    low_unanswerable: float | None = None  # lower bound for unanswerable questions, if different

    def __str__(self) -> str:
        return self.name if self.cut is None or self.is_whole else f"{self.name}@{self.cut}"

    @property
    def is_whole(self) -> bool:
        """Whether this is a family's metric without a cut."""
        return self.uncut and self.cut == 0

    @property
    def shape(self) -> str:
        """The name as lists show it: with `@N` for a cut, in brackets if optional."""
        return self.name if self.cut is None else f"{self.name}[@N]" if self.uncut else f"{self.name}@N"

    def at(self, cut: int) -> Metric:
        """Return the same metric with this cut, such as `recall@5`. Raises SettingsError if the metric takes no cut."""
        if self.cut is None or cut < 1:
            raise SettingsError(f"the metric {self.name} takes no @{cut}")
        return replace(self, cut=cut)


# One metric for all rubrics, since a scheme has only one rubric.
UNJUDGED = Metric("unjudged", "share of judged answers whose verdict could not be parsed",
                  "questions that a judge grades", share=True, judged=True)


def family_of(name: str) -> str:
    """Return a name without its cut: `recall` for `recall@5`."""
    return name.partition("@")[0]


def cut_of(name: str) -> int:
    """Return the cut of a name, or 0 if it has none."""
    cut = name.partition("@")[2]
    return int(cut) if cut.isdecimal() and len(cut) <= _LONGEST_CUT else 0


class SetFigure(NamedTuple):
    """A figure of a set of questions, computed from the means of their scores.

    Attributes:
        names: the scores whose means it uses. The figure covers the questions that have the first score.
        value: computes the figure from two arrays: the means over all questions (draws x names), and those over
            answerable and unanswerable questions (draws x 2 splits x names). The mean over no questions is nan.
    """

    names: tuple[str, ...]
    value: Callable[[Floats, Floats], Floats]


def pooled_mean(pooled: Floats, splits: Floats) -> Floats:
    """Return the mean over all questions of both splits."""
    return pooled[:, 0]


def joint(name: str, names: Sequence[str]) -> str:
    """Name the variant of a score that covers only the questions that have all of the metrics `names`."""
    return "&".join([name, *(other for other in names if other != name)])


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """The metrics of one subject.

    Attributes:
        score: computes a question's values by metric name, without the `of_set` metrics. A value is None if the metric
            does not apply.
        derive: returns the set's figures that are not pooled means. It gets the number of scores, the scoring, and
            whether the rules offer a refusal.
        together: metrics that `derive` averages over only those questions that have all of them (`joint`).
        at: computes a question's value for a cut that `score` does not return.
        material: returns what `score` needs beyond the other fields of `Scored`, given a result and a function that
            returns whether a result's answer is right. `score` finds it as `item.extra[NAME OF THE GROUP]`. Unless it
            returns None, the group is scored for every benchmark. A group without `material` is scored only if a scheme
            names it.
    """

    metrics: tuple[Metric, ...]
    score: Callable[[Scored, Scoring], Scores]
    derive: Callable[[Sizes, Scoring, bool], Mapping[str, SetFigure]] = lambda sizes, scoring, refusing: {}
    together: tuple[str, ...] = ()
    at: Callable[[Scored, str], float | None] | None = None
    material: Callable[[Result, Callable[[Result], bool]], Any] | None = None
