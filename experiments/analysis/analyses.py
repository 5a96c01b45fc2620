"""The registry of analyses: those of every run, of guests, and of benchmarks that name them.

An analysis is a function from `AnalysisInput` to a list of `View`. A guest adds one with its slot `analysis`. To store
figures in the run's summary, it also adds a `finding` of the same name: a function from `AnalysisInput` to JSON, or to
None if there is nothing to compute. The analysis reads the result as `run.found.get(NAME)`.
"""
from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from types import MappingProxyType
from typing import Any

from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.experiments.analysis.breakdowns import by_tag, chain, history
from ragbed.experiments.analysis.error_analysis import cause_views
from ragbed.experiments.analysis.inputs import Analysis, AnalysisInput, Finding
from ragbed.experiments.analysis.pairs import comparison_views
from ragbed.experiments.analysis.tradeoff import refusal_views
from ragbed.experiments.analysis.view import View
from ragbed.guests import entries, leave_out, load, loaded

# In the order of the report's sections. Analyses of guests follow, in the order of `ragbed.guests`, except `effects`,
# which comes first.
OF_EVERY_RUN: MappingProxyType[str, Analysis] = MappingProxyType({
    "causes": lambda run: cause_views(run.found.get("error_analysis"), run.labels, run.correctness_metrics),
    "refusals": lambda run: refusal_views(run.found.get("tradeoff"), run.cells, run.labels, run.correctness_metrics),
    "history": history,
    "comparisons": lambda run: comparison_views(run.found.get("comparisons"), run.cells),
})
_BY = "by:"
_SUMMARY_KEYS = ("format", "name", "seed", "columns", "cells", "views", "published", "correctness_metrics", "notes",
                 "results")


def find_view(name: str) -> Analysis:
    """Return the breakdown `chain`, `by:TAG`, or one of a guest's slot `breakdown`, or raise SettingsError."""
    if name.startswith(_BY) and name != _BY:
        return partial(by_tag, tag=name.removeprefix(_BY))
    if name == "chain":
        return chain
    known = entries("breakdown")
    if name not in known:
        raise SettingsError(f"unknown view {name!r}; "
                            f"{did_you_mean(name, known)}choose from: chain, {', '.join(known)} or {_BY}TAG")
    found: Analysis = load(known[name])
    return found


def compute_findings(run: AnalysisInput) -> dict[str, Any]:
    """Compute guests' findings for the summary, by name, except those that are None or have a name in use."""
    made: dict[str, Finding] = loaded("finding")
    for name in made.keys() & {*run.found, *_SUMMARY_KEYS}:
        leave_out(f"finding {name!r}", "a summary already has a figure of this name; rename it in the guest")
        del made[name]
    return {name: found for name, compute in made.items() if (found := compute(run)) is not None}


def make_views(names: Iterable[str], run: AnalysisInput) -> list[View]:
    """Return the views of a run: those of every run, then those of guests, then the named ones."""
    guests: dict[str, Analysis] = loaded("analysis")
    first = [guests.pop(name) for name in ("effects",) if name in guests]
    wanted = [*first, *OF_EVERY_RUN.values(), *guests.values(), *map(find_view, names)] if run.cells else []
    return [view for make in wanted for view in make(run)]
