"""Main effects and two-way interactions of a run's factors: the `effects` of its summary."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from experiments.analysis.variants import VARIED, Variant, variants_of
from experiments.metrics import Interval, ScoredRow, Scoring
from experiments.settings.cells import short_names
from experiments.statistics import Clusters, holm
from experiments.statistics.factorial import Design, Fit, Term, design_of, fit, varying

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from experiments.metrics.metric import Floats

_DIGITS = 10
_BY_SPLIT = "unified"


@dataclass(frozen=True, slots=True)
class _Scores:
    """The questions that have a score in every variant.

    Attributes:
        table: cells by questions.
        split: of each question, of whose two means the metric's figure is the mean: 0, or 1 of the unanswerable.
        clusters: of each question, from 0.
        left_out: how many questions have one in some alone.
    """

    variants: tuple[Variant, ...]
    questions: tuple[str, ...]
    table: Floats
    split: NDArray[np.intp]
    clusters: NDArray[np.intp]
    left_out: int


def effects(rows: Sequence[Mapping[str, Any]], answers: Mapping[str, Mapping[str, ScoredRow]], clusters: Clusters,
            metric: str, scoring: Scoring = "corrected") -> dict[str, Any] | None:
    """What each factor does to the metric over the levels of the others, by how much every two of its levels differ,
    and where two factors depend on each other; p of factors and interactions is corrected over all of them. None
    where fewer than two factors vary among the cells that have the metric: the effects of one are its comparisons.

    Least squares over the scores of the questions, by sum-coded factors (`statistics.factorial`).
    Repeats and seeds are no factor: a question's score is its mean over them.

    Args:
        rows: the cells of the summary.
        answers: by cell's id, then by question.
        metric: one that questions have.
    """
    every = variants_of(rows, answers)
    having = [variant for variant in every if _has(variant, metric)]
    levels = [variant.levels for variant in having]
    if len(varying(levels, VARIED)) < 2:
        return None
    scores = _scores(having, clusters, metric, scoring)
    notes = _on_scores(every, scores, metric)
    if not scores.questions:
        return _made(metric, False, [], [], [*notes, "Nothing to estimate: no question has a score in every cell."])
    design = design_of(levels, VARIED)
    fitted = fit(design, scores.table, scores.split, scores.clusters, metric)
    told = [term for term in design.terms if design.tells(term)]
    tests = [fitted.test(design.effects(term)) for term in told]
    made = [{**_named(term), "p": _rounded(p), "p_holm": _rounded(corrected),
             "levels" if len(term) == 1 else "cells": list(_levels(design, fitted, scores, term)),
             **({"contrasts": _contrasts(design, fitted, term)} if len(term) == 1 else {})}
            for term, p, corrected in zip(told, tests, holm(tests), strict=True)]
    return _made(metric, design.crossed, [one for one in made if "factor" in one],
                 [one for one in made if "factors" in one],
                 [*notes, *_on_design(design, told), *([clusters.note] if clusters.note else []),
                  *_on_tests(tests, design.crossed)])


def with_short_names(found: Mapping[str, Any]) -> dict[str, Any]:
    """The effects with models by their short names, for people."""
    factors, interactions = found["factors"], found.get("interactions") or ()
    names = short_names(row["level"] for one in factors if one["factor"] == "model" for row in one["levels"])

    def short(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
        return {**row, **{key: names.get(row[key], row[key]) for key in keys}}

    return {**found, "factors": [{**one, "levels": [short(row, "level") for row in one["levels"]],
                                  "contrasts": [short(row, "first", "second") for row in one.get("contrasts", ())]}
                                 for one in factors],
            "interactions": [{**one, "cells": [{**row, "levels": [names.get(level, level) for level in row["levels"]]}
                                               for row in one["cells"]]} for one in interactions]}


def _made(metric: str, crossed: bool, factors: list[dict[str, Any]], interactions: list[dict[str, Any]],
          notes: list[str]) -> dict[str, Any]:
    """`crossed` says whether every combination of the levels was asked."""
    return {"metric": metric, "crossed": crossed, "factors": factors, "interactions": interactions, "notes": notes}


def _has(variant: Variant, metric: str) -> bool:
    return any(row.scores.get(metric) is not None for row in variant.answers.values())


def _scores(variants: Sequence[Variant], clusters: Clusters, metric: str, scoring: Scoring) -> _Scores:
    """A question that some variant has answerable and another not, its gold dropped, has no place in `unified`."""
    import numpy as np

    having = [{name for name, row in variant.answers.items() if row.scores.get(metric) is not None}
              for variant in variants]
    every = set[str]().union(*having)
    shared = every.intersection(*having)
    if metric == _BY_SPLIT:
        shared = {name for name in shared if len({variant.answers[name].answerable for variant in variants}) == 1}
    questions = sorted(shared)
    table = np.array([[variant.answers[name].scores[metric] for name in questions] for variant in variants],
                     dtype=np.float64).reshape(len(variants), len(questions))
    split = np.array([metric == _BY_SPLIT and not variants[0].answers[name].answerable for name in questions],
                     dtype=np.intp)
    if metric == _BY_SPLIT and scoring == "as-published" and len(set(split)) == 1:
        table = table * 0.5  # as published, the mean of two splits is halved where one is empty
    groups = np.unique([clusters.of.get(name, name) for name in questions], return_inverse=True)[1]
    return _Scores(tuple(variants), tuple(questions), table, split, groups, len(every) - len(questions))


def _named(term: Term) -> dict[str, Any]:
    return {"factor": term[0]} if len(term) == 1 else {"factors": list(term)}


def _levels(design: Design, fitted: Fit, scores: _Scores, term: Term) -> Iterator[dict[str, Any]]:
    """n counts answers: of all questions in all cells that have the level."""
    means = fitted.estimates(design.means(term), apart=False)
    effects = fitted.estimates(design.effects(term), apart=True)
    for at, (mean, between), (effect, about) in zip(design.combinations(term), means, effects, strict=True):
        cells = sum(variant.cells for variant in scores.variants
                    if all(variant.levels[name] == level for name, level in zip(term, at, strict=True)))
        (low, high), (effect_low, effect_high) = _bounds(between), _bounds(about)
        name = {"level": at[0]} if len(term) == 1 else {"levels": list(at)}
        yield {**name, "mean": _rounded(mean), "low": low, "high": high, "effect": _rounded(effect),
               "effect_low": effect_low, "effect_high": effect_high, "n": cells * len(scores.questions)}


def _contrasts(design: Design, fitted: Fit, term: Term) -> list[dict[str, Any]]:
    """The second level of every two less the first, averaged as their means are; p corrected by Holm over the factor's
    contrasts."""
    means, pairs = design.means(term), list(combinations(range(len(design.combinations(term))), 2))
    lines = [means[second] - means[first] for first, second in pairs]
    tests = [fitted.test(line[None]) for line in lines]
    names = [name for name, in design.combinations(term)]
    return [{"first": names[first], "second": names[second], "difference": _rounded(difference), "low": low,
             "high": high, "p": _rounded(p), "p_holm": _rounded(corrected)}
            for (first, second), (difference, between), p, corrected in zip(
                pairs, fitted.estimates(lines, apart=True), tests, holm(tests), strict=True)
            for low, high in [_bounds(between)]]


def _bounds(interval: Interval) -> tuple[float | None, float | None]:
    return _rounded(interval.low), _rounded(interval.high)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS) + 0.0  # no -0.0


def _on_scores(every: Sequence[Variant], scores: _Scores, metric: str) -> list[str]:
    notes = []
    if any(variant.cells > 1 for variant in every):
        notes.append("A question's score is its mean over repeats and seeds.")
    if len(scores.variants) < len(every):
        notes.append(f"Cells without {metric}, which are left out: {len(every) - len(scores.variants)}.")
    if scores.left_out:
        notes.append(f"Questions without {metric} in every cell, which are left out: {scores.left_out}.")
    return notes


def _on_design(design: Design, told: Sequence[Term]) -> list[str]:
    """What the cells cannot tell."""
    lost = [term[0] for term in design.terms if len(term) == 1 and term not in told]
    known = [pair for pair in combinations(design.levels, 2) if not {*pair} & {*lost}]
    untold = [" and ".join(pair) for pair in known if pair not in told]
    return [*([f"The cells cannot tell the effects of these factors apart: {', '.join(lost)}."] if lost else []),
            *([f"Interactions that the cells cannot tell, and that are taken for none: {'; '.join(untold)}."]
              if untold else [])]


def _on_tests(tests: Sequence[float | None], crossed: bool) -> list[str]:
    many = len(tests) - tests.count(None)
    over = ("all combinations of the other factors" if crossed else
            "the combinations of the other factors as a sum of effects, also over combinations that were not asked")
    return [f"A mean is over {over}, each counting once; an effect is how far it is from "
            "the mean of the levels, that of a combination how far it is from what its two levels say when added.",
            *(["Without p are tests of more levels than the questions, or the documents, of one kind can tell: the "
               "answerable or the unanswerable."] if many < len(tests) else []),
            *([f"p (Holm) is corrected for {many} tests: every factor and every interaction."] if many > 1 else []),
            "A comparison is of one cell with one other, and a factor's test of its means over the others: these are "
            "different questions, and their answers may differ.",
            f"A contrast is between two levels of a factor, over {over}; its p (Holm) is corrected for all contrasts "
            "of that factor."]
