"""The metrics by name, and scoring one question with all of them."""
from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from documents.errors import SettingsError
from experiments.metrics import as_published, corrected
from experiments.metrics.scored import Scored, Scores, Scoring
from experiments.metrics.text import form, overlap


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, whose name is the same in settings, records and tables.

    Attributes:
        over: the questions that it applies to.
        share: whether each question has 0 or 1, so that the mean is a share.
        judged: whether it rests on a judge's grades.
        of_set: whether it is computed of a whole set, and no question has one.
    """

    name: str
    description: str
    over: str = "all questions"
    share: bool = False
    judged: bool = False
    of_set: bool = False

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, name: str) -> Metric:
        """The metric of that name.

        Raises:
            SettingsError: there is none.
        """
        if name not in METRICS:
            raise SettingsError(f"unknown metric {name!r}; known are: {', '.join(METRICS)}")
        return METRICS[name]


_ANSWERABLE = "answerable questions"
METRICS = MappingProxyType({metric.name: metric for metric in (
    Metric("unified", "Correct 1, Partially 0.5, Wrong 0, needless refusal -1; rightful refusal 1; "
           "mean of the two splits' means", judged=True),
    Metric("correct", "share graded Correct", _ANSWERABLE, share=True, judged=True),
    Metric("partial", "share graded Partially Correct", _ANSWERABLE, share=True, judged=True),
    Metric("wrong", "share graded Wrong, refusals among them", _ANSWERABLE, share=True, judged=True),
    Metric("unjudged", "share of answers that the judge gave no grade", _ANSWERABLE, share=True, judged=True),
    Metric("refusal_accuracy", "share refused", "unanswerable questions", share=True),
    Metric("refused_answerable", "share refused although answerable", _ANSWERABLE, share=True),
    Metric("citation_precision", "share of cited chunks that are gold", "answerable questions with gold"),
    Metric("citation_recall", "share of gold that is cited", "answerable questions with gold"),
    Metric("citation_recall_in_view", "share of the shown gold that is cited",
           "answerable questions whose gold was shown"),
    Metric("citation_f1", "harmonic mean of the averaged citation precision and recall",
           "answerable questions with gold", of_set=True),
    Metric("invalid_citations", "numbers cited that were never shown, per question"),
    Metric("em", "answer equals a gold answer after normalisation", _ANSWERABLE, share=True),
    Metric("f1", "token F1 with the nearest gold answer", _ANSWERABLE),
    Metric("well_formed", "share whose reply held an answer or a refusal", share=True),
    Metric("tagged", "share whose answer stood in its tags or fields, where these were asked for", share=True),
)})


def score(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Every per-question metric by name, in the table's order; None where a metric does not apply."""
    scores = (as_published.score(item) if scoring == "as-published" else corrected.score(item)) \
        | overlap(item) | form(item)
    return {name: scores[name] for name, metric in METRICS.items() if not metric.of_set}


def shown_name(metric: str, judge: str | None) -> str:
    """The name for a table: that of a judged metric says who graded."""
    known = METRICS.get(metric)
    return f"{metric} ({judge})" if judge and known is not None and known.judged else metric
