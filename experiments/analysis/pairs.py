"""Pairs of cells compared: all of a run that differ in exactly one factor, and how any comparison stands in a view."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragbed.experiments.analysis.replicates import (
    Answers,
    CellRows,
    ReplicateGroup,
    compare_groups,
    differing_factors,
    find_figures,
    group_replicates,
    label_groups,
    pair_by_factor,
    pool_replicates,
    use_own_intervals,
)
from ragbed.experiments.analysis.view import Value, View, make_figure
from ragbed.experiments.cells import SEPARATOR, short_names
from ragbed.experiments.formatting import (
    ON_INTERVALS,
    detectable,
    format_effect,
    is_uncorrected,
    metric_title,
    verdict,
)
from ragbed.experiments.metrics import Scoring
from ragbed.experiments.statistics import Clusters, Comparison

MAX_PAIRS = 400  # pairs: each takes tens of milliseconds
_Pair = tuple[str, ReplicateGroup, ReplicateGroup]
_FIRST = ("reasoning", "condition")  # factors, before all others
_ON_TABLES = ("Every two cells that differ in exactly one factor are compared over the same questions. Up and down "
              "count the questions that score higher and lower after the change; detectable is the smallest difference "
              "that the test would find with a power of 80 %.")


def compare_pairs(rows: CellRows, answers: Answers, clusters: Clusters, metric: str, scoring: Scoring, seed: int = 0,
                repeated: CellRows = ()) -> dict[str, Any] | None:
    """Return the paired comparisons by the metric, p corrected over all of them; None where the run has one cell.
    Repeats and seeds are no comparison: a question's score is its mean over them, and the summary's `repeated` has the
    intervals."""
    if len(rows) < 2:
        return None
    variants, together = group_replicates(rows, answers), pool_replicates(repeated)
    chosen, notes = select_pairs(variants)
    tests = compare_groups(metric, [(first, second) for _, first, second in chosen], clusters.of, scoring, seed)
    made = [comparison_row(first, second, use_own_intervals(one, find_figures(first, together), find_figures(second,
                                                                                                             together)))
            for (_, first, second), one in zip(chosen, tests, strict=True) if one]
    return {"metric": metric, "pairs": made,
            "notes": [*replicate_notes(variants), *notes,
                      *([f"Pairs of cells of which no question has {metric} in both: {len(chosen) - len(made)}."]
                        if len(made) < len(chosen) else []),
                      *([clusters.note] if clusters.note else []), *([ON_INTERVALS] if made else []),
                      *([f"p (Holm) is corrected for {len(made)} comparisons: all cells that differ in exactly one "
                         "factor."] if len(made) > 1 else [])]}


def comparison_views(found: Mapping[str, Any] | None, rows: CellRows) -> list[View]:
    """Return a view of the result of `compare_pairs` for each factor: reasoning first, then condition."""
    if not found or not found["pairs"]:
        return []
    variants = {one.first["id"]: one for one in group_replicates(rows, {})}
    called = dict(zip(variants, label_groups(variants.values()), strict=True))
    known = [one for one in found["pairs"] if one["first"] in variants and one["second"] in variants]
    notes = (_ON_TABLES, *found["notes"])
    views: list[View] = []
    for factor in dict.fromkeys((*_FIRST, *(one["factor"] for one in known))):
        own = [one for one in known if one["factor"] == factor]
        tested = [Comparison.of(found["metric"], one) for one in own]
        if own:
            keyed = [(({"text": describe_change(factor, variants[one["first"]], variants[one["second"]],
                                          called[one["first"]], called[one["second"]]),
                        "cells": [called[one["first"]], called[one["second"]]]},), made)
                     for one, made in zip(own, tested, strict=True)]
            views.append(difference_view(f"comparisons:{factor}", f"{factor.capitalize()}: {_count(tested)}",
                                         ("what changes",), keyed, () if views else notes, "Comparisons"))
    return views


def _count(tested: Sequence[Comparison]) -> str:
    real, alone = sum(one.real for one in tested), sum(map(is_uncorrected, tested))
    return (f"{real} of {len(tested)} pairs significant" + (f", {alone} more before correction only" if alone else "")
            + f", by {metric_title(tested[0].metric)}")


def difference_view(name: str, title: str, keys: Sequence[str], rows: Sequence[tuple[tuple[Value, ...], Comparison]],
                    notes: Sequence[str] = (), section: str = "Breakdowns",
                    sides: tuple[str, str] = ("before", "after")) -> View:
    """Return comparisons as a view: the real differences first, then by p. `keys` are headers of what says which
    comparison a row is, of which `rows` has the values with each comparison; `sides` are those of the two figures."""
    lonely = any(one.unpaired for _, one in rows)
    header = (*keys, "n", *(["unpaired"] if lonely else []), *sides, "difference", "up", "down", "effect", "test", "p",
              "p (Holm)", "detectable", "verdict")
    ordered = sorted(rows, key=lambda row: (not row[1].real, 2.0 if row[1].p is None else row[1].p,
                                            -abs(row[1].difference or 0.0)))
    return View(name, title, header, tuple((*key, *_values(key, one, lonely)) for key, one in ordered), len(keys),
                notes=tuple(notes), signed=("difference",), p=("p", "p (Holm)"), section=section)


def _values(key: Sequence[Value], one: Comparison, lonely: bool) -> Iterator[Value]:
    cells = key[0]["cells"] if isinstance(key[0], Mapping) else []
    yield one.n
    if lonely:
        yield one.unpaired
    yield from (make_figure(mean, low, high, one.n) for mean, low, high in (
        (one.before, one.before_low, one.before_high), (one.after, one.after_low, one.after_high),
        (one.difference, one.low, one.high)))
    for count, places in ((one.gained, (1, 0)), (one.lost, (0, 1))):
        right, wrong = (cells[place] for place in places) if cells else ("", "")
        yield count if count is None or not cells else {"count": count, "questions": {"right": right, "wrong": wrong}}
    yield from (format_effect(one), one.test, one.p, one.p_holm, detectable(one), verdict(one))


def describe_change(factor: str | None, first: ReplicateGroup, second: ReplicateGroup, before: str, after: str) -> str:
    """Return what changes from one cell to another, such as `direct → chain_of_thought, evidence`: the two values of
    the factor in which alone they differ, and what else the second is called; the first by what it is besides, where
    the second has no such part, as none closed-book is shuffled. The cells are called `before` and `after`."""
    if factor is None:
        return after
    names = short_names(str(one.first["model"]) for one in (first, second))
    levels = [names.get(found := str(one.factor_levels[factor]), found) for one in (first, second)]
    parts, own = after.split(SEPARATOR), before.split(SEPARATOR)
    rest = [part for part in parts if part != levels[1]]
    lacking = [part for part in own if part not in (levels[0], *parts)]
    return f"{SEPARATOR.join([levels[0], *lacking])} → {levels[1]}" + (f", {SEPARATOR.join(rest)}" if rest else "")


def count_pairs(rows: CellRows) -> int:
    """Return how many pairs of these cells a run will compare, as far as that is known before it."""
    return len(select_pairs(group_replicates(rows, {}))[0])


def select_pairs(variants: Sequence[ReplicateGroup]) -> tuple[list[_Pair], list[str]]:
    """Return the pairs that differ in exactly one factor, with the factor; and that they are not all, where they are
    not: of too many, those with a cell of which the factor has its first value; of too many of these, those with the
    first cell."""
    every = list(pair_by_factor(variants))
    if len(every) <= MAX_PAIRS:
        return every, []
    first: dict[str, str] = {}
    for name, level in (pair for variant in variants for pair in variant.factor_levels.items()):
        if level is not None:
            first.setdefault(name, level)
    chosen = [pair for pair in every if pair[1].factor_levels[pair[0]] == first[pair[0]]]
    if len(chosen) > MAX_PAIRS:
        chosen = [pair for pair in every if pair[1] is variants[0]][:MAX_PAIRS]
    return chosen, [] if len(chosen) == len(every) else [
        f"{len(every)} pairs of cells differ in one factor, more than are tested at once; tested are {len(chosen)}, "
        "against the first value of each factor or the first cell. `ragbed compare --baseline` tests others."]


def comparison_row(first: ReplicateGroup, second: ReplicateGroup, found: Comparison) -> dict[str, Any]:
    """Return a comparison as a summary holds it: `first` and `second` are ids of cells; `factor` is the one in which
    they differ, None where there is none or several."""
    factors = differing_factors(first, second)
    return {"factor": factors[0] if len(factors) == 1 else None, "first": first.first["id"],
            "second": second.first["id"],
            **found.plain()}


def replicate_notes(variants: Iterable[ReplicateGroup]) -> list[str]:
    """Return what stands under a cell's id where it was asked several times."""
    return ["A question's score is its mean over repeats and seeds; the id of the first of these cells stands for "
            "all."] if any(variant.size > 1 for variant in variants) else []
