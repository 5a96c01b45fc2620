"""Main effects and two-way interactions of a run's factors: the `effects` of its summary."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.replicates import VARIED, Answers, CellRows, ReplicateGroup, group_replicates
from ragbed.experiments.analysis.view import Value, View, make_figure
from ragbed.experiments.cells import short_names
from ragbed.experiments.formatting import format_p
from ragbed.experiments.guests.effects.factorial import Design, Fit, Term, fit, make_design, varying_levels
from ragbed.experiments.metrics import Scoring, name_with_judge
from ragbed.experiments.metrics.intervals import ALPHA, match_test
from ragbed.experiments.metrics.metric import BY_SPLIT
from ragbed.experiments.statistics import Clusters, holm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbed.experiments.metrics.metric import Floats

_DIGITS = 10
_MAX_ROWS = 64  # interactions with more combinations are collapsed


def estimate_effects(rows: CellRows, answers: Answers, clusters: Clusters, metric: str,
            scoring: Scoring = "corrected") -> dict[str, Any] | None:
    """Estimate the main effect of each factor, the differences between its levels, and the two-way interactions. p is
    corrected over all factors and interactions. Return None if fewer than two factors vary among the cells that have
    the metric.

    Levels are compared only under those combinations of the other factors for which all levels were run. Only questions
    with a score in all of these cells count (see `factorial.py`). Repeats and seeds are pooled.
    """
    every = group_replicates(rows, answers)
    having = [one for one in every if any(row.scores.get(metric) is not None for row in one.answers.values())]
    levels = [variant.factor_levels for variant in having]
    if len(varying_levels(levels, VARIED)) < 2:
        return None
    notes = []
    if any(variant.size > 1 for variant in every):
        notes.append("A question's score is its mean over repeats and seeds.")
    if len(having) < len(every):
        notes.append(f"{len(every) - len(having)} cells without {metric} are left out.")
    made: dict[str, Any] = {"metric": metric, "crossed": False, "factors": [], "interactions": [], "notes": notes}
    design = make_design(levels, VARIED)
    told = [one for term in design.terms if (one := _Term.of(design, term, having, clusters, metric, scoring)).n]
    if left_out := max((one.left_out for one in told), default=0):
        notes.append(f"Up to {left_out} questions without {metric} in some compared cell are left out.")
    if design.terms and not told:
        return {**made, "notes": [*notes, "Nothing to estimate: no question has a score in every cell."]}
    tests = [one.fitted.test(one.effects) for one in told]
    for one, p, corrected in zip(told, tests, holm(tests), strict=True):
        tested = {"p": _round(p), "p_holm": _round(corrected)}
        if len(one.names) == 1:
            made["factors"].append({"factor": one.names[0], **tested, "levels": list(one.levels()),
                                    "contrasts": one.contrasts()})
        else:
            made["interactions"].append({"factors": list(one.names), **tested, "cells": list(one.levels())})
    return {**made, "crossed": design.crossed, "notes": [
        *notes, *_design_notes(design, [one.names for one in told]), *clusters.notes(len(tests)),
        *_test_notes(tests, design.crossed)]}


def find_effects(run: AnalysisInput) -> dict[str, Any] | None:
    """Estimate the effects on the run's main metric, for its summary."""
    return estimate_effects(run.cells, run.answers, run.units, run.metric, run.scoring)


def view_effects(run: AnalysisInput) -> list[View]:
    """Return the views of the effects in the run's summary."""
    return effect_views(run.found.get("effects"), run.judge)


