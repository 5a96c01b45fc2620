"""The metrics by name, and scoring one question with those of its benchmark."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from documents.errors import SettingsError
from experiments.metrics.joint import CHAIN, SUPPORT
from experiments.metrics.judged import ANSWERS, CHOICE, MEASURED, POINTS, STEPS, measured
from experiments.metrics.metric import Group, Metric, cut_of, family_of
from experiments.metrics.ranking import RANKING, SPANS
from experiments.metrics.scored import Scored, Scores, Scoring, scored_of
from experiments.metrics.text import ATTACK, FORM, OVERLAP, SQUAD
from experiments.question import ANSWERS as ANSWERS_SCHEME
from experiments.question import Question, Scheme
from experiments.record import Result
from strategies.types import Rules

GROUPS: MappingProxyType[str, Group] = MappingProxyType({
    "answers": ANSWERS, "choice": CHOICE, "points": POINTS, "steps": STEPS, "overlap": OVERLAP,
    "squad": SQUAD, "chain": CHAIN, "support": SUPPORT, "ranking": RANKING, "spans": SPANS, "attack": ATTACK,
    "form": FORM})
_SCORED = {metric.name: metric for group in GROUPS.values() for metric in group.metrics}
METRICS = MappingProxyType(_SCORED | {metric.name: metric for metric in MEASURED})


def metric_named(name: str) -> Metric:
    """Return the metric of that name, such as `em` or `recall@5`: `str` of it is the name again.

    Raises:
        SettingsError: there is none.
    """
    metric, cut = METRICS.get(family_of(name)), cut_of(name)
    if metric is not None and cut:
        metric = metric.at(cut)
    if metric is None or str(metric) != name or (metric.cut == 0 and not metric.is_whole):
        known = ", ".join(metric.shape for metric in METRICS.values())
        raise SettingsError(f"unknown metric {name!r}; known are: {known}")
    return metric


def score(item: Scored, scoring: Scoring = "corrected", groups: Sequence[str] = ANSWERS_SCHEME.groups,
          wanted: Iterable[str] = ()) -> Scores:
    """Score one question by the groups' metrics, in order; None where a metric does not apply. Last come those that the
    strategy measured itself.

    Args:
        wanted: names with further cuts of the groups' families, such as `recall@50`.
    """
    scores: Scores = {}
    for name in groups:
        scores |= GROUPS[name].score(item, scoring)
    for name in wanted:
        group = next((GROUPS[one] for one in groups if METRICS[family_of(name)] in GROUPS[one].metrics), None)
        if name not in scores and cut_of(name) and group is not None and group.at is not None:
            scores[name] = group.at(item, name)
    return scores | measured(item.figures, _SCORED)


def scored_result(result: Result, question: Question, scheme: Scheme, scoring: Scoring, rules: Rules,
                  separators: bool, searched: bool) -> Result:
    """Return the result with its scores, computed from what is stored of it alone.

    Args:
        rules, separators, searched: those of the result's cell.
    """
    item = scored_of(result, question, rules, separators=separators, searched=searched)
    return result.model_copy(update={"scores": score(item, scoring, scheme.groups, scheme.metrics)})


def measured_in(cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of what strategies measured themselves, among the `metrics` of cells."""
    return list(dict.fromkeys(name for cell in cells for name in cell["metrics"] if family_of(name) not in _SCORED))


def shown_name(metric: str, judge: str | None) -> str:
    """Return the name for a table: that of a judged metric says who graded."""
    known = METRICS.get(family_of(metric))
    return f"{metric} ({judge})" if judge and known is not None and known.judged else metric
