"""Look up metrics of ragbed and of guests by name, and score one question."""
from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.experiments.metrics.answers import ATTACK, CHAIN, FORM, OVERLAP, SQUAD, SUPPORT, WORLD_GROUP
from ragbed.experiments.metrics.judged import ANSWERS, CHOICE, MEASURED, POINTS, STEPS, score_custom_figures
from ragbed.experiments.metrics.metric import (
    Metric,
    MetricGroup,
    Scored,
    ScoredRow,
    Scores,
    Scoring,
    SetFigure,
    Sizes,
    cut_of,
    family_of,
    joint,
    make_scored,
    outcome_as_published,
    pooled_mean,
    text_as_published,
)
from ragbed.experiments.metrics.ranking import JUDGEMENTS, RANKING, SPANS
from ragbed.experiments.question import ANSWERS as ANSWERS_SCHEME
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.record import Result
from ragbed.guests import leave_out, loaded
from ragbed.strategies.types import Rules

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

T = TypeVar("T")
_GROUPS: dict[str, MetricGroup] = {
    "answers": ANSWERS, "choice": CHOICE, "points": POINTS, "steps": STEPS, "overlap": OVERLAP,
    "squad": SQUAD, "chain": CHAIN, "support": SUPPORT, "ranking": RANKING, "judgements": JUDGEMENTS, "spans": SPANS,
    "attack": ATTACK, "worlds": WORLD_GROUP, "form": FORM}


