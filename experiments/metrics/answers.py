"""The group `answers`: graded answers, refusals and citations, CReSt's metrics, in both scorings."""
from __future__ import annotations

from experiments.metrics import as_published, corrected
from experiments.metrics.means import Derived, Means, harmonic_mean, mean_of_splits
from experiments.metrics.metric import ANSWERABLE, UNJUDGED, Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring

_GOLD = "answerable questions with gold"
_METRICS = (
    Metric("unified", "Correct 1, Partially 0.5, Wrong 0, needless refusal -1; rightful refusal 1; "
           "mean of the two splits' means", judged=True, low=-1.0, low_unanswerable=0.0),
    Metric("correct", "share graded Correct", ANSWERABLE, share=True, judged=True),
    Metric("partial", "share graded Partially Correct", ANSWERABLE, share=True, judged=True),
    Metric("wrong", "share graded Wrong, refusals among them", ANSWERABLE, share=True, judged=True),
    UNJUDGED,
    Metric("refusal_accuracy", "share refused", "unanswerable questions", share=True),
    Metric("refused_answerable", "share refused although answerable", ANSWERABLE, share=True),
    Metric("citation_precision", "share of cited chunks that are gold", _GOLD),
    Metric("citation_recall", "share of gold that is cited", _GOLD),
    Metric("citation_recall_in_view", "share of the shown gold that is cited",
           "answerable questions whose gold was shown"),
    Metric("citation_f1", "harmonic mean of the averaged citation precision and recall", _GOLD, of_set=True),
    Metric("invalid_citations", "numbers cited that were never shown, per question", high=None),
)


def _score(item: Scored, scoring: Scoring) -> Scores:
    return as_published.score(item) if scoring == "as-published" else corrected.score(item)


def _derive(means: Means) -> dict[str, Derived]:
    """`unified` and `citation_f1` of a set.

    `unified` is the mean of the two splits' means; where one split is empty, corrected scoring takes the other's
    mean and as-published counts the empty one as 0. `citation_f1` is the harmonic mean of the averaged precision
    and recall (CReSt, Table 4).
    """
    figures = {}
    if "unified" in means:
        halving = means.scoring == "as-published" and means.refusing
        figures["unified"] = Derived(mean_of_splits(*means.splits["unified"], empty_as_zero=halving), "unified")
    if "citation_precision" in means and "citation_recall" in means:
        figures["citation_f1"] = Derived(harmonic_mean(means["citation_precision"], means["citation_recall"]),
                                         "citation_precision")
    return figures


ANSWERS = Group(_METRICS, _score, _derive)
