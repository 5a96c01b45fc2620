"""Metrics of graded answers, refusals, citations, reference steps and chosen options, and figures that strategies
measure.

The group `answers`: CReSt's metrics, in both scorings; see `crest`.

The group `points`: a judge's grade from 0 to 10 (MDBench). As published, accuracy is the grade over 10, "EM" is a grade
above 8, and a grade that is not an integer stops the scoring of the whole set. Here, as-published scoring leaves such
an answer out of the means, and corrected scoring counts it as 0. Both count it in `unjudged`. The published code has no
refusals, so as-published scoring uses the judge's grade of every non-empty answer.

The group `steps`: how much of a reference reasoning the model's reasoning contains. "DetectiveQA: Evaluating
Long-Context Reasoning on Detective Novels" (2024): answer accuracy, reasoning score, and G.M., the square root of their
product. Both scorings are the same: GLM3-6B's printed G.M. of 33.63, from 40.58 and 22.08, does not follow the paper's
own formula, which gives 29.93.

The group `choice`: whether the right option was chosen (MRCEval, DetectiveQA). As published (MRCEval, "MRCEval: A
Comprehensive, Challenging and Accessible Machine Reading Comprehension Benchmark", 2025) the prediction is the first
character of the reply, including case and blanks; if the strategy asks for tags, the first character of their content.
An empty reply, on which the published code fails, scores 0.
"""
from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ragbed.experiments.metrics import crest
from ragbed.experiments.metrics.metric import ANSWERABLE, UNJUDGED, Metric, MetricGroup, SetFigure, Sizes, joint
from ragbed.experiments.metrics.scored import Scored, Scores, Scoring
from ragbed.strategies.choice import read_choice

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats

_GOLD = "answerable questions with gold"
_OPTIONS = "questions with options"
_STEPS = "questions with reference steps"
_MEASURED = "questions whose strategy measured it"


