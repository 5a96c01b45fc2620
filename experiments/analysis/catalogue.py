"""The registry of analyses: for every run, from guests, and for benchmarks that name them.

An analysis is a function from `AnalysisInput` to a list of `View`. A guest adds one with its slot `analysis`. To store
figures in the run's summary, it also adds a `finding` of the same name: a function from `AnalysisInput` to JSON, or to
None if there is nothing to compute. The analysis reads the result as `run.found.get(NAME)`.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from ragbed.documents.errors import SettingsError
from ragbed.experiments.analysis.benchmark_views import depth, wins
from ragbed.experiments.analysis.breakdowns import by_tag, chain, gap, history, order
from ragbed.experiments.analysis.effects import effect_views
from ragbed.experiments.analysis.error_analysis import cause_views
from ragbed.experiments.analysis.inputs import Analysis, AnalysisInput, Finding
from ragbed.experiments.analysis.pairs import comparison_views
from ragbed.experiments.analysis.published import paper_views
from ragbed.experiments.analysis.replicates import group_replicates, label_groups
from ragbed.experiments.analysis.tradeoff import refusal_views
from ragbed.experiments.analysis.view import View
from ragbed.guests import leave_out, loaded

# In the order of the report's sections. Analyses of guests follow, in the order of `ragbed.guests`.
OF_EVERY_RUN: MappingProxyType[str, Analysis] = MappingProxyType({
    "effects": lambda run: effect_views(run.found.get("effects"), run.judge),
    "causes": lambda run: cause_views(run.found.get("error_analysis"), run.labels, run.correctness_metrics),
    "refusals": lambda run: refusal_views(run.found.get("tradeoff"), run.cells, run.labels, run.correctness_metrics),
    "history": history,
    "comparisons": lambda run: comparison_views(run.found.get("comparisons"), run.cells),
    "papers": paper_views,
})
OF_BENCHMARKS: MappingProxyType[str, Analysis] = MappingProxyType(
    {"order": order, "wins": wins, "depth": depth, "chain": chain, "gap": gap})
_BY = "by:"
_SUMMARY_KEYS = ("format", "name", "seed", "columns", "cells", "views", "published", "correctness_metrics", "notes",
                 "results")


def find_view(name: str) -> Analysis:
    """Return the analysis of that name: of `OF_BENCHMARKS`, or `by:TAG` for a tag. Raises SettingsError if it is
    unknown."""
    if name.startswith(_BY) and name != _BY:
        return partial(by_tag, tag=name.removeprefix(_BY))
    if name not in OF_BENCHMARKS:
        raise SettingsError(f"unknown view {name!r}; choose from: {', '.join(OF_BENCHMARKS)} or {_BY}TAG")
    return OF_BENCHMARKS[name]


def compute_findings(run: AnalysisInput) -> dict[str, Any]:
    """Compute the findings that guests add to a summary, by name. Leave out findings that are None, and those
    that have the name of one of ragbed's own figures."""
    made: dict[str, Finding] = loaded("finding")
    for name in made.keys() & {*run.found, *_SUMMARY_KEYS}:
        leave_out(f"finding {name!r}", "a summary has a figure of this name; rename the guest's")
        del made[name]
    return {name: found for name, compute in made.items() if (found := compute(run)) is not None}


def make_views(names: Iterable[str], run: AnalysisInput) -> list[View]:
    """Return the views of a run. The views of every run come first, then those of guests, then the named ones of its
    benchmark."""
    guests: dict[str, Analysis] = loaded("analysis")
    wanted = [*OF_EVERY_RUN.values(), *guests.values(), *map(find_view, names)] if run.cells else []
    return [view for make in wanted for view in make(run)]


def label_replicates(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the label of each replicate group by the id of its first cell. Labels omit repeat and seed."""
    variants = group_replicates(rows, {})
    return {one.first["id"]: label for one, label in zip(variants, label_groups(variants), strict=True)}