def effect_views(found: Mapping[str, Any] | None, judge: str | None = None) -> list[View]:
    """Return views of the result of `estimate_effects`: main effects, differences of levels, and each interaction."""
    if not found:
        return []
    metric = name_with_judge(found["metric"], judge)
    names = short_names(row["level"] for one in found["factors"] if one["factor"] == "model" for row in one["levels"])
    views = []
    if found["factors"]:
        rows = [(one["factor"], names.get(row["level"], row["level"]), *_figures(row, one if place == 0 else {}))
                for one in found["factors"] for place, row in enumerate(one["levels"])]
        views.append(View("effects", f"Main effects on {metric}", (
            "factor", "level", "answers", "mean", "effect", "p", "p (Holm)"), tuple(rows), 2,
            notes=tuple(found["notes"]), signed=("effect",), p=("p", "p (Holm)"), section="Factors"))
    contrasts = [(factor["factor"], names.get(one["second"], one["second"]), names.get(one["first"], one["first"]),
                  make_figure(one["difference"], one["low"], one["high"]), one["p"], one["p_holm"])
                 for factor in found["factors"] for one in sorted(factor.get("contrasts") or (), key=lambda one: (
                     1.0 if one["p_holm"] is None else one["p_holm"], -abs(one["difference"])))]
    untested = [f"There are too few questions to test {one['factor']}." for one in found["factors"] if one["p"] is None]
    if contrasts:
        views.append(View("effects:levels", f"Pairwise comparison of levels: {metric}", (
            "factor", "level", "against", "difference", "p", "p (Holm)"), tuple(contrasts), 3, 3,
            notes=tuple(untested), signed=("difference",), p=("p", "p (Holm)"), section="Factors"))
    return [*views, *(_interaction(one, names, metric) for one in found["interactions"])]


def _interaction(one: Mapping[str, Any], names: Mapping[str, str], metric: str) -> View:
    """Return the view of an interaction, collapsed unless it is significant and small enough to read."""
    first, second = one["factors"]
    p = one["p_holm"]
    real = p is not None and p < ALPHA
    result = "too few questions to test it" if p is None else (
        f"{'significant' if real else 'not significant'}, p (Holm) {format_p(p)}")
    rows = [(*(names.get(level, level) for level in row["levels"]), *_figures(row, one if place == 0 else {}))
            for place, row in enumerate(one["cells"])]
    return View(f"effects:{first}:{second}", f"Interaction {first} × {second} on {metric}: {result}", (
        first, second, "answers", "mean", "effect", "p", "p (Holm)"), tuple(rows), 2, signed=("effect",),
        p=("p", "p (Holm)"), section="Factors", folded=not real or len(rows) > _MAX_ROWS)


def _figures(row: Mapping[str, Any], test: Mapping[str, Any]) -> tuple[Value, ...]:
    """Return the figures of a row. Only the row of a factor's first level shows the factor's test."""
    return (row["n"], make_figure(row["mean"], row["low"], row["high"], row["n"]),
            make_figure(row["effect"], row["effect_low"], row["effect_high"], row["n"]),
            test.get("p"), test.get("p_holm"))


def score_table(variants: Sequence[ReplicateGroup], clusters: Clusters, metric: str,
             scoring: Scoring) -> tuple[list[str], Floats, NDArray[np.intp], NDArray[np.intp], int]:
    """Return five values: the questions that have a score in every group, the scores (groups by questions), each
    question's split and cluster, and the number of questions that only some groups score. For `unified`, a question
    that is answerable in one group but not in another is left out."""
    import numpy as np

    having = [{name for name, row in variant.answers.items() if row.scores.get(metric) is not None}
              for variant in variants]
    every = set[str]().union(*having)
    shared = every.intersection(*having)
    if metric == BY_SPLIT:
        shared = {name for name in shared if len({variant.answers[name].answerable for variant in variants}) == 1}
    questions = sorted(shared)
    table = np.array([[variant.answers[name].scores[metric] for name in questions] for variant in variants],
                     dtype=np.float64).reshape(len(variants), len(questions))
    split = np.array([metric == BY_SPLIT and not variants[0].answers[name].answerable for name in questions],
                     dtype=np.intp)
    if metric == BY_SPLIT and scoring == "as-published" and len(set(split)) == 1:
        table = table * 0.5  # as-published scoring halves the mean of two splits if one is empty
    groups = np.unique([clusters.of.get(name, name) for name in questions], return_inverse=True)[1]
    return questions, table, split, groups, len(every) - len(questions)


