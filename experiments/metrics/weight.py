"""The group `weight`: whether an answer rests on what it cites, told by asking again over less evidence.

Leaving evidence out is the counterfactual attribution of Roy et al., "Evidence Contextualization and Counterfactual
Attribution for Conversational QA over Heterogeneous Data with RAG Systems", WSDM 2025; here two answers are the same or
not (`matching.same_answer`), where they measure a similarity. Without all that is cited, and over that alone, are
comprehensiveness and sufficiency (DeYoung et al., "ERASER", ACL 2020, section 4) of answers in the place of
probabilities. Of two passages that say the same, leaving out one tells nothing.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal, NamedTuple

from ragbed.experiments.metrics.matching import same_answer
from ragbed.experiments.metrics.metric import Metric, MetricGroup
from ragbed.experiments.metrics.scored import Scored, Scores, Scoring
from ragbed.experiments.record import Result, StoredProbe

# What an answer came to in a probe: unreadable, one and the same, another one, or right where it had been wrong.
Fate = Literal["failed", "same", "changed", "mended"]
_CITING, _PROBED = "probed answers that cite", "probed answers"


class Weight(NamedTuple):
    """What an answer came to when it was asked again: with nothing left out; without one passage, by its number; over
    the cited passages alone, and without all of them, None where it cites none. `failed` is the share that did."""

    again: Fate
    without: Mapping[int, Fate]
    alone: Fate | None
    together: Fate | None
    failed: float


def changes(result: Result, probe: StoredProbe) -> bool:
    """Tell whether a probe came to another answer, or to a refusal; what could not be read is neither."""
    return probe.outcome in ("answered", "refused") and not same_answer((result.outcome, result.text),
                                                                        (probe.outcome, probe.text))


def probed_result(result: Result, probe: StoredProbe) -> Result:
    """Return the result with what the probe came to in the place of its answer."""
    return result.model_copy(update={"outcome": probe.outcome, "text": probe.text, "verdict": probe.verdict,
                                     "refused": probe.outcome == "refused", "probes": (), "trace": (), "support": None})


def uncited(result: Result) -> frozenset[int]:
    """Return the numbers of all evidence that was found and is not cited."""
    return frozenset(passage.number for passage in result.evidence) - set(result.cited)


def weight_of(result: Result, right: Callable[[Result], bool]) -> Weight | None:
    """Return what a probed answer came to; `right` tells whether that of a result is. None if it was not probed."""
    if not result.probes:
        return None
    was_right = right(result.model_copy(update={"probes": ()}))

    def fate(probe: StoredProbe) -> Fate:
        if probe.outcome not in ("answered", "refused"):
            return "failed"
        if not changes(result, probe):
            return "same"
        return "mended" if not was_right and right(probed_result(result, probe)) else "changed"

    fates = {frozenset(probe.left_out): fate(probe) for probe in result.probes}
    others, shown = uncited(result), [passage.number for passage in result.in_view]
    return Weight(fates[frozenset()], {number: fates[frozenset({number})] for number in shown},
                  None if not result.cited else fates.get(others) if others else "same",
                  fates.get(frozenset(result.cited)) if result.cited else None,
                  _share(list(fates.values()), "failed"))


def weight(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score a probed answer. A citation is needed where without it the answer is lost or another one, harmful where it
    was wrong and is right without, decorative where it is the same. A probe that failed, or whose reply could not be
    read, counts in every denominator and is none of these: see `probes_failed`."""
    scores: Scores = dict.fromkeys(metric.name for metric in WEIGHT.metrics)
    found: Weight | None = item.extra.get("weight")
    if found is None:
        return scores
    scores |= {"repeats_changed": _share([found.again], "changed", "mended"), "probes_failed": found.failed}
    if others := [one for number, one in found.without.items() if number not in item.cited]:
        scores["uncited_used"] = _share(others, "changed", "mended")
    if item.cited:
        own = [found.without[number] for number in item.cited]
        scores |= {"citations_needed": _share(own, "changed"), "citations_decorative": _share(own, "same"),
                   "citations_harmful": _share(own, "mended")}
    if found.alone and found.together:
        scores |= {"citations_enough": _share([found.alone], "same"),
                   "citations_together": _share([found.together], "changed", "mended")}
    return scores


def _share(fates: Collection[Fate], *wanted: Fate) -> float:
    return sum(one in wanted for one in fates) / len(fates)


WEIGHT = MetricGroup((
    Metric("citations_needed", "share of an answer's citations without which it is lost or another one", _CITING),
    Metric("citations_decorative", "share of an answer's citations without which it is the same", _CITING),
    Metric("citations_harmful", "share of a wrong answer's citations without which it is right", _CITING),
    Metric("citations_enough", "share whose cited passages alone give the answer", _CITING, share=True),
    Metric("citations_together", "share lost or changed without all cited passages", _CITING, share=True),
    Metric("uncited_used", "share of the passages shown and not cited without which the answer changes",
           "probed answers beside which something is not cited"),
    Metric("repeats_changed", "noise: share that is another answer when asked again with nothing left out", _PROBED,
           share=True),
    Metric("probes_failed", "share of an answer's probes whose reply did not come or could not be read", _PROBED)),
    weight, material=weight_of)
