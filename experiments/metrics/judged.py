"""The group `choice`: whether the right option was chosen (MRCEval, DetectiveQA).

As published (MRCEval, "MRCEval: A Comprehensive, Challenging and Accessible Machine Reading Comprehension Benchmark",
2025) the prediction is the first character of the reply, in its own case; with a strategy that asks for tags, of what
stands in them. Where the published code fails on an empty reply, ours is 0.

The group `steps`: how much of a reference reasoning a model's own holds (DetectiveQA).

"DetectiveQA: Evaluating Long-Context Reasoning on Detective Novels" (2024): answer accuracy, reasoning score, and
G.M., the square root of their product. Both scorings are one: GLM3-6B's printed G.M. of 33.63, of 40.58 and 22.08,
does not follow the paper's own formula, which gives 29.93.

The group `answers`: graded answers, refusals and citations, CReSt's metrics, in both scorings.

What strategies measure on their way (`Draft.figures`) as metrics: of the questions that have one, and no others.

The group `points`: a judge's grade from 0 to 10 (MDBench).

As published, accuracy is the grade over 10, "EM" is a grade above 8, and a grade that is not an integer breaks the
scoring of the whole set. Ours goes on: as published such an answer has no graded figure and leaves the means, since
the published code never gave it one; corrected it counts 0. Both count it in `unjudged`. The published code knows no
refusal: as published whatever is not empty has the judge's grade.
"""
from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from experiments.metrics import as_published, corrected
from experiments.metrics.means import Derived, Means, among, harmonic_mean, mean_of_splits
from experiments.metrics.metric import ANSWERABLE, UNJUDGED, Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring
from strategies.choice import read_choice

_CHOICES = "questions with options"


def choice(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """`accuracy`: the option that the answer names is the gold one; a failure, a refusal or an answer that names none
    is 0. `unparsed`: a reply came, no refusal, and names no option; None as published, which knows no such outcome.

    None for a question without options or without a gold label. A question whose gold evidence was dropped keeps
    its right option, and is scored.
    """
    if not item.options or not item.answers:
        return {"accuracy": None, "unparsed": None}
    if scoring == "as-published":
        return {"accuracy": float(item.text[:1] == item.answers[0]), "unparsed": None}
    chosen = read_choice(item.text, item.options) if item.outcome == "answered" else None
    replied = item.outcome in ("answered", "malformed")
    return {"accuracy": float(chosen == item.answers[0]), "unparsed": float(replied and chosen is None)}


CHOICE = Group((
    Metric("accuracy", "share whose chosen option is the right one", _CHOICES, share=True),
    Metric("unparsed", "share of replies that name no option", _CHOICES, share=True)), choice)


_STEPS = "questions with reference steps"
_BOTH = ("accuracy", "reasoning_score")


def steps(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """`reasoning_score`: the share of the reference steps that the judge found, whatever the answer.

    A reply without reasoning, and a failure before any, is 0 without a judge. Reasoning without a readable verdict is
    0 and `unjudged`.
    """
    if not item.step_count:
        return {"reasoning_score": None, "unjudged": None}
    if not item.reasoned or item.steps is None:
        return {"reasoning_score": 0.0, "unjudged": float(item.reasoned)}
    found = {step for step in item.steps if 0 <= step < item.step_count}
    return {"reasoning_score": len(found) / item.step_count, "unjudged": 0.0}


def _derive_steps(means: Means) -> dict[str, Derived]:
    """`gm`: sqrt(mean accuracy x mean reasoning score), both over the questions that have both."""
    import numpy as np

    chosen, reasoned = among("accuracy", _BOTH), among("reasoning_score", _BOTH)
    return {"gm": Derived(np.sqrt(means[chosen] * means[reasoned]), chosen)} if chosen in means else {}


STEPS = Group((
    Metric("reasoning_score", "share of the reference steps that the judge finds in the reasoning", _STEPS,
           judged=True),
    UNJUDGED,
    Metric("gm", "square root of mean accuracy times mean reasoning score",
           "questions with options and reference steps", judged=True, of_set=True)),
    steps, _derive_steps, _BOTH)


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


def _derive_answers(means: Means) -> dict[str, Derived]:
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


ANSWERS = Group(_METRICS, _score, _derive_answers)


_MEASURED = "questions whose strategy measured it"
MEASURED = (
    Metric("agreement", "self_consistency: the share of the samples that give the chosen answer", _MEASURED),
    Metric("samples", "self_consistency: how many samples the budget of tokens held", _MEASURED, high=None),
    Metric("sufficiency", "sufficient: the grade of the evidence, before the answer", _MEASURED),
    Metric("sentences_supported", "supported: the share of the answer's sentences that what they cite bears out",
           _MEASURED),
    Metric("quotes", "quote_first: how many quotes came", _MEASURED, high=None),
    Metric("quotes_found", "quote_first: the share of the quotes that stand in the documents", _MEASURED),
    Metric("rows", "table_first: how many rows the table has", _MEASURED, high=None),
    Metric("rows_found", "table_first: the share of the rows whose value stands in a document", _MEASURED),
    Metric("worked_out", "program_aided: the share of the lines that could be worked out", _MEASURED),
    Metric("checks", "chain_of_verification: how many questions checked the draft", _MEASURED, high=None),
    Metric("laps", "reflect: how often a draft was checked", _MEASURED, high=None),
    Metric("repaired", "supported: whether the answer was asked for a second time", _MEASURED, share=True),
    Metric("revised", "strategies that revise: whether the final answer says something else than the first", _MEASURED,
           share=True))
_UNNAMED = re.compile(r"[^a-z0-9]+")
_LONGEST = 40


def measured(figures: Mapping[str, float], metrics: Collection[str]) -> Scores:
    """The figures of a question as scores, under their names.

    A name becomes lower-case letters, digits and `_`. One that a metric has, which a strategy cannot score itself by,
    begins with `figure_`.

    Args:
        metrics: the names of those that are scored.
    """
    scores: Scores = {}
    for name, value in figures.items():
        plain = _UNNAMED.sub("_", name.lower())[:_LONGEST].strip("_")
        scores.setdefault(f"figure_{plain}" if plain in metrics or not plain[:1].isalpha() else plain, float(value))
    return scores


_MOST = 10
_EM_ABOVE = 8
_NAMES = ("graded_accuracy", "graded_em", "unjudged")


def points(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Over answerable questions with a gold answer; a failure, and corrected a refusal, is 0 without a judge."""
    if not item.answerable or not item.answers:
        return dict.fromkeys(_NAMES)
    if not (item.text if scoring == "as-published" else item.outcome == "answered"):
        return dict.fromkeys(_NAMES, 0.0)
    if item.points is None:
        lost = None if scoring == "as-published" else 0.0
        return {"graded_accuracy": lost, "graded_em": lost, "unjudged": 1.0}
    return {"graded_accuracy": item.points / _MOST, "graded_em": float(item.points > _EM_ABOVE), "unjudged": 0.0}


POINTS = Group((
    Metric("graded_accuracy", "the judge's grade from 0 to 10, over 10", ANSWERABLE, judged=True),
    Metric("graded_em", "share graded above 8", ANSWERABLE, share=True, judged=True),
    UNJUDGED), points)