def answers(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score graded answers, refusals and citations."""
    return crest.score_as_published(item) if scoring == "as-published" else crest.score_corrected(item)


def _of_answers(sizes: Sizes, scoring: Scoring, refusing: bool) -> dict[str, SetFigure]:
    """Derive `unified`, the mean of the two splits' means, and `citation_f1`, the harmonic mean of the averaged
    precision and recall (CReSt, Table 4). If one split is empty, corrected scoring takes the other's mean, and
    as-published scoring counts the empty one as 0."""
    figures, halving = {}, scoring == "as-published" and refusing
    if "unified" in sizes:
        figures["unified"] = SetFigure(("unified",), lambda pooled, splits: _mean_of_splits(splits[:, :, 0], halving))
    if "citation_precision" in sizes and "citation_recall" in sizes:
        figures["citation_f1"] = SetFigure(("citation_precision", "citation_recall"),
                                           lambda pooled, splits: _harmonic_mean(pooled[:, 0], pooled[:, 1]))
    return figures


def _mean_of_splits(splits: Floats, halving: bool) -> Floats:
    """Return the mean of both splits. If one is nan, return the other, or half of it if `halving`."""
    import numpy as np

    present = (~np.isnan(splits)).sum(axis=1)
    divisor = np.where(present > 0, 2.0 if halving else present, np.nan)
    return np.asarray(np.nan_to_num(splits).sum(axis=1) / divisor)


def _harmonic_mean(first: Floats, second: Floats) -> Floats:
    """Return 2ab/(a+b): 0 if both are 0, nan if either is nan."""
    import numpy as np

    total = first + second
    return np.divide(2 * first * second, total, out=np.where(np.isnan(total), np.nan, 0.0), where=total > 0)


ANSWERS = MetricGroup((
    Metric("unified", "answerable: correct 1, partly correct 0.5, wrong 0, refused -1; unanswerable: refused 1, "
           "answered 0; mean of the two group means", judged=True, low=-1.0, low_unanswerable=0.0),
    Metric("correct", "share graded Correct", ANSWERABLE, share=True, judged=True),
    Metric("partial", "share graded Partially Correct", ANSWERABLE, share=True, judged=True),
    Metric("wrong", "share graded Wrong, including refusals", ANSWERABLE, share=True, judged=True),
    UNJUDGED,
    Metric("refusal_accuracy", "share refused", "unanswerable questions", share=True),
    Metric("refused_answerable", "share refused although answerable", ANSWERABLE, share=True),
    Metric("citation_precision", "share of cited chunks that are gold", _GOLD),
    Metric("citation_recall", "share of gold that is cited", _GOLD),
    Metric("citation_recall_in_view", "share of the shown gold that is cited",
           "answerable questions whose gold was shown"),
    Metric("citation_f1", "harmonic mean of the averaged citation precision and recall", _GOLD, of_set=True),
    Metric("invalid_citations", "numbers cited that were never shown, per question", high=None)), answers, _of_answers)


def points(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score answerable questions with a gold answer. A failure scores 0 without a judge. In corrected scoring, so does
    a refusal."""
    names = ("graded_accuracy", "graded_em", "unjudged")
    if not item.answerable or not item.answers:
        return dict.fromkeys(names)
    if not (item.text if scoring == "as-published" else item.outcome == "answered"):
        return dict.fromkeys(names, 0.0)
    if item.points is None:
        lost = None if scoring == "as-published" else 0.0
        return {"graded_accuracy": lost, "graded_em": lost, "unjudged": 1.0}
    return {"graded_accuracy": item.points / 10, "graded_em": float(item.points > 8), "unjudged": 0.0}


POINTS = MetricGroup((
    Metric("graded_accuracy", "the judge's grade from 0 to 10, over 10", ANSWERABLE, judged=True),
    Metric("graded_em", "share graded above 8", ANSWERABLE, share=True, judged=True),
    UNJUDGED), points)


def steps(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score `reasoning_score`: the share of the reference steps that the judge found, whether or not the answer is
    right. A failure, or a reply without reasoning, scores 0 without a judge. Reasoning without a readable verdict
    scores 0 and is `unjudged`."""
    if not item.step_count:
        return {"reasoning_score": None, "unjudged": None}
    if not item.reasoned or item.steps is None:
        return {"reasoning_score": 0.0, "unjudged": float(item.reasoned)}
    found = {step for step in item.steps if 0 <= step < item.step_count}
    return {"reasoning_score": len(found) / item.step_count, "unjudged": 0.0}


_BOTH = ("accuracy", "reasoning_score")


def _of_steps(sizes: Sizes, scoring: Scoring, refusing: bool) -> dict[str, SetFigure]:
    """Derive `gm` = sqrt(mean accuracy x mean reasoning score), over the questions that have both scores."""
    names = (joint("accuracy", _BOTH), joint("reasoning_score", _BOTH))
    return {"gm": SetFigure(names, lambda pooled, splits: pooled.prod(axis=1) ** 0.5)} if names[0] in sizes else {}


STEPS = MetricGroup((
    Metric("reasoning_score", "share of the reference steps that the judge finds in the reasoning", _STEPS,
           judged=True),
    UNJUDGED,
    Metric("gm", "square root of mean accuracy times mean reasoning score",
           "questions with options and reference steps", judged=True, of_set=True)),
    steps, _of_steps, _BOTH)


def choice(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score `accuracy`, whether the answer names the gold option (0 for a failure, a refusal or no option), and
    `unparsed`, whether a reply that is not a refusal names no option; None as published, which has no such outcome.

    None for a question without options or gold label. A question whose gold evidence was dropped is still scored.
    """
    if not item.options or not item.answers:
        return {"accuracy": None, "unparsed": None}
    if scoring == "as-published":
        return {"accuracy": float(item.text[:1] == item.answers[0]), "unparsed": None}
    chosen = read_choice(item.text, item.options) if item.outcome == "answered" else None
    replied = item.outcome in ("answered", "malformed")
    return {"accuracy": float(chosen == item.answers[0]), "unparsed": float(replied and chosen is None)}


CHOICE = MetricGroup((
    Metric("accuracy", "share whose chosen option is the right one", _OPTIONS, share=True),
    Metric("unparsed", "share of replies that name no option", _OPTIONS, share=True)), choice)


MEASURED = (
    Metric("agreement", "self_consistency: share of the samples with the chosen answer", _MEASURED),
    Metric("samples", "self_consistency: number of samples within the token budget", _MEASURED, high=None),
    Metric("sufficiency", "sufficient: grade of the evidence before the answer", _MEASURED),
    Metric("sentences_supported", "supported: share of the answer's sentences that their citations support",
           _MEASURED),
    Metric("quotes", "quote_first: number of quotes", _MEASURED, high=None),
    Metric("quotes_found", "quote_first: share of the quotes that are in the documents", _MEASURED),
    Metric("rows", "table_first: number of rows of the table", _MEASURED, high=None),
    Metric("rows_found", "table_first: share of the rows whose value is in a document", _MEASURED),
    Metric("worked_out", "program_aided: share of the lines that could be computed", _MEASURED),
    Metric("checks", "chain_of_verification: number of questions that checked the draft", _MEASURED, high=None),
    Metric("iterations", "reflect: number of checks of a draft", _MEASURED, high=None),
    Metric("repaired", "supported: share whose answer was asked for again", _MEASURED, share=True),
    Metric("revised", "strategies that revise: share whose final answer differs from the first", _MEASURED,
           share=True))
_UNNAMED = re.compile(r"[^a-z0-9]+")
_LONGEST = 40


def score_custom_figures(figures: Mapping[str, float], metrics: Collection[str]) -> Scores:
    """Return the figures that a strategy measured (`Draft.figures`) as scores, with names of lower-case letters, digits
    and `_`. If the name is already a metric's, it gets the prefix `figure_`, so that strategies cannot score
    themselves."""
    scores: Scores = {}
    for name, value in figures.items():
        plain = _UNNAMED.sub("_", name.lower())[:_LONGEST].strip("_")
        scores.setdefault(f"figure_{plain}" if plain in metrics or not plain[:1].isalpha() else plain, float(value))
    return scores
