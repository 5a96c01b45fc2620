"""All cells of a run that differ in exactly one factor, compared: the `comparisons` of its summary."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.analysis.variants import (
    Variant,
    differing,
    own_figures,
    pairs_by_factor,
    together_of,
    variants_of,
    with_own_intervals,
)
from experiments.metrics import ScoredRow, Scoring, may_refuse
from experiments.statistics import Clusters, Comparison, compare, pairs_of
from experiments.words import ON_INTERVALS

MOST = 400  # pairs: each takes tens of milliseconds
_Pair = tuple[str, Variant, Variant]


def comparisons(rows: Sequence[Mapping[str, Any]], answers: Mapping[str, Mapping[str, ScoredRow]], clusters: Clusters,
                metric: str, scoring: Scoring, seed: int = 0,
                repeated: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any] | None:
    """The paired comparisons by the metric, p corrected over all of them; None where the run has one cell.

    Repeats and seeds are no comparison: a question's score is its mean over them.

    Args:
        rows: the cells of the summary.
        answers: by cell's id, then by question.
        repeated: the summary's, whose intervals are those of what was asked several times.
    """
    if len(rows) < 2:
        return None
    variants, together = variants_of(rows, answers), together_of(repeated)
    chosen, notes = tested_pairs(variants)
    made = [pairs_of(metric, first.answers, second.answers, clusters.of, scoring,
                     may_refuse(first.row["rules"]) and may_refuse(second.row["rules"])) for _, first, second in chosen]
    shown = [place for place, pairs in enumerate(made) if pairs.n]
    found = [with_own_intervals(one, *(own_figures(side, together) for side in chosen[place][1:]))
             for place, one in zip(shown, compare([made[place] for place in shown], seed), strict=True)]
    return {"metric": metric,
            "pairs": [row_of(*chosen[place][1:], one) for place, one in zip(shown, found, strict=True)],
            "notes": [*on_replicates(variants), *notes,
                      *([f"Pairs of cells of which no question has {metric} in both: {len(chosen) - len(shown)}."]
                        if len(shown) < len(chosen) else []),
                      *([clusters.note] if clusters.note else []), *([ON_INTERVALS] if shown else []),
                      *([f"p (Holm) is corrected for {len(shown)} comparisons: all cells that differ in exactly one "
                         "factor."] if len(shown) > 1 else [])]}


def planned_pairs(rows: Sequence[Mapping[str, Any]]) -> int:
    """How many pairs of these cells a run will compare, as far as that is known before it."""
    return len(tested_pairs(variants_of(rows, {}))[0])


def tested_pairs(variants: Sequence[Variant]) -> tuple[list[_Pair], list[str]]:
    """The pairs that differ in exactly one factor, with the factor; and that they are not all, where they are not."""
    every = list(pairs_by_factor(variants))
    chosen = _bounded(every, variants)
    return chosen, _on_bound(len(every), len(chosen))


def _bounded(pairs: Sequence[_Pair], variants: Sequence[Variant]) -> list[_Pair]:
    """Where there are too many, those with a cell of which the factor has its first value; where that is too many,
    those with the first cell."""
    if len(pairs) <= MOST:
        return list(pairs)
    first: dict[str, str] = {}
    for variant in variants:
        for name, level in variant.levels.items():
            if level is not None:
                first.setdefault(name, level)
    against = [pair for pair in pairs if pair[1].levels[pair[0]] == first[pair[0]]]
    return against if len(against) <= MOST else [pair for pair in pairs if pair[1] is variants[0]][:MOST]


def row_of(first: Variant, second: Variant, found: Comparison) -> dict[str, Any]:
    """A comparison as a summary holds it: `first` and `second` are ids of cells; `factor` is the one in which they
    differ, None where there is none or several."""
    factors = differing(first, second)
    return {"factor": factors[0] if len(factors) == 1 else None, "first": first.row["id"], "second": second.row["id"],
            **found.plain()}


def on_replicates(variants: Iterable[Variant]) -> list[str]:
    """What stands under a cell's id where it was asked several times."""
    return ["A question's score is its mean over repeats and seeds; the id of the first of these cells stands for "
            "all."] if any(variant.cells > 1 for variant in variants) else []


def _on_bound(every: int, chosen: int) -> list[str]:
    return [] if every == chosen else [
        f"{every} pairs of cells differ in one factor, more than are tested at once; tested are {chosen}, against the "
        "first value of each factor or the first cell. `ragbed compare --baseline` tests others."]
