"""DetectiveQA's heat map: which reference steps were found, by where their evidence stands and how long the text is."""
from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

from experiments.metrics.aggregate import Estimate, share_among
from experiments.record import Result
from experiments.views.types import Material, Value, View

_BINS = 10
_LENGTHS = (50_000, 100_000, 200_000, 400_000, 800_000)  # characters
_UNKNOWN = "length not known"

Steps = dict[tuple[str, int], list[tuple[bool, str]]]  # by length and depth: whether each was found, and its cluster


def depth(material: Material) -> View | None:
    """The share of reference steps that a reasoning holds, by the depth of their evidence and the context's length.

    A step's depth is the share of the text's characters before its paragraph; steps that are inferences have none
    and are left out, as are those of reasonings that were not judged, which are counted. Both are of what `full`
    shows, in characters, whatever the cell showed.
    """
    found: dict[str, Steps] = {}
    unjudged = 0
    for label, cell in ((label, cell) for label, cell in material.labelled() if cell["condition"] != "closed-book"):
        results = material.results[cell["id"]]
        unjudged += sum(bool(result.scores.get("unjudged")) for result in results)
        found[label] = _steps(material, results)
    rows = _rows(found)
    if not rows:
        return None
    columns = [f"{100 * at // _BINS}-{100 * (at + 1) // _BINS}%" for at in range(_BINS)]
    notes = [f"Reasonings that were not judged and are left out: {unjudged}."] if unjudged else []
    return View("depth", "Steps found by the depth of their evidence", ("context", "cell", "n", *columns), tuple(rows),
                2, 3, ("n counts steps. Depth is the share of the text that stands before a step's paragraph.", *notes),
                shaded=True)


def _steps(material: Material, results: Sequence[Result]) -> Steps:
    steps: Steps = defaultdict(list)
    for result, cluster in zip(results, material.clusters_of(results), strict=True):
        if result.scores.get("reasoning_score") is None or result.scores.get("unjudged"):
            continue
        found = (result.verdict.steps if result.verdict else None) or ()  # a reply without reasoning holds none
        question = material.questions[result.question]
        length = _length(question.length)
        for place, step in enumerate(question.steps):
            if step.depth is not None:
                steps[length, min(int(step.depth * _BINS), _BINS - 1)].append((place in found, cluster))
    return steps


def _length(characters: int | None) -> str:
    if characters is None:
        return _UNKNOWN
    at = bisect_right(_LENGTHS, characters)
    if at == 0:
        return f"under {_LENGTHS[0]:,} characters"
    return f"{_LENGTHS[at - 1]:,} to {_LENGTHS[at]:,} characters" if at < len(_LENGTHS) else \
        f"{_LENGTHS[-1]:,} characters and more"


def _rows(steps: Mapping[str, Steps]) -> list[tuple[Value, ...]]:
    """One for each cell of each length that occurs, shortest first."""
    every = [_length(size) for size in (0, *_LENGTHS)] + [_UNKNOWN]
    rows: list[tuple[Value, ...]] = []
    for length in every:
        for label, of in steps.items():
            bins = [of.get((length, at), []) for at in range(_BINS)]
            if any(bins):
                rows.append((length, label, sum(map(len, bins)), *(_share(steps) if steps else None for steps in bins)))
    return rows


def _share(steps: Sequence[tuple[bool, str]]) -> Estimate:
    """The steps of one question are not independent."""
    return share_among([found for found, _ in steps], [cluster for _, cluster in steps])
