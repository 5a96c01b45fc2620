"""Paired comparisons of cells: all pairs of a run that differ in exactly one factor, and the view of a comparison."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragbed.experiments.analysis.inputs import AnalysisInput
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
    BOUNDS,
    ON_INTERVALS,
    detectable,
    format_bounds,
    format_effect,
    is_uncorrected,
    metric_title,
    verdict,
)
from ragbed.experiments.metrics import Scoring
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import Clusters, Comparison

MAX_PAIRS = 400  # each pair takes tens of milliseconds
_Pair = tuple[str, ReplicateGroup, ReplicateGroup]
_FIRST = ("reasoning", "condition")  # these factors come first
_ON_TABLES = ("All pairs of cells that differ in exactly one factor are compared over the same questions. Up and down "
              "count the questions that score higher and lower after the change. Detectable is the smallest difference "
              "that the test would find with a power of 80 %.")


def compare_pairs(rows: CellRows, answers: Answers, clusters: Clusters, metric: str, scoring: Scoring, seed: int = 0,
                  repeated: CellRows = ()) -> dict[str, Any] | None:
    """Compare all pairs that differ in exactly one factor, with p corrected over all of them. Return None if the run
    has one cell. Repeats and seeds are pooled; the summary's `repeated` has their intervals."""
    if len(rows) < 2:
        return None
    groups, pooled = group_replicates(rows, answers), pool_replicates(repeated)
    chosen, notes = select_pairs(groups)
    couples = [(first, second) for _, first, second in chosen]
    tests = compare_groups(metric, couples, clusters.of, scoring, seed)
    made = [comparison_row(*couple, use_own_intervals(one, *(find_figures(side, pooled) for side in couple)))
            for couple, one in zip(couples, tests, strict=True) if one]
    return {"metric": metric, **({"unit": clusters.unit} if clusters.unit != "question" else {}), "pairs": made,
            "notes": [*replicate_notes(groups), *notes,
                      *([f"{len(chosen) - len(made)} pairs of cells have no question with {metric} in both."]
                        if len(made) < len(chosen) else []),
                      *clusters.notes(len(made)), *([ON_INTERVALS] if made else []),
                      *([f"p (Holm) is corrected for {len(made)} comparisons: all pairs that differ in exactly one "
                         "factor."] if len(made) > 1 else [])]}


def comparison_views(found: Mapping[str, Any] | None, rows: CellRows) -> list[View]:
    """Return a view of the result of `compare_pairs` for each factor: reasoning first, then condition."""
    if not found or not found["pairs"]:
        return []
    groups = {one.first["id"]: one for one in group_replicates(rows, {})}
    names = dict(zip(groups, label_groups(groups.values()), strict=True))
    known = [one for one in found["pairs"] if one["first"] in groups and one["second"] in groups]
    views: list[View] = []
    for factor in dict.fromkeys((*_FIRST, *(one["factor"] for one in known))):
        own = [((one["first"], one["second"]), Comparison.of(found["metric"], one))
               for one in known if one["factor"] == factor]
        if own:
            keyed: list[tuple[tuple[Value, ...], Comparison]] = [(({
                "text": describe_change(factor, groups[ids[0]], groups[ids[1]], names[ids[0]], names[ids[1]]),
                "cells": [names[id] for id in ids]},), made) for ids, made in own]
            views.append(difference_view(
                f"comparisons:{factor}", f"{factor.capitalize()}: {_count_significant([made for _, made in own])}",
                ("what changes",), keyed, () if views else (_ON_TABLES, *found["notes"]), "Comparisons"))
    return views


def _count_significant(tested: Sequence[Comparison]) -> str:
    real, alone = sum(one.real for one in tested), sum(map(is_uncorrected, tested))
    return (f"{real} of {len(tested)} pairs significant" + (f", {alone} more before correction only" if alone else "")
            + f", by {metric_title(tested[0].metric)}")


def difference_view(name: str, title: str, keys: Sequence[str], rows: Sequence[tuple[tuple[Value, ...], Comparison]],
                    notes: Sequence[str] = (), section: str = "Breakdowns",
                    sides: tuple[str, str] = ("before", "after")) -> View:
    """Return comparisons as a view, significant ones first and then by p.

    Args:
        keys: headers of the columns that identify a row.
        rows: the values of these columns, and the comparison.
        sides: headers of the two figures.
    """
    lonely = any(one.unpaired for _, one in rows)
    open_ = any(one.bounds for _, one in rows)
    header = (*keys, "n", *(["unpaired"] if lonely else []), *sides, "difference", *([BOUNDS] if open_ else []), "up",
              "down", "effect", "test", "p", "p (Holm)", "detectable", "verdict")
    ordered = sorted(rows, key=lambda row: (not row[1].real, 2.0 if row[1].p is None else row[1].p,
                                            -abs(row[1].difference or 0.0)))
    return View(name, title, header, tuple(
        (*key, *_values(key, one, lonely, open_)) for key, one in ordered), len(keys),
                notes=tuple(notes), signed=("difference",), p=("p", "p (Holm)"), section=section)


