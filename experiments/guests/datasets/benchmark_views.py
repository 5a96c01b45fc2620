"""Views that one benchmark each needs.

DetectiveQA: a heat map of reasoning steps, and win rates (Table 6). MDBench: the order of the documents. MRKE: the gap
between original and edited questions.
"""
from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

from ragbed.experiments.analysis.breakdowns import ALL
from ragbed.experiments.analysis.inputs import AnalysisInput, compute_figures, paired_change
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.cells import FACTORS, describe_factors, varying_factors
from ragbed.experiments.metrics import estimate_clustered_share
from ragbed.experiments.record import Result

_BINS = 10
_LENGTHS = (50_000, 100_000, 200_000, 400_000, 800_000)  # characters
_UNKNOWN = "unknown length"


def depth(material: AnalysisInput) -> list[View]:
    """Return the share of reference steps in the reasoning, by the depth of their evidence and the text's length.

    A step's depth is the share of the text before its paragraph. Steps without a position in the text, and unjudged
    answers, are left out. Depth and length refer to the whole text, even if the cell showed only parts.
    """
    found = {label: _steps(material, material.results[cell["id"]]) for label, cell in material.labelled()
             if cell["condition"] != "closed-book"}
    unjudged = sum(bool(result.scores.get("unjudged")) for cell in material.cells if cell["condition"] != "closed-book"
                   for result in material.results[cell["id"]])
    every = [_length(size) for size in (0, *_LENGTHS)] + [_UNKNOWN]  # shortest first
    rows: list[tuple[Value, ...]] = []
    for length, (label, steps) in product(every, found.items()):
        bins = [steps.get((length, at), []) for at in range(_BINS)]
        if any(bins):
            rows.append((length, label, sum(map(len, bins)), *(
                estimate_clustered_share(*zip(*one, strict=True)) if one else None for one in bins)))
    if not rows:
        return []
    columns = [f"{100 * at // _BINS}-{100 * (at + 1) // _BINS}%" for at in range(_BINS)]
    notes = [f"{unjudged} unjudged answers are left out."] if unjudged else []
    return [View("depth", "Steps found by depth of their evidence", ("context", "cell", "n", *columns), tuple(rows),
                 2, notes=("n counts steps. Depth is the share of the text before a step's paragraph.",
                           *notes), shaded=(0.0, 1.0))]


def _steps(material: AnalysisInput, results: Sequence[Result]) -> dict[tuple[str, int], list[tuple[bool, str]]]:
    """For each length and depth, return whether each step was found, and its cluster."""
    steps: dict[tuple[str, int], list[tuple[bool, str]]] = defaultdict(list)
    for result, cluster in zip(results, material.clusters_of(results), strict=True):
        if result.scores.get("reasoning_score") is None or result.scores.get("unjudged"):
            continue
        found = (result.verdict.steps if result.verdict else None) or ()  # a reply without reasoning contains no steps
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


_CONDITIONS = ("gold", "full", "provided", "retrieved", "closed-book")
_FREE = ("condition", "retrieval", "retriever", "format")  # factors that the condition determines
_WIN_HEADER = ("wins", "losses", "ties", "wrong in both", "win rate")


def wins(material: AnalysisInput) -> list[View]:
    """Compare every pair of conditions question by question, between cells that are otherwise equal.

    A question's score is 1 or 0 for its answer, plus the share of reference steps in its reasoning. The win rate
    ignores ties. Gold evidence already shows what the reasoning should contain, so the comparison with the full context
    is by answers only.
    """
    rows: list[tuple[Value, ...]] = []
    unjudged: set[tuple[str, str]] = set()
    cells = [cell for cell in material.cells if "accuracy" in cell["metrics"]]
    for first, second in (pair for one, other in combinations(_CONDITIONS, 2) for pair in product(cells, cells)
                          if (pair[0]["condition"], pair[1]["condition"]) == (one, other) and _comparable(*pair)):
        reasoning = {first["condition"], second["condition"]} != {"gold", "full"}
        others = {result.question: result for result in material.results[second["id"]]}
        answers = [(result, others[result.question]) for result in material.results[first["id"]]
                   if result.question in others]
        unjudged.update((one.cell, one.question) for pair in answers for one in pair
                        if reasoning and one.scores.get("unjudged"))
        endings = [_ending(*pair, reasoning) for pair in answers]
        decided = [(ending == "wins", cluster) for ending, cluster in zip(
            endings, material.clusters_of(one for one, _ in answers), strict=True) if ending in ("wins", "losses")]
        rows.append((f"{first['condition']} against {second['condition']}",
                     "answers and reasoning" if reasoning else "answers only", _common_label(material, first, second),
                     len(endings), *map(endings.count, _WIN_HEADER[:-1]),
                     estimate_clustered_share([won for won, _ in decided], [cluster for _, cluster in decided])))
    if not rows:
        return []
    notes = [f"{len(unjudged)} unjudged answers count as having no step."] if unjudged else []
    return [View("wins", "Win rate between conditions", ("conditions", "compared", "cell", "n", *_WIN_HEADER),
                 tuple(rows), 3, 8, ("Ties are left out of the win rate.", *notes))]


