"""The smallest difference that a run can detect, before its first call."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from experiments.cells import Cell
from experiments.metrics import score
from experiments.metrics.scored import Scored
from experiments.question import Benchmark, Question
from experiments.statistics import Clusters, assumed, planned


def detectable(benchmark: Benchmark, cells: Sequence[Cell], clusters: Clusters, pairs: int) -> dict[str, Any]:
    """The smallest difference in the main figure that its questions detect: of one pair of cells, and of all.

    Args:
        clusters: of the questions, as the run's tests will take them.
        pairs: that the run's summary will compare.
    """
    metric = benchmark.scheme.columns[0].split(" / ")[0]
    ways = sorted({(cell.rules, cell.searched) for cell in cells})
    asked = [question for question in benchmark.questions
             if any(metric in _applying(Scored("answered", question.answerable, answers=question.answers,
                                               options=question.options, gold_total=len(question.gold), rules=rules,
                                               searched=searched), benchmark) for rules, searched in ways)]
    sizes = [(found[True], found[False]) for found in _by_cluster(asked, clusters)]
    counts = sum(first for first, _ in sizes), sum(second for _, second in sizes)
    return {"metric": metric, "pairs": pairs, "questions": len(asked), "clusters": len(sizes),
            "assumed": assumed(metric, len(sizes) < len(asked)),
            "of_one_pair": planned(metric, *counts, clusters=sizes),
            "of_all_pairs": planned(metric, *counts, comparisons=max(1, pairs), clusters=sizes)}


def _applying(item: Scored, benchmark: Benchmark) -> set[str]:
    """The metrics that apply to a question, as its answer would be scored."""
    return {name for name, value in score(item, groups=benchmark.scheme.groups).items() if value is not None}


def _by_cluster(questions: Sequence[Question], clusters: Clusters) -> list[Counter[bool]]:
    """How many of each cluster are answerable, and how many are not."""
    found: dict[str, Counter[bool]] = {}
    for question in questions:
        found.setdefault(clusters.of[question.id], Counter())[question.answerable] += 1
    return list(found.values())
