"""What a model's grades of unjudged passages change in the figures of rankings."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import log2
from typing import Any

from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.cells import Cell
from ragbed.experiments.judges.relevance import HELPS
from ragbed.experiments.metrics import (
    GOLD,
    Scored,
    ScoredQuestion,
    aggregate,
    judgements_at,
    name_of,
    named_ranking,
    scored_of,
)

_METRICS = ("ndcg@10", "judged@10", "bpref")
_FIRST = 10


def grade_views(run: AnalysisInput) -> list[View]:
    """Return the figures of every cell that ranks, by people's judgements alone and with the grades beside them. The
    grades of all cells count for each, as in a pool, so that cells compare."""
    grades = {(one.question, name_of(passage, run.questions[one.question])): passage.grade
              for found in run.results.values() for one in found for passage in one.evidence
              if passage.grade is not None}
    if not grades:
        return []
    highest = max(item.relevance for question in run.questions.values() for item in question.gold)
    gains: dict[str, dict[str, int]] = {id: {} for id in run.questions}
    for (id, name), grade in grades.items():
        gains[id][name] = min(grade, highest) if highest > 1 else int(grade >= HELPS)
    rows = [_row(run, label, cell, gains) for label, cell in run.labelled() if Cell.of(cell).ranked]
    counts = ", ".join(f"{grade}: {count}" for grade, count in sorted(Counter(grades.values()).items(), reverse=True))
    scale = f"grades count as they are, {highest} at most," if highest > 1 else f"{HELPS} and 3 are relevant,"
    header = [words for name in _METRICS for words in (name, f"{name}, graded")]
    return [View("grades", "Unjudged passages, graded by a model", ("cell", "n", *header, "gain from grades"),
                 tuple(rows), 1, 2, (
        f"The model graded {len(grades)} passages that people did not judge ({counts}); {scale} as people's highest "
        f"judgement is {highest}. Without grades such a passage is of no use. `gain from grades` is the share of the "
        f"discounted gain of the first {_FIRST} that graded passages bring.",))]


def _row(run: AnalysisInput, label: str, cell: Any, gains: dict[str, dict[str, int]]) -> tuple[Value, ...]:
    rows: tuple[list[ScoredQuestion], list[ScoredQuestion]] = [], []
    results = [one for one in run.results[cell["id"]] if run.questions[one.question].gold]
    total = graded = 0.0
    for result in results:
        people = scored_of(result, run.questions[result.question], cell["rules"], separators=True, searched=True)
        both = replace(people, judged={**gains[result.question], **people.judged})
        for item, own in zip((people, both), rows, strict=True):
            own.append(_scored(item))
        ranked, known = named_ranking(both)
        for rank, name in enumerate(ranked[:_FIRST], start=1):
            gain = known.get(name, 0) / log2(rank + 1)
            total, graded = total + gain, graded + gain * (not name.startswith(GOLD))
    found = [aggregate(own, seed=run.seed, clusters=run.clusters_of(results)) for own in rows]
    return (label, len(results), *(one[name] for name in _METRICS for one in found),
            round(graded / total, 3) if total else None)


def _scored(item: Scored) -> ScoredQuestion:
    return ScoredQuestion(item.answerable, item.outcome, {name: judgements_at(item, name) for name in _METRICS})
