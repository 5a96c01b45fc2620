"""MRKE's chain outcomes: which sub-answers and final answers are right together (Table 5)."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from experiments.metrics import chain_pattern
from experiments.metrics.aggregate import share_among
from experiments.record import Result
from experiments.views.apart import apart
from experiments.views.types import Material, Value, View

RIGHT, LUCKY = "right for the right reason", "lucky: right answer, a step wrong"
_ALL_LISTED = 4  # steps up to which patterns that never occur have rows too: MRKE and MuSiQue have at most 4


@apart
def chain(material: Material) -> View | None:
    """Shares of the 2^(N+1) patterns over the N sub-answers, in order, and the final answer, by exact match.

    A question is right for the right reason where all are correct, and lucky where the final answer is and a step
    is not. Of more than four sub-questions only the patterns that occur are listed. Questions without a scored
    chain, such as those whose sub-questions were not asked, are left out and counted. Of each version where there
    are two.
    """
    patterns = {cell["id"]: list(map(_pattern, material.results[cell["id"]])) for cell in material.cells}
    hops = sorted({len(pattern) - 1 for found in patterns.values() for pattern in found if pattern})
    rows = [row for count in hops for row in _rows(material, patterns, count)]
    if not rows:
        return None
    left_out = sum(found.count("") for found in patterns.values())
    notes = [f"Answers without a scored chain, which are left out: {left_out}."] if left_out else []
    return View("chain", "Chain outcomes", ("sub-questions", "outcome", "cell", "n", "share"), tuple(rows), 3, 4,
                ("In order: each sub-answer, then the final answer; c is correct, w is wrong, by exact match.", *notes))


def _pattern(result: Result) -> str:
    """Such as `cwc`; empty where no chain is scored."""
    return "".join("c" if right else "w" for right in chain_pattern(result.scores))


def _rows(material: Material, patterns: Mapping[str, Sequence[str]], hops: int) -> list[tuple[Value, ...]]:
    found = {cell: [one for one in patterns[cell] if len(one) == hops + 1] for cell in patterns}
    clusters = {cell: [of for one, of in zip(patterns[cell], material.clusters_of(material.results[cell]), strict=True)
                       if len(one) == hops + 1] for cell in patterns}
    every = sorted(set().union(*found.values()))
    if hops <= _ALL_LISTED:
        every = ["".join(letters) for letters in product("cw", repeat=hops + 1)]
    wrong_somewhere = [one for one in every if one.endswith("c") and "w" in one]
    groups = [(" ".join(one), [one]) for one in every] + [(RIGHT, ["c" * (hops + 1)]), (LUCKY, wrong_somewhere)]
    return [(str(hops), words, label, len(found[cell["id"]]),
             share_among([one in members for one in found[cell["id"]]], clusters[cell["id"]]))
            for words, members in groups for label, cell in material.labelled() if found[cell["id"]]]
