"""Show citation ablation: the figures of every cell, tests between cells, and the cost."""
from __future__ import annotations

from collections.abc import Sequence

from ragbed.experiments.analysis.inputs import AnalysisInput, compute_figures, paired_change
from ragbed.experiments.analysis.pairs import compare_figures
from ragbed.experiments.analysis.view import Value, View
from ragbed.experiments.record import Result
from ragbed.strategies.types import Usage

_TESTED = {"needed": "citations_needed", "unnecessary": "citations_unnecessary", "harmful": "citations_harmful",
           "cited suffice": "citations_enough", "cited matter": "citations_together", "uncited used": "uncited_used"}
_FIGURES = {**_TESTED, "noise": "repeats_changed", "failed": "probes_failed"}
_BASELINES = {"less noise": "repeats_changed", "less uncited": "uncited_used"}
_NOTES = (
    "n counts the answers whose rules ask for citations. `needed`, `unnecessary` and `harmful` are shares of an "
    "answer's citations: without the passage the answer changes or is lost, stays the same, or becomes right. `cited "
    "suffice`: the cited passages alone give the same answer. `cited matter`: the answer changes without all of them. "
    "`uncited used`: the share of uncited passages whose removal changes it. If two cited passages say "
    "the same, neither is needed; `cited matter` shows it.",
    "`noise` is the share of answers that change when nothing is left out. `less noise` and `less uncited` are the "
    "share of citations that are needed or harmful, minus noise and minus `uncited used`, answer by answer. `failed` "
    "is the share of ablations without a readable reply.")


def ablation_views(run: AnalysisInput) -> list[View]:
    """Return the figures of every ablated cell, the tests between cells, and what the ablations cost."""
    ablated = {cell["id"]: [result for result in run.results.get(cell["id"], ()) if result.probes]
               for cell in run.cells}
    cells = [(label, cell, ablated[cell["id"]]) for label, cell in run.labelled() if ablated[cell["id"]]]
    if not cells:
        return []
    rows = [(label, len(own), *compute_figures(run, cell, own, _FIGURES.values()),
             *(_subtract_baseline(run, own, name) for name in _BASELINES.values())) for label, cell, own in cells]
    used = [(label, what, sum(usage, Usage())) for label, cell, own in cells for what, usage in (
        ("answers", [result.usage for result in run.results[cell["id"]]]),
        ("ablations", [result.probe_usage for result in own]))]
    costs = [(label, what, one.calls, one.prompt_tokens, one.cached_tokens, one.completion_tokens)
             for label, what, one in used]
    return [View("citation_ablation", "Citation ablation", ("cell", "n", *_FIGURES, *_BASELINES), tuple(rows),
                 notes=_NOTES, signed=tuple(_BASELINES)),
            *compare_figures(run, ablated, _TESTED, "citation_ablation:compared",
                             "Citation ablation: differences between cells"),
            View("citation_ablation:cost", "Cost of the ablations", (
                "cell", "of", "calls", "prompt tokens", "cached", "completion tokens"), tuple(costs), 2, notes=(
                "`cached` counts the prompt tokens that the server reports as cached.",))]


def _subtract_baseline(run: AnalysisInput, results: Sequence[Result], baseline: str) -> Value:
    """Return the share of citations that change the answer, minus a baseline, over the answers that have both."""
    def with_sum(result: Result, *names: str) -> Result:
        total = sum(result.scores[name] or 0.0 for name in names)
        return result.model_copy(update={"scores": {"citations_needed": total}})

    pairs = [(with_sum(one, baseline), with_sum(one, "citations_needed", "citations_harmful")) for one in results
             if one.scores["citations_needed"] is not None and one.scores[baseline] is not None]
    return paired_change(run, pairs, "citations_needed")