def compare_figures(run: AnalysisInput, results: Mapping[str, Sequence[Result]], figures: Mapping[str, str], name: str,
                    title: str) -> list[View]:
    """Test several metrics, by their titles, between the cells that differ in one factor. `results` are by cell id."""
    groups = group_replicates(run.cells, {id: {one.question: one for one in own} for id, own in results.items()})
    names = dict(zip((one.first["id"] for one in groups), label_groups(groups), strict=True))
    couples = [(first, second) for _, first, second in select_pairs(groups)[0]]
    tested: list[tuple[tuple[Value, ...], Comparison]] = []
    for figure, metric in figures.items():
        made = compare_groups(metric, couples, run.clusters, run.scoring, run.seed)
        tested += [((figure, f"{names[first.first['id']]} → {names[second.first['id']]}"), one)
                   for (first, second), one in zip(couples, made, strict=True) if one is not None]
    notes = ("Pairs are questions whose answers in both cells have the figure. p (Holm) is corrected within a figure.",)
    return [difference_view(name, title, ("figure", "what changes"), tested, notes)] if tested else []


def _values(key: Sequence[Value], one: Comparison, lonely: bool, open_: bool) -> Iterator[Value]:
    cells = key[0]["cells"] if isinstance(key[0], Mapping) else []
    yield one.n
    if lonely:
        yield one.unpaired
    yield from (make_figure(mean, low, high, one.n) for mean, low, high in (
        (one.before, one.before_low, one.before_high), (one.after, one.after_low, one.after_high),
        (one.difference, one.low, one.high)))
    if open_:
        yield format_bounds(one.bounds, form="+z.2f")
    for count, places in ((one.gained, (1, 0)), (one.lost, (0, 1))):
        right, wrong = (cells[place] for place in places) if cells else ("", "")
        yield count if count is None or not cells else {"count": count, "questions": {"right": right, "wrong": wrong}}
    yield from (format_effect(one), one.test, one.p, one.p_holm, detectable(one), verdict(one))


def describe_change(factor: str | None, first: ReplicateGroup, second: ReplicateGroup, before: str, after: str) -> str:
    """Describe the change from one cell to another, such as `direct → chain_of_thought, evidence`: both levels of the
    factor, then the rest of the second cell's label. If the first label has other parts, they follow the first level.
    """
    if factor is None:
        return after
    names = short_names(str(one.first["model"]) for one in (first, second))
    levels = [names.get(found := str(one.factor_levels[factor]), found) for one in (first, second)]
    parts, own = after.split(SEPARATOR), before.split(SEPARATOR)
    rest = [part for part in parts if part != levels[1]]
    lacking = [part for part in own if part not in (levels[0], *parts)]
    return f"{SEPARATOR.join([levels[0], *lacking])} → {levels[1]}" + (f", {SEPARATOR.join(rest)}" if rest else "")


def select_pairs(variants: Sequence[ReplicateGroup]) -> tuple[list[_Pair], list[str]]:
    """Return the pairs that differ in exactly one factor, with that factor, and a note if pairs were left out. If there
    are too many, keep only pairs with the factor's first level, or, if still too many, with the first cell."""
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
        f"{len(chosen)} of {len(every)} pairs of cells that differ in one factor are tested: those with the first "
        "level of each factor or with the first cell. `ragbed compare --baseline` tests others."]


def comparison_row(first: ReplicateGroup, second: ReplicateGroup, found: Comparison) -> dict[str, Any]:
    """Return a comparison as a summary stores it. `factor` is the one in which the cells differ, or None."""
    factors = differing_factors(first, second)
    return {"factor": factors[0] if len(factors) == 1 else None, "first": first.first["id"],
            "second": second.first["id"], **found.plain()}


def replicate_notes(groups: Iterable[ReplicateGroup]) -> list[str]:
    """Return a note if any cell was asked several times."""
    return ["A question's score is its mean over repeats and seeds. Results carry the id of the first of these "
            "cells."] if any(group.size > 1 for group in groups) else []
