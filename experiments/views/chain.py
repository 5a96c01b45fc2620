"""MRKE's chain outcomes: which sub-answers and final answers are right together (Table 5)."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product

from experiments.metrics import chain_pattern
from experiments.metrics.aggregate import share_of
from experiments.record import Result
from experiments.views.apart import apart
from experiments.views.types import Material, Value, View

RIGHT, LUCKY = "right for the right reason", "lucky: right answer, a step wrong"


@apart
def chain(material: Material) -> View | None:
    """Shares of the 2^(N+1) patterns over the N sub-answers, in order, and the final answer, by exact match.

    A question is right for the right reason where all are correct, and lucky where the final answer is and a step
    is not. Questions without a scored chain, such as those whose sub-questions were not asked, are left out and
    counted. Of each version where there are two.
    """
    patterns = {cell["id"]: Counter(map(_pattern, material.results[cell["id"]])) for cell in material.cells}
    hops = sorted({len(pattern) - 1 for found in patterns.values() for pattern in found if pattern})
    rows = [row for count in hops for row in _rows(material, patterns, count)]
    if not rows:
        return None
    left_out = sum(found[""] for found in patterns.values())
    notes = [f"Answers without a scored chain, which are left out: {left_out}."] if left_out else []
    return View("chain", "Chain outcomes", ("sub-questions", "outcome", "cell", "n", "share"), tuple(rows), 3, 4,
                ("In order: each sub-answer, then the final answer; c is correct, w is wrong, by exact match.", *notes))


def _pattern(result: Result) -> str:
    """Such as `cwc`; empty where no chain is scored."""
    return "".join("c" if right else "w" for right in chain_pattern(result.scores))


def _rows(material: Material, patterns: Mapping[str, Counter[str]], hops: int) -> list[tuple[Value, ...]]:
    every = ["".join(letters) for letters in product("cw", repeat=hops + 1)]
    right, wrong_somewhere = every[0], [one for one in every[1:] if one.endswith("c")]
    groups = [(" ".join(one), [one]) for one in every] + [(RIGHT, [right]), (LUCKY, wrong_somewhere)]
    rows: list[tuple[Value, ...]] = []
    for words, members in groups:
        for label, cell in material.labelled():
            found = patterns[cell["id"]]
            if n := sum(found[one] for one in every):
                rows.append((str(hops), words, label, n, share_of(sum(found[one] for one in members), n)))
    return rows