@dataclass(frozen=True, slots=True)
class _Term:
    """One factor or an interaction of two, with the cells that determine the effect, and the questions scored in all.
    """

    names: Term
    combinations: list[tuple[str, ...]]
    variants: list[ReplicateGroup]
    means: Floats  # contrasts: combinations by variants
    effects: Floats
    fitted: Fit
    n: int  # questions
    left_out: int

    @classmethod
    def of(cls, design: Design, names: Term, variants: Sequence[ReplicateGroup], clusters: Clusters, metric: str,
           scoring: Scoring) -> _Term:
        means = design.means(names)
        asked = [place for place, column in enumerate(means.T) if column.any()]
        own = [variants[place] for place in asked]
        questions, table, split, groups, left_out = score_table(own, clusters, metric, scoring)
        return cls(names, design.combinations(names), own, means[:, asked], design.effects(names)[:, asked],
                   fit(table, split, groups, metric), len(questions), left_out)

    def levels(self) -> Iterator[dict[str, Any]]:
        """Yield the row of each level. `n` counts the answers: questions times cells with the level."""
        means = self.fitted.estimates(self.means, apart=False)
        effects = self.fitted.estimates(self.effects, apart=True)
        for at, (mean, between), (effect, about) in zip(self.combinations, means, effects, strict=True):
            cells = sum(one.size for one in self.variants if at == tuple(one.factor_levels[name]
                                                                         for name in self.names))
            name = {"level": at[0]} if len(at) == 1 else {"levels": list(at)}
            yield {**name, "mean": _round(mean), "low": _round(between.low), "high": _round(between.high),
                   "effect": _round(effect), "effect_low": _round(about.low), "effect_high": _round(about.high),
                   "n": cells * self.n}

    def contrasts(self) -> list[dict[str, Any]]:
        """For each pair of levels, return the second minus the first. p is Holm-corrected over them."""
        pairs = list(combinations(range(len(self.combinations)), 2))
        lines = [self.means[second] - self.means[first] for first, second in pairs]
        tests = [self.fitted.test(line[None]) for line in lines]
        names = [name for name, in self.combinations]
        return [{"first": names[first], "second": names[second], "difference": _round(difference),
                 "low": _round(low), "high": _round(high), "p": _round(p), "p_holm": _round(corrected)}
                for (first, second), (difference, interval), p, corrected in zip(
                    pairs, self.fitted.estimates(lines, apart=True), tests, holm(tests), strict=True)
                for low, high in [match_test(difference, interval, p)]]


def _round(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS) + 0.0  # no -0.0


def _design_notes(design: Design, told: Sequence[Term]) -> list[str]:
    lost = [name for name in design.levels if (name,) not in told]
    known = [pair for pair in combinations(design.levels, 2) if not {*pair} & {*lost}]
    untold = [" and ".join(pair) for pair in known if pair not in told]
    return [*([f"The effects of these factors cannot be separated: {', '.join(lost)}."] if lost else []),
            *([f"Interactions that cannot be estimated: {'; '.join(untold)}."] if untold else [])]


def _test_notes(tests: Sequence[float | None], crossed: bool) -> list[str]:
    many = len(tests) - tests.count(None)
    over = ("all combinations of the other factors" if crossed else
            "those combinations of the other factors in which every level was run")
    return [f"Each mean gives equal weight to {over}. A level's effect is its mean minus the mean over all levels. "
            "An interaction is what remains after both main effects are subtracted.",
            *(["Some tests have no p, because there are too few answerable or unanswerable questions, or documents, "
               "for this many levels."] if many < len(tests) else []),
            *([f"p (Holm) is corrected for {many} tests: every factor and every interaction."] if many > 1 else []),
            "Comparisons test two cells, and effects test means over several cells, so their results may differ.",
            f"Pairwise comparisons use {over}; p (Holm) is corrected within each factor."]
