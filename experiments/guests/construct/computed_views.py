"""Views of answers over edited documents."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product

from ragbed.experiments.analysis.inputs import AnalysisInput, compute_figures
from ragbed.experiments.analysis.pairs import difference_view, select_pairs
from ragbed.experiments.analysis.replicates import compare_groups, group_replicates, label_groups
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.metrics.matching import same_answer
from ragbed.experiments.question import WORLDS
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import Comparison

_FIGURES = {"original right": "original_right", "follow rate": "follow_rate", "stick rate": "stick_rate",
            "follow rate where right": "follow_rate", "stick rate where right": "stick_rate",
            "refusal on removal": "refusal_on_removal", "unrelated right": "unrelated_right",
            "invariance": "unrelated_right"}
_OPERATION, _ALL = "operation", "all"
_ItemFigures = Mapping[str, Mapping[str, Result]]  # the result that has the score, by item and figure


def world_views(material: AnalysisInput) -> list[View]:
    """Return whether the answers of each cell follow the edited documents, by operation and in total. Also test all
    pairs of cells that differ in one factor, paired by item.
    """
    items = {cell["id"]: _by_item(material, material.results.get(cell["id"], ())) for cell in material.cells}
    kinds = dict.fromkeys(kind for one in material.questions.values() for kind in one.tags.get(_OPERATION, ()))
    rows: list[tuple[Value, ...]] = []
    for kind, (label, cell) in product([*kinds, _ALL], material.labelled()):
        own = [one for one in items[cell["id"]].values()
               if kind in (_ALL, *material.tags(one["follow rate"], _OPERATION))]
        found = {name: [one[name] for one in own if name in one] for name in _FIGURES}
        if own:
            rows.append((kind, label, len(own), *(
                compute_figures(material, cell, found[name], [metric])[0] for name, metric in _FIGURES.items())))
    if not rows:
        return []
    return [View("worlds", "Answers over edited documents, by operation", (_OPERATION, "cell", "n", *_FIGURES),
                 tuple(rows), 2, notes=(
                     "n counts items. Where right: among items that the cell answers correctly over the original "
                     "documents. Invariance: after an unrelated edit the reply gives the same answer as over the "
                     "original documents, right or wrong.",)), *_between(material, items)]


def _by_item(material: AnalysisInput, results: Sequence[Result]) -> _ItemFigures:
    """Return the results of each item whose four worlds were all asked."""
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
        variants = group_replicates(material.cells, {id: {item: one[name] for item, one in own.items() if name in one}
                                                     for id, own in items.items()})
        called = dict(zip((one.first["id"] for one in variants), label_groups(variants), strict=True))
        couples = [(first, second) for _, first, second in select_pairs(variants)[0]]
        made = compare_groups(metric, couples, clusters, material.scoring, material.seed)
        tested += [((name, f"{called[first.first['id']]} → {called[second.first['id']]}"), comparison)
                   for (first, second), comparison in zip(couples, made, strict=True) if comparison is not None]
    notes = ("Pairs are items. Where right: among items that both cells answer correctly over the original documents. "
             "p (Holm) is corrected within a figure.",)
    return [difference_view("worlds:compared", "Answers over edited documents, between cells",
                            ("figure", "what changes"), tested, notes)] if tested else []
