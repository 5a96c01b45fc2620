"""Views of single benchmarks: DetectiveQA's heat map of steps and its win rate (Table 6), attacks by their kind, and
answers over edited documents."""
from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

from ragbed.experiments.analysis.inputs import AnalysisInput, change, figures
from ragbed.experiments.analysis.pairs import difference_view, tested_pairs
from ragbed.experiments.analysis.variants import compared, labels_of, variants_of
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.cells import FACTORS, called, varying
from ragbed.experiments.metrics import share_among
from ragbed.experiments.metrics.matching import same_answer
from ragbed.experiments.question import WORLDS
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import Comparison

_BINS = 10
_LENGTHS = (50_000, 100_000, 200_000, 400_000, 800_000)  # characters
_UNKNOWN = "length not known"


def depth(material: AnalysisInput) -> list[View]:
    """Return the share of reference steps that a reasoning holds, by the depth of their evidence and the context's
    length.

    A step's depth is the share of the text's characters before its paragraph; steps that are inferences have none
    and are left out, as are those of reasonings that were not judged, which are counted. Both are of what `full`
    shows, in characters, whatever the cell showed.
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
                share_among(*zip(*one, strict=True)) if one else None for one in bins)))
    if not rows:
        return []
    columns = [f"{100 * at // _BINS}-{100 * (at + 1) // _BINS}%" for at in range(_BINS)]
    notes = [f"Reasonings that were not judged and are left out: {unjudged}."] if unjudged else []
    return [View("depth", "Steps found by the depth of their evidence", ("context", "cell", "n", *columns), tuple(rows),
                 2, notes=("n counts steps. Depth is the share of the text that stands before a step's paragraph.",
                           *notes), shaded=(0.0, 1.0))]


def _steps(material: AnalysisInput, results: Sequence[Result]) -> dict[tuple[str, int], list[tuple[bool, str]]]:
    """By length and depth: whether each step was found, and its cluster."""
    steps: dict[tuple[str, int], list[tuple[bool, str]]] = defaultdict(list)
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


ALL, ORDERS = "all", "orders"
_STATEMENTS = ("exchange", "correction")  # which state something false rather than order anything
_UNSEEN = "stripped"
_TAG = "attack"
_PAIRED = {"attack_success": "attack_control", "utility_attacked": "utility_clean"}
_HEADER = ("attack success", "without it", "change", "utility attacked", "utility clean", "change of utility")
_SIGNED = ("change", "change of utility")


def attacks(material: AnalysisInput) -> list[View]:
    """Return every cell over the attacks of each kind, over those that order something and reach a prompt, and over
    all: success beside the same outcome without the attack."""
    kinds = dict.fromkeys(kind for question in material.questions.values() for kind in question.tags.get(_TAG, ()))
    rows: list[tuple[Value, ...]] = []
    for kind, (label, cell) in product([*kinds, ORDERS, ALL], material.labelled()):
        pairs = [pair for pair in _pairs(material, cell) if _is_of(kind, material.tags(pair[0], _TAG))]
        if pairs:
            rows.append((kind, label, len(pairs), *_figures(material, cell, pairs)))
    if not rows:
        return []
    stripped = sum("yes" in question.tags.get("stripped", ()) for question in material.questions.values())
    notes = [f"Attacks that the parser left out, so that no prompt shows them: {stripped}."] if stripped else []
    return [View("attacks", "By attack", (_TAG, "cell", "n", *_HEADER), tuple(rows), 2, signed=_SIGNED, notes=(
        "n counts pairs of a poisoned question and its clean twin. Each change is paired, question by question.",
        "Orders are all kinds but those that state something false (exchange, correction) and what no prompt shows.",
        *notes))]


def _is_of(kind: str, tags: Sequence[str]) -> bool:
    if kind == ORDERS:
        return not {*_STATEMENTS, _UNSEEN} & set(tags)
    return kind == ALL or kind in tags


def _pairs(material: AnalysisInput, cell: Mapping[str, Any]) -> list[tuple[Result, Result]]:
    """Poisoned and clean, where both were asked."""
    results = {result.question: result for result in material.results[cell["id"]]}
    return [(result, results[f"{name}-clean"]) for name, result in results.items() if f"{name}-clean" in results]


def _figures(material: AnalysisInput, cell: Mapping[str, Any], pairs: Sequence[tuple[Result, Result]]) -> list[Value]:
    """The clean twin's figure counts under the name of the poisoned one's, so that the two pair."""
    found: list[Value] = []
    for name, control in _PAIRED.items():
        both = [(first, second.model_copy(update={"scores": {name: second.scores.get(control)}}))
                for first, second in pairs]
        found += figures(material, cell, [first for first, _ in both], [name])
        found += figures(material, cell, [second for _, second in both], [name])
        found.append(change(material, [(second, first) for first, second in both], name))
    return found


_FIGURES = {"original right": "original_right", "follow rate": "follow_rate", "stick rate": "stick_rate",
            "follow rate where right": "follow_rate", "stick rate where right": "stick_rate",
            "refusal on removal": "refusal_on_removal", "unrelated right": "unrelated_right",
            "invariance": "unrelated_right"}
_OPERATION = "operation"
_ItemFigures = Mapping[str, Mapping[str, Result]]  # by item and figure, the result that has the score


def worlds(material: AnalysisInput) -> list[View]:
    """Return every cell over the items of each operation and over all: how its answers go with their documents; and
    every two cells that differ in one factor, tested item by item."""
    items = {cell["id"]: _by_item(material, material.results[cell["id"]]) for cell in material.cells}
    kinds = dict.fromkeys(kind for one in material.questions.values() for kind in one.tags.get(_OPERATION, ()))
    rows: list[tuple[Value, ...]] = []
    for kind, (label, cell) in product([*kinds, ALL], material.labelled()):
        own = [one for one in items[cell["id"]].values()
               if kind in (ALL, *material.tags(one["follow rate"], _OPERATION))]
        found = {name: [one[name] for one in own if name in one] for name in _FIGURES}
        if own:
            rows.append((kind, label, len(own), *(
                figures(material, cell, found[name], [metric])[0] for name, metric in _FIGURES.items())))
    if not rows:
        return []
    return [View("worlds", "Answers over edited documents, by operation", (_OPERATION, "cell", "n", *_FIGURES),
                 tuple(rows), 2, notes=(
                     "n counts items. Where right: of the items that the cell answers rightly over the documents as "
                     "they are. Invariance: the reply beside an unrelated edit gives the answer of the reply over the "
                     "documents as they are, right or wrong.",)), *_between(material, items)]


def _by_item(material: AnalysisInput, results: Sequence[Result]) -> _ItemFigures:
    """Of the items of which every world was asked."""
    asked: dict[str, dict[str, Result]] = defaultdict(dict)
    for result in results:
        if (world := material.questions[result.question].world) is not None:
            asked[result.question.removesuffix(f"-{world.name}")][world.name] = result
    return {item: _of_figures(**one) for item, one in asked.items() if len(one) == len(WORLDS)}


def _of_figures(original: Result, edited: Result, removed: Result, unrelated: Result) -> Mapping[str, Result]:
    same = same_answer((original.outcome, original.text), (unrelated.outcome, unrelated.text))
    right = original.scores.get("original_right")
    return {"original right": original, "follow rate": edited, "stick rate": edited, "refusal on removal": removed,
            "unrelated right": unrelated,
            "invariance": unrelated.model_copy(update={"scores": {"unrelated_right": float(same)}}),
            **({"follow rate where right": edited, "stick rate where right": edited} if right else {})}


def _between(material: AnalysisInput, items: Mapping[str, _ItemFigures]) -> list[View]:
    clusters = {item: material.clusters.get(one["follow rate"].question, item)
                for own in items.values() for item, one in own.items()}
    tested: list[tuple[tuple[Value, ...], Comparison]] = []
    for name, metric in _FIGURES.items():
        variants = variants_of(material.cells, {id: {item: one[name] for item, one in own.items() if name in one}
                                                for id, own in items.items()})
        called = dict(zip((one.row["id"] for one in variants), labels_of(variants), strict=True))
        couples = [(first, second) for _, first, second in tested_pairs(variants)[0]]
        made = compared(metric, couples, clusters, material.scoring, material.seed)
        tested += [((name, f"{called[first.row['id']]} → {called[second.row['id']]}"), comparison)
                   for (first, second), comparison in zip(couples, made, strict=True) if comparison is not None]
    notes = ("Pairs are items. Where right: of the items that both cells answer rightly over the documents as they "
             "are. p (Holm) is corrected within a figure.",)
    return [difference_view("worlds:compared", "Answers over edited documents, between cells",
                            ("figure", "what changes"), tested, notes)] if tested else []


_CONDITIONS = ("gold", "full", "provided", "retrieved", "closed-book")
_FREE = ("condition", "retrieval", "retriever", "format")  # they go with the condition
_WIN_HEADER = ("wins", "losses", "ties", "wrong in both", "win rate")


def wins(material: AnalysisInput) -> list[View]:
    """Return every pair of conditions of otherwise equal cells, question by question.

    A question's score is its answer, 0 or 1, and the share of the reference steps that its reasoning holds. Questions
    wrong in both are left out and counted; ties are shown apart; the rate is over the questions that either won.
    Evidence against the full context compares answers alone: evidence tells a reasoning what to hold.
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
                     "answers and reasoning" if reasoning else "answers alone", _called(material, first, second),
                     len(endings), *map(endings.count, _WIN_HEADER[:-1]),
                     share_among([won for won, _ in decided], [cluster for _, cluster in decided])))
    if not rows:
        return []
    notes = [f"Reasonings that were not judged, and count as holding no step: {len(unjudged)}."] if unjudged else []
    return [View("wins", "Win rate between conditions", ("conditions", "compared", "cell", "n", *_WIN_HEADER),
                 tuple(rows), 3, 8, ("The win rate is over wins and losses. Ties, and questions that both answer "
                                     "wrongly, stand beside it.", *notes))]


def _comparable(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether they differ in the condition alone, and in what has no effect without documents."""
    closed = "closed-book" in (first["condition"], second["condition"])
    free = (*_FREE, "rules", "perturbation", "framing", "seed") if closed else _FREE
    return all(first.get(name) == second.get(name) for name in FACTORS if name not in free)


def _ending(first: Result, second: Result, reasoning: bool) -> str:
    answers = [result.scores.get("accuracy") or 0.0 for result in (first, second)]
    steps = [result.scores.get("reasoning_score") or 0.0 if reasoning else 0.0 for result in (first, second)]
    one, other = map(sum, zip(answers, steps, strict=True))
    return "wrong in both" if not any(answers) else "ties" if one == other else "wins" if one > other else "losses"


def _called(material: AnalysisInput, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """What both are and other cells are not; the rules of closed-book cells follow from their condition."""
    factors = varying([cell for cell in material.cells if cell["condition"] != "closed-book"])
    shared = [name for name in factors if first.get(name) == second.get(name)]
    return called(first, shared) or called(first, ["reasoning"])
