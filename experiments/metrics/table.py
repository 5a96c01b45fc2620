"""The metrics by name, and scoring one question with those of its benchmark."""
from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from documents.errors import SettingsError
from experiments.metrics.answers import ANSWERS
from experiments.metrics.metric import Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring
from experiments.metrics.text import FORM, OVERLAP
from experiments.scheme import ANSWERS as ANSWERS_SCHEME

GROUPS: MappingProxyType[str, Group] = MappingProxyType({"answers": ANSWERS, "overlap": OVERLAP, "form": FORM})
METRICS = MappingProxyType({metric.name: metric for group in GROUPS.values() for metric in group.metrics})


def metric_named(name: str) -> Metric:
    """The metric of that name, such as `em` or `recall@5`: `str` of it is the name again.

    Raises:
        SettingsError: there is none.
    """
    base, at, cut = name.partition("@")
    metric = METRICS.get(base)
    if metric is None or bool(at) != (metric.cut is not None) or (at and not cut.isdecimal()):
        raise SettingsError(f"unknown metric {name!r}; known are: {', '.join(map(_shape, METRICS.values()))}")
    return metric.at(int(cut)) if at else metric


def _shape(metric: Metric) -> str:
    return metric.name if metric.cut is None else f"{metric.name}@N"


def score(item: Scored, scoring: Scoring = "corrected", groups: Sequence[str] = ANSWERS_SCHEME.groups) -> Scores:
    """The per-question metrics of the groups by name, in order; None where a metric does not apply."""
    scores: Scores = {}
    for name in groups:
        scores |= GROUPS[name].score(item, scoring)
    return scores


def shown_name(metric: str, judge: str | None) -> str:
    """The name for a table: that of a judged metric says who graded."""
    known = METRICS.get(metric.partition("@")[0])
    return f"{metric} ({judge})" if judge and known is not None and known.judged else metric
