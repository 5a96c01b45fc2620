"""What citations carry: probed answers cell by cell, between cells, and what the probes took."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ragbed.experiments.analysis.inputs import AnalysisInput, change, figures
from ragbed.experiments.analysis.pairs import difference_view, tested_pairs
from ragbed.experiments.analysis.variants import compared, labels_of, variants_of
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import Comparison
from ragbed.strategies.types import Usage

_TESTED = {"needed": "citations_needed", "decorative": "citations_decorative", "harmful": "citations_harmful",
           "enough": "citations_enough", "together": "citations_together", "uncited used": "uncited_used"}
_FIGURES = {**_TESTED, "asked again": "repeats_changed", "failed": "probes_failed"}
_ABOVE = {"above the noise": "repeats_changed", "above the uncited": "uncited_used"}
_NOTES = (
    "n counts the answers under rules that ask for citations. Needed, decorative and harmful are shares of an answer's "
    "citations: without one it is lost or another one, the same, or right where it was wrong. Enough: the cited ones "
    "alone give it. Together: it changes without all of them. Uncited used: of what is shown and not cited, the share "
    "without which it changes. Of two passages that say the same neither is needed; together tells.",
    "Asked again is the noise: answers that change with nothing left out. Above the noise, and above the uncited: the "
    "share needed or harmful less that, answer by answer. Failed are probes without a readable reply.")


def weight_views(material: AnalysisInput) -> list[View]:
    """Return what the citations of every probed cell carry, the tests between cells, and what the probes took."""
    probed = {cell["id"]: [result for result in material.results.get(cell["id"], ()) if result.probes]
              for cell in material.cells}
    cells = [(label, cell, probed[cell["id"]]) for label, cell in material.labelled() if probed[cell["id"]]]
    if not cells:
        return []
    rows = [(label, len(own), *figures(material, cell, own, _FIGURES.values()), *(
        _above(material, own, floor) for floor in _ABOVE.values())) for label, cell, own in cells]
    took = [(label, what, sum(used, Usage())) for label, cell, own in cells for what, used in (
        ("answers", [one.usage for one in material.results[cell["id"]]]), ("probes", [one.probe_usage for one in own]))]
    costs = [(label, what, used.calls, used.prompt_tokens, used.cached_tokens, used.completion_tokens)
             for label, what, used in took]
    return [View("weight", "What citations carry", ("cell", "n", *_FIGURES, *_ABOVE), tuple(rows), notes=_NOTES,
                 signed=tuple(_ABOVE)),
            *_between(material, probed),
            View("weight:cost", "What the probes took", (
                "cell", "of", "calls", "prompt tokens", "cached", "completion tokens"), tuple(costs), 2, notes=(
                "Cached are those of the prompt tokens that the server had at hand, as it says.",))]


def _above(material: AnalysisInput, results: Sequence[Result], floor: str) -> Value:
    """The share of citations that change the answer less a floor, over answers that have both."""
    def scored(one: Result, *names: str) -> Result:
        return one.model_copy(update={"scores": {"citations_needed": sum(one.scores[name] or 0.0 for name in names)}})

    pairs = [(scored(one, floor), scored(one, "citations_needed", "citations_harmful")) for one in results
             if one.scores["citations_needed"] is not None and one.scores[floor] is not None]
    return change(material, pairs, "citations_needed")


def _between(material: AnalysisInput, probed: Mapping[str, Sequence[Result]]) -> list[View]:
    variants = variants_of(material.cells, {id: {one.question: one for one in own} for id, own in probed.items()})
    called = dict(zip((one.row["id"] for one in variants), labels_of(variants), strict=True))
    couples = [(first, second) for _, first, second in tested_pairs(variants)[0]]
    tested: list[tuple[tuple[Any, ...], Comparison]] = []
    for name, metric in _TESTED.items():
        made = compared(metric, couples, material.clusters, material.scoring, material.seed)
        tested += [((name, f"{called[first.row['id']]} → {called[second.row['id']]}"), one)
                   for (first, second), one in zip(couples, made, strict=True) if one is not None]
    notes = ("Pairs are questions to which both cells gave an answer that the figure is of. p (Holm) is corrected "
             "within a figure.",)
    return [difference_view("weight:compared", "What citations carry, between cells", ("figure", "what changes"),
                            tested, notes)] if tested else []
