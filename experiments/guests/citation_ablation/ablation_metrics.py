"""The metric group `citation_ablation`: whether an answer needs the passages that it cites.

Leaving evidence out is the counterfactual attribution of Roy et al., "Evidence Contextualization and Counterfactual
Attribution for Conversational QA over Heterogeneous Data with RAG Systems", WSDM 2025. They measure how similar two
answers are. Here, two answers are either the same or not (`matching.same_answer`). Answers without all cited passages
measure comprehensiveness, and answers with only the cited passages sufficiency (DeYoung et al., "ERASER", ACL 2020,
section 4, use probabilities). If two passages say the same, leaving out one of them changes nothing.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal, NamedTuple

from ragbed.experiments.metrics.matching import same_answer
from ragbed.experiments.metrics.metric import Metric, MetricGroup, Scored, Scores, Scoring
from ragbed.experiments.record import Result, StoredProbe

GROUP = "citation_ablation"
# An ablation's outcome: unreadable reply, same answer, different answer, or wrong answer corrected.
Change = Literal["failed", "same", "changed", "corrected"]
_CITING, _PROBED = "ablated answers that cite", "ablated answers"


class Ablation(NamedTuple):
    """The outcome of each ablation of an answer.

    Attributes:
        again: with all passages.
        without: without one passage, by the passage's evidence number.
        cited_only: with the cited passages only; None if none are cited. `none_cited`: without all cited passages.
        failed: share of the ablations without a readable reply.
    """

    again: Change
    without: Mapping[int, Change]
    cited_only: Change | None
    none_cited: Change | None
    failed: float


def is_changed(result: Result, probe: StoredProbe) -> bool:
    """Return whether an ablation gave a different answer or a refusal. An unreadable reply is neither."""
    return probe.outcome in ("answered", "refused") and not same_answer((result.outcome, result.text),
                                                                        (probe.outcome, probe.text))


def replace_answer(result: Result, probe: StoredProbe) -> Result:
    """Return the result with its answer replaced by that of an ablation."""
    return result.model_copy(update={"outcome": probe.outcome, "text": probe.text, "verdict": probe.verdict,
                                     "refused": probe.outcome == "refused", "probes": (), "trace": (), "support": None})


def find_uncited(result: Result) -> frozenset[int]:
    """Return the numbers of the evidence that was found but not cited."""
    return frozenset(passage.number for passage in result.evidence) - set(result.cited)


def classify_changes(result: Result, is_right: Callable[[Result], bool]) -> Ablation | None:
    """Return the outcomes of an answer's ablations; None if it has none."""
    if not result.probes:
        return None
    was_right = is_right(result)

    def classify(probe: StoredProbe) -> Change:
        if probe.outcome not in ("answered", "refused"):
            return "failed"
        if not is_changed(result, probe):
            return "same"
        return "corrected" if not was_right and is_right(replace_answer(result, probe)) else "changed"

    changes = {frozenset(probe.left_out): classify(probe) for probe in result.probes}
    uncited, shown = find_uncited(result), [passage.number for passage in result.in_view]
    return Ablation(changes[frozenset()], {number: changes[frozenset({number})] for number in shown},
                    None if not result.cited else changes.get(uncited) if uncited else "same",
                    changes.get(frozenset(result.cited)) if result.cited else None,
                    _share(list(changes.values()), "failed"))


def score_ablation(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score an ablated answer. An ablation without a readable reply counts in every denominator, but only in the
    numerator of `probes_failed`.
    """
    scores: Scores = dict.fromkeys(metric.name for metric in CITATION_ABLATION.metrics)
    found: Ablation | None = item.extra.get(GROUP)
    if found is None:
        return scores
    scores |= {"repeats_changed": _share([found.again], "changed", "corrected"), "probes_failed": found.failed}
    if uncited := [change for number, change in found.without.items() if number not in item.cited]:
        scores["uncited_used"] = _share(uncited, "changed", "corrected")
    if item.cited:
        cited = [found.without[number] for number in item.cited]
        scores |= {"citations_needed": _share(cited, "changed"), "citations_unnecessary": _share(cited, "same"),
                   "citations_harmful": _share(cited, "corrected")}
    if found.cited_only and found.none_cited:
        scores |= {"citations_enough": _share([found.cited_only], "same"),
                   "citations_together": _share([found.none_cited], "changed", "corrected")}
    return scores


def _share(changes: Collection[Change], *wanted: Change) -> float:
    return sum(change in wanted for change in changes) / len(changes)


CITATION_ABLATION = MetricGroup((
    Metric("citations_needed", "share of citations whose removal changes the answer or leaves none", _CITING),
    Metric("citations_unnecessary", "share of citations whose removal leaves the answer unchanged", _CITING, less=True),
    Metric("citations_harmful", "share of a wrong answer's citations whose removal makes it right", _CITING, less=True),
    Metric("citations_enough", "share of answers that the cited passages alone reproduce", _CITING, share=True),
    Metric("citations_together", "share of answers that change without any cited passage", _CITING, share=True),
    Metric("uncited_used", "share of the uncited passages whose removal changes the answer",
           "ablated answers that leave a passage uncited", less=True),
    Metric("repeats_changed", "noise: share of answers that change when nothing is left out", _PROBED, share=True,
           less=True),
    Metric("probes_failed", "share of an answer's ablations without a readable reply", _PROBED, less=True)),
    score_ablation, material=classify_changes)
