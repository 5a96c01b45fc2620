"""The metric group `trajectory`: what a trajectory found, what it cost, and how it ended.

The idea of over-searching, and of tokens for each right answer, is that of Xie et al., "Over-Searching in
Search-Augmented Large Language Models", 2026 (arXiv 2601.05503). Their formula of tokens per correctness may differ:
here, prompts count in full in each call, and a search has no price of its own.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from ragbed.experiments.guests.trajectories.trajectory import Trajectory, chose_calls, read_trajectory
from ragbed.experiments.metrics.metric import Metric, MetricGroup, Scored, Scores, Scoring, SetFigure, Sizes
from ragbed.experiments.record import Result

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

GROUP = "trajectory"
TOOLS = ("search", "list", "grep", "open", "sql", "calculate")
ENDS = ("answer", "turns", "tokens", "context")
_MOST, _NAME = 20, re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_ALL = "answers whose model chose which searches or tools to call"
_GOLD = f"{_ALL}, to questions with gold"
_SOME, _WHOLE = f"{_GOLD}, if some of it was found", f"{_GOLD}, if all of it was found"


class Material(NamedTuple):

    trajectory: Trajectory
    right: bool


def _read(result: Result, is_right: Callable[[Result], bool]) -> Material | None:
    return Material(read_trajectory(result), is_right(result)) if chose_calls(result) else None


def score_trajectory(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score an answer's trajectory."""
    scores: Scores = dict.fromkeys(metric.name for metric in TRAJECTORY.metrics if not metric.of_set)
    material: Material | None = item.extra.get(GROUP)
    if material is None:
        return scores
    made, right = material
    kinds = [next((kind for kind in TOOLS if call.tool.startswith(kind)), "other") for call in made.calls]
    scores |= {"tool_calls": float(len(kinds)),
               **{f"tool_calls_{kind}": float(kinds.count(kind)) for kind in (*TOOLS, "other")},
               "tool_calls_repeated": float(sum(call.repeated for call in made.calls)),
               "tool_calls_empty": float(sum(call.empty for call in made.calls)),
               "tool_calls_failed": float(sum(bool(call.failure) for call in made.calls)),
               "trajectory_tokens": float(made.tokens), "solved": float(right),
               **{f"ended_by_{end}": float(made.ended == end) for end in ENDS}}
    for name in made.offered[:_MOST]:  # each by its own name too, such as search_dense or a function of the user
        if _NAME.fullmatch(name) and (own := f"tool_calls_{name}") not in scores:
            scores[own] = float(sum(call.tool == name for call in made.calls))
    if item.answerable and item.gold_total:
        scores |= _score_gold(made, item)
    return scores


def _score_gold(made: Trajectory, item: Scored) -> Scores:
    calls, found = made.calls, [*accumulate((call.gold for call in made.calls), or_)]  # gold found up to each call
    sizes = [0, *map(len, found)]
    scores: Scores = {"gold_seen": sizes[-1] / item.gold_total, "gold_opened": len(made.opened) / item.gold_total}
    if item.cites:
        scores["gold_cited"] = len(made.cited) / item.gold_total
    if sizes[-1]:
        first = next(place for place, size in enumerate(sizes) if size)  # counted from 1
        scores |= {"steps_to_gold": float(first), "tokens_to_gold": float(calls[first - 1].tokens)}
    if sizes[-1] == item.gold_total:
        whole = sizes.index(item.gold_total)
        scores |= {"steps_after_gold": float(len(calls) - whole),
                   "tokens_after_gold": float(calls[-1].tokens - calls[whole - 1].tokens)}
    return scores


def _derive(sizes: Sizes, scoring: Scoring, refusing: bool) -> Mapping[str, SetFigure]:
    def ratio(pooled: Floats, splits: Floats) -> Floats:
        import numpy as np

        with np.errstate(divide="ignore", invalid="ignore"):  # infinite if no answer is right
            return pooled[:, 0] / pooled[:, 1]

    return {"tokens_per_right": SetFigure(("trajectory_tokens", "solved"), ratio)} if "solved" in sizes else {}


def _count(name: str, description: str, over: str = _ALL) -> Metric:
    return Metric(name, description, over, high=None, less=True)


TRAJECTORY = MetricGroup((
    Metric("gold_seen", "share of the gold (spans, pages or documents) that any call found", _GOLD),
    Metric("gold_opened", "share of the gold whose text the model could read", _GOLD),
    Metric("gold_cited", "share of the gold that the answer cites", f"{_GOLD}, if the rules ask for citations"),
    _count("tool_calls", "number of searches and calls of tools"),
    *(_count(f"tool_calls_{kind}", f"number of calls of {'other tools' if kind == 'other' else kind}")
      for kind in (*TOOLS, "other")),
    _count("tool_calls_repeated", "number of calls with the tool and arguments of an earlier call"),
    _count("tool_calls_empty", "number of calls that found nothing"),
    _count("tool_calls_failed", "number of calls that failed or were refused"),
    Metric("steps_to_gold", "number of calls until gold was first found", _SOME, low=1.0, high=None, less=True),
    _count("tokens_to_gold", "tokens of the model calls before gold was first found", _SOME),
    _count("steps_after_gold", "over-searching: number of calls after all gold was found", _WHOLE),
    _count("tokens_after_gold", "over-searching: tokens of the model calls that led to these calls", _WHOLE),
    _count("trajectory_tokens", "tokens of all model calls of the answer"),
    Metric("solved", "share of answers that are right by the first metric of the benchmark", _ALL, share=True),
    Metric("tokens_per_right", "tokens of all answers for each right answer", _ALL, of_set=True, high=None, less=True),
    *(Metric(f"ended_by_{end}", f"share of answers that {what}", _ALL, share=True, less=end != "answer")
      for end, what in zip(ENDS, ("the model itself ended", "a limit of turns ended",
                                   "a limit of tokens ended", "a full context ended"), strict=True))),
    score_trajectory, _derive, material=_read)