class _Registry(Mapping[str, T]):
    """A mapping that is filled on first use, so that importing metrics does not import the guests."""

    def __init__(self, make: Callable[[], Mapping[str, T]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, T]:
        return self._make()

    def __getitem__(self, name: str) -> T:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


def collect_groups() -> dict[str, MetricGroup]:
    """Return ragbed's metric groups by name, then those of guests. Leave out a guest's group if it is not a
    `MetricGroup`, or if ragbed or an earlier guest has a group or a metric of the same name."""
    groups = dict(_GROUPS)
    for name, group in loaded("metric").items():
        taken = {metric.name for one in groups.values() for metric in one.metrics}
        if not isinstance(group, MetricGroup):
            leave_out(f"metric {name!r}", f"{group!r:.80} is not a MetricGroup")
        elif same := {name} & groups.keys() or taken & {metric.name for metric in group.metrics}:
            leave_out(f"metric {name!r}", f"{min(same)} exists already; rename the guest's")
        else:
            groups[name] = group
    return groups


# Guests' groups come after ragbed's. Figures measured by strategies come last.
GROUPS: Mapping[str, MetricGroup] = _Registry(collect_groups)
_WITH_MATERIAL = _Registry(lambda: {name: group for name, group in GROUPS.items() if group.material})
_SCORED = _Registry(lambda: {metric.name: metric for group in GROUPS.values() for metric in group.metrics})
BUILT_IN: Mapping[str, Metric] = _Registry(lambda: {**_SCORED, **{metric.name: metric for metric in MEASURED}})
DECLARED: dict[str, Metric] = {}  # metrics of users, in the settings and runs that this process has read
METRICS: Mapping[str, Metric] = ChainMap(DECLARED, cast("dict[str, Metric]", BUILT_IN))
_PLACES = _Registry(lambda: {name: metric_order for metric_order, name in enumerate(BUILT_IN)})


def declare_metrics(metrics: Iterable[Metric]) -> None:
    """Make the metrics of a run's settings or summary known to this process. A metric replaces an earlier one of the
    same name, but never one of ragbed or a guest."""
    DECLARED.update((one.name, one) for one in metrics if one.name not in BUILT_IN)


def better_sign(name: str) -> int:
    """Return -1 if less is better in the metric of this name, otherwise 1."""
    known = METRICS.get(family_of(name))
    return -1 if known is not None and known.less else 1


def find_metric(name: str) -> Metric:
    """Return the metric of that name, such as `em` or `recall@5`. Raises SettingsError if it is unknown."""
    metric, cut = METRICS.get(family_of(name)), cut_of(name)
    if metric is not None and cut:
        metric = metric.at(cut)
    if metric is None or str(metric) != name or (metric.cut == 0 and not metric.is_whole):
        raise SettingsError(f"unknown metric {name!r}; {did_you_mean(name, METRICS)}`ragbed list metrics` prints all")
    return metric


def choose_headline(scheme: Scheme, name: str) -> Scheme:
    """Return the scheme with this metric as its first column. Raises SettingsError if it is unknown or not computed."""
    known = {metric.name: metric.shape for group in scheme.groups for metric in GROUPS[group].metrics}
    if family_of(str(find_metric(name))) not in {*known, *scheme.columns}:
        raise SettingsError(f"headline: {name} is not computed for these questions; choose from: "
                            f"{', '.join(known.values())}")
    return replace(scheme, columns=(name, *(one for one in scheme.columns if one != name)))


def score(item: Scored, scoring: Scoring = "corrected", groups: Sequence[str] = ANSWERS_SCHEME.groups,
          wanted: Iterable[str] = ()) -> Scores:
    """Score one question by the metrics of the groups, in order, and by the cuts in `wanted`, such as `recall@50`. A
    score is None if the metric does not apply. Figures that the strategy measured come last."""
    scores: Scores = {}
    for name in groups:
        scores |= GROUPS[name].score(item, scoring)
    for name in wanted:
        group = next((GROUPS[one] for one in groups if METRICS.get(family_of(name)) in GROUPS[one].metrics), None)
        if name not in scores and cut_of(name) and group is not None and group.at is not None:
            scores[name] = group.at(item, name)
    return scores | score_custom_figures(item.figures, {*_SCORED, *scores} if item.figures else ())


def score_result(result: Result, question: Question, scheme: Scheme, scoring: Scoring, rules: Rules,
                  separators: bool, searched: bool) -> Result:
    """Return the result with its scores, computed from the stored result and its cell."""
    def material_of(one: Result) -> Scored:
        stored = outcome_as_published(one) if scoring == "as-published" else one
        item = make_scored(stored, question, rules, separators=separators, searched=searched)
        if scoring == "as-published" and (scheme.rubric == "grades" or ("choice" in scheme.groups and not one.tagged)):
            return replace(item, text=text_as_published(one))
        return item

    def is_right(one: Result) -> bool:
        scores = score(material_of(one), scoring, scheme.groups)
        return next((scores[name] for name in scheme.correctness_metrics if scores.get(name) is not None), None) == 1

    extra = {name: material for name, group in _WITH_MATERIAL.items()
             if group.material and (material := group.material(result, is_right)) is not None}
    item = replace(material_of(result), extra=extra)
    return result.model_copy(update={
        "scores": score(item, scoring, tuple(dict.fromkeys((*scheme.groups, *extra))), scheme.metrics)})


def custom_metrics(cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of figures that strategies measured, among the `metrics` of cells."""
    return list(dict.fromkeys(name for cell in cells for name in cell["metrics"] if family_of(name) not in _SCORED))


def name_with_judge(metric: str, judge: str | None) -> str:
    """Return a metric's name for tables. It includes the judge if the metric uses grades."""
    known = METRICS.get(family_of(metric))
    return f"{metric} ({judge})" if judge and known is not None and known.judged else metric


def metric_order(name: str) -> tuple[int, int, str]:
    """Return a sort key for metrics: the order of the groups and of their metrics."""
    return _PLACES.get(family_of(name), len(_PLACES)), cut_of(name), name


def is_share(name: str) -> bool:
    """Return whether a metric gives every question 0 or 1."""
    known = METRICS.get(family_of(name))
    return known is not None and known.share


def score_range(name: str, answerable: bool = True) -> tuple[float, float]:
    """Return the lowest and highest value that a score can have for one question. Bounds are infinite if the score is
    unbounded, and nan if no metric has that name."""
    known = METRICS.get(family_of(name.partition("&")[0]))
    if known is None:
        return math.nan, math.nan
    low = known.low if answerable or known.low_unanswerable is None else known.low_unanswerable
    return -math.inf if low is None else low, math.inf if known.high is None else known.high


def score_ranges(names: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the lower and the upper bounds of the scores, as arrays of splits x names."""
    import numpy as np

    bounds = np.array([[score_range(name, answerable) for name in names] for answerable in (True, False)])
    low, high = bounds.reshape(2, -1, 2).transpose(2, 0, 1)
    return low, high


def score_names(rows: Iterable[ScoredRow]) -> list[str]:
    """Return the names of all scores from which figures are computed: metrics and joint scores (`metric.joint`)."""
    own = sorted({name for row in rows for name in row.scores}, key=metric_order)
    return [*own, *(joint(name, group.together) for group in GROUPS.values() for name in group.together
                    if set(group.together) <= set(own))]


def get_score(row: ScoredRow, name: str) -> float:
    """Return the row's score under a name of `score_names`; nan if the row lacks any score that the name joins."""
    scores = [row.scores.get(part) for part in name.split("&")]
    return math.nan if None in scores or scores[0] is None else scores[0]


def count_scores(rows: Sequence[ScoredRow]) -> Sizes:
    """Count the answerable and the unanswerable questions that have each score, by name."""
    found = {}
    for name in score_names(rows):
        kinds = [row.answerable for row in rows if not math.isnan(get_score(row, name))]
        found[name] = (sum(kinds), len(kinds) - sum(kinds))
    return found


def set_figures(sizes: Sizes, scoring: Scoring, refusing: bool) -> dict[str, SetFigure]:
    """Return every figure of a set with these scores: means of metrics, and figures that groups derive."""
    figures = {name: SetFigure((name,), pooled_mean) for name in sizes if "&" not in name}
    for group in GROUPS.values():
        figures |= group.derive(sizes, scoring, refusing)
    return figures