def _comparable(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two cells differ only in the condition and in factors that follow from it."""
    closed = "closed-book" in (first["condition"], second["condition"])
    free = (*_FREE, "rules", "perturbation", "framing", "seed") if closed else _FREE
    return all(first.get(name) == second.get(name) for name in FACTORS if name not in free)


def _ending(first: Result, second: Result, reasoning: bool) -> str:
    answers = [result.scores.get("accuracy") or 0.0 for result in (first, second)]
    steps = [result.scores.get("reasoning_score") or 0.0 if reasoning else 0.0 for result in (first, second)]
    one, other = map(sum, zip(answers, steps, strict=True))
    return "wrong in both" if not any(answers) else "ties" if one == other else "wins" if one > other else "losses"


def _common_label(material: AnalysisInput, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Return a label of the levels that both cells share and other cells do not."""
    factors = varying_factors([cell for cell in material.cells if cell["condition"] != "closed-book"])
    shared = [name for name in factors if first.get(name) == second.get(name)]
    return describe_factors(first, shared) or describe_factors(first, ["reasoning"])


_ORDER = {None: "original", "unnumbered": "separators off", "shuffle": "shuffled",
          "shuffle+unnumbered": "separators off, shuffled"}
_SAME = tuple(name for name in FACTORS if name not in ("perturbation", "seed"))


def order(material: AnalysisInput) -> list[View]:
    """Compare cells with another order or numbering of documents with the original, question by question."""
    shared = [name for name in varying_factors(material.cells) if name != "perturbation"]
    rows: list[tuple[Value, ...]] = []
    for group in _groups(material.cells):
        for cell in group:
            results = material.results[cell["id"]]
            original = next((one for one in group if cell["perturbation"] and one["perturbation"] is None
                             and one.get("seed") in (None, cell.get("seed"))), None)
            before = {result.question: result for result in material.results[original["id"]]} if original else {}
            pairs = [(before[result.question], result) for result in results if result.question in before]
            means = compute_figures(material, cell, results, material.each)
            name = describe_factors(cell, shared) or describe_factors(cell, ["reasoning"])
            rows.append((_ORDER[cell["perturbation"]], name, len(results), *(
                value for mean, metric in zip(means, material.each, strict=True)
                for value in (mean, paired_change(material, pairs, metric)))))
    if not rows:
        return []
    header = [name for metric in material.each for name in (material.shown(metric), f"{metric}: change")]
    return [View("order", "Order of the documents", ("documents", "cell", "n", *header), tuple(rows), 2,
                 notes=("`change` is the mean difference from the original order over the same questions.",),
                 signed=tuple(f"{metric}: change" for metric in material.each))]


def _groups(cells: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return groups of cells that differ only in document order and numbering, and include the original order."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for cell in cells:
        if cell["perturbation"] in _ORDER and cell["condition"] != "closed-book":
            groups.setdefault(tuple(str(cell.get(name)) for name in _SAME), []).append(cell)
    names = list(_ORDER)
    return [sorted(group, key=lambda cell: names.index(cell["perturbation"])) for group in groups.values()
            if {None} < {cell["perturbation"] for cell in group}]


_METRICS = ("em", "f1")


def gap(material: AnalysisInput) -> list[View]:
    """Compare each cell's scores on original and edited questions of the same `pair`, by the edited one's hops.

    An original counts once for each of its edited versions. The change is the edited question's score minus the
    original's. A negative change suggests that memorised knowledge helps with the original.
    """
    metrics = [name for name in _METRICS if any(name in result.scores for results in material.results.values()
                                                for result in results)]
    rows = [row for label, cell in material.labelled() for row in _gap_rows(material, label, cell, metrics)]
    if not rows:
        return []
    header = [words for name in metrics for words in (f"{name}: original", f"{name}: edited", f"{name}: change")]
    rows.sort(key=lambda row: str(row[0]))
    return [View("gap", "Original against edited questions", ("hops", "cell", "n", *header), tuple(rows), 2, 5,
                 ("n counts pairs: an original counts once for each of its edited versions. `change` is the edited "
                  "question's score minus the original's.",), signed=tuple(f"{name}: change" for name in metrics))]


def _gap_rows(material: AnalysisInput, label: str, cell: Mapping[str, Any],
              metrics: Sequence[str]) -> list[tuple[Value, ...]]:
    originals: dict[str, Result] = {}
    for result in material.results[cell["id"]]:
        if "original" in material.tags(result, "version"):
            originals |= dict.fromkeys(material.tags(result, "pair"), result)
    pairs = [(originals[name], result) for result in material.results[cell["id"]]
             if "edited" in material.tags(result, "version") for name in material.tags(result, "pair")
             if name in originals]
    by_hops: dict[str, list[tuple[Result, Result]]] = {}
    for pair in pairs:
        for hops in material.tags(pair[1], "hops"):
            by_hops.setdefault(hops, []).append(pair)
    parts = by_hops if len(by_hops) > 1 else {}
    rows: list[tuple[Value, ...]] = []
    for hops, part in [*sorted(parts.items()), (ALL, pairs)]:
        sides = [compute_figures(material, cell, [pair[side] for pair in part], metrics) for side in (0, 1)]
        if part:
            rows.append((hops, label, len(part), *(value for name, original, edited in zip(metrics, *sides, strict=True)
                                                   for value in (original, edited, paired_change(material, part,
                                                                                                 name)))))
    return rows
