"""Metrics of graded answers, refusals, citations, reference steps and options, and figures that strategies measure.

The group `answers`: CReSt's metrics, in ragbed's corrected version and the version that the published code computes.

In corrected scoring every expected question counts. Outcomes other than `answered` and `refused` score 0 in `unified`,
`correct`, `partial` and every citation metric. An answer that the judge did not grade is `unjudged` and has no judge
score. The figures of the set then have bounds (`metrics.aggregation`).

The published code (github.com/UpstageAI/CReSt, `evaluation/crest.py`) differs:

- Refused means that the lower-cased answer contains `unanswerable` anywhere, in both splits.
- The judge grades refusals too. A refusal scores -1 only if the judge says Wrong; a Correct or Partially Correct answer
  that contains the word keeps its points.
- The judge sees the answer without the citations at its end, but with all others. The judge is asked only once.
- In the layout `as_published`, least-to-most asks for no tags in its last prompt, so the whole reply is the answer.
- The answer is the text between `<Answer>` and `</Answer>` (case-sensitive), including its whitespace.
- An empty answer is dropped: every metric is None, so n shrinks.
- An unreadable verdict is left out of the shares of Correct, Partially and Wrong but counts 0 in the unified score.
- Only `[n]` is a citation; every such number counts in P, shown or not. Refusals count in the averages.
- Duplicate gold labels count several times in |G|; an answerable question without gold labels scores 0.
- It computes no citation F1; ragbed computes the F1 of the paper's Table 4 from the published precision and recall.

These differences remain in both scorings:

- The judge's prompt is ragbed's and shows several accepted answers; a reply with two grades is unreadable, whereas the
  published code takes the first. The lexical judge removes citations everywhere.
- If a run was made with the other scoring, a refusal that no judge graded is Wrong.
- Least-to-most asks at most six different sub-questions, none of which is the question itself, with ragbed's own
  prompts. If the model lists no sub-questions, it answers in one call with tags, whereas the published code has no
  answer.
- Documents are shown by number and content; the published prompts hold whole records, including gold marks.
- ragbed also has rules that offer no refusal; under these, refusals are not scored.

The group `points`: a judge's grade from 0 to 10 (MDBench). As published, accuracy is the grade over 10, "EM" is a grade
above 8, and a grade that is not an integer stops the scoring of the whole set. Here, such an answer has no score and
counts in `unjudged`. The published code has no refusals, so as-published scoring uses the judge's grade of every
non-empty answer.

The group `steps`: how much of a reference reasoning the model's reasoning contains. "DetectiveQA: Evaluating
Long-Context Reasoning on Detective Novels" (2024) has answer accuracy, reasoning score, and G.M., the square root of
their product. Both scorings are the same: GLM3-6B's printed G.M. of 33.63, from 40.58 and 22.08, does not follow the
paper's own formula, which gives 29.93.

The group `choice`: whether the right option was chosen (MRCEval, DetectiveQA). As published (MRCEval, "MRCEval: A
Comprehensive, Challenging and Accessible Machine Reading Comprehension Benchmark", 2025) the prediction is the first
character of the reply, including case and blanks; if the strategy asks for tags, the first character of their content.
An empty reply, on which the published code fails, scores 0.
"""
from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ragbed.experiments.metrics.metric import (
    ANSWERABLE,
    UNJUDGED,
    Metric,
    MetricGroup,
    Scored,
    Scores,
    Scoring,
    SetFigure,
    Sizes,
    joint,
)
from ragbed.strategies.choice import read_choice
from ragbed.strategies.reading import is_published_refusal

if TYPE_CHECKING:
    from ragbed.experiments.metrics.metric import Floats, Scored, Scores

_GOLD = "answerable questions with gold"
_OPTIONS = "questions with options"
_STEPS = "questions with reference steps"
_MEASURED = "questions whose strategy measures it"


def answers(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score graded answers, refusals and citations."""
    return score_as_published(item) if scoring == "as-published" else score_corrected(item)


def _set_figures(sizes: Sizes, scoring: Scoring, refusing: bool) -> dict[str, SetFigure]:
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
    Metric("right", "share answered correctly, or rightly refused", share=True, judged=True),
    Metric("correct", "share graded Correct", ANSWERABLE, share=True, judged=True),
    Metric("partial", "share graded Partially Correct", ANSWERABLE, share=True, judged=True),
    Metric("wrong", "share graded Wrong, including refusals", ANSWERABLE, share=True, judged=True, less=True),
    UNJUDGED,
    Metric("refusal_accuracy", "share refused", "unanswerable questions", share=True),
    Metric("refused_answerable", "share refused although answerable", ANSWERABLE, share=True, less=True),
    Metric("citation_precision", "share of cited chunks that are gold", _GOLD),
    Metric("citation_recall", "share of gold that is cited", _GOLD),
    Metric("citation_recall_in_view", "share of the shown gold that is cited",
           "answerable questions whose gold was shown"),
    Metric("citation_f1", "harmonic mean of the averaged citation precision and recall", _GOLD, of_set=True),
    Metric("invalid_citations", "cited numbers that were never shown, per question", high=None, less=True)),
    answers, _set_figures)


def points(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score answerable questions with a gold answer. Failures and, in corrected scoring, refusals score 0."""
    names = ("graded_accuracy", "graded_em", "unjudged")
    if not item.answerable or not item.answers:
        return dict.fromkeys(names)
    if not (item.text if scoring == "as-published" else item.outcome == "answered"):
        return dict.fromkeys(names, 0.0)
    if item.points is None:
        return {"graded_accuracy": None, "graded_em": None, "unjudged": 1.0}
    return {"graded_accuracy": item.points / 10, "graded_em": float(item.points > 8), "unjudged": 0.0}


POINTS = MetricGroup((
    Metric("graded_accuracy", "the judge's grade from 0 to 10, over 10", ANSWERABLE, judged=True),
    Metric("graded_em", "share graded above 8", ANSWERABLE, share=True, judged=True),
    UNJUDGED), points)


def steps(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score `reasoning_score`: the share of the reference steps that the judge found, whether or not the answer is
    right. A failure, or a reply without reasoning, scores 0 without a judge. Reasoning without a readable verdict
    is `unjudged`, and 0 as published."""
    if not item.step_count:
        return {"reasoning_score": None, "unjudged": None}
    if not item.reasoned:
        return {"reasoning_score": 0.0, "unjudged": None}
    if item.steps is None:
        return {"reasoning_score": 0.0 if scoring == "as-published" else None, "unjudged": 1.0}
    found = {step for step in item.steps if 0 <= step < item.step_count}
    return {"reasoning_score": len(found) / item.step_count, "unjudged": 0.0}


_BOTH = ("accuracy", "reasoning_score")


def _derive_gm(sizes: Sizes, scoring: Scoring, refusing: bool) -> dict[str, SetFigure]:
    """Derive `gm` = sqrt(mean accuracy x mean reasoning score), over the questions that have both scores."""
    names = (joint("accuracy", _BOTH), joint("reasoning_score", _BOTH))
    return {"gm": SetFigure(names, lambda pooled, splits: pooled.prod(axis=1) ** 0.5)} if names[0] in sizes else {}


STEPS = MetricGroup((
    Metric("reasoning_score", "share of the reference steps that the judge finds in the reasoning", _STEPS,
           judged=True),
    UNJUDGED,
    Metric("gm", "square root of mean accuracy times mean reasoning score",
           "questions with options and reference steps", judged=True, of_set=True)),
    steps, _derive_gm, _BOTH)


def choice(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score `accuracy`, whether the answer names the gold option (0 for a failure, a refusal or no option), and
    `unparsed`, whether a reply that is not a refusal names no option. The published scoring has no `unparsed`.

    Both are None for a question without options or gold label. Dropped gold evidence does not matter.
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
    Metric("unparsed", "share of replies that name no option", _OPTIONS, share=True, less=True)), choice)


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
    Metric("repaired", "supported: share of questions whose answer had to be repaired", _MEASURED, share=True),
    Metric("revised", "strategies that revise: share whose final answer differs from the first", _MEASURED,
           share=True))
_UNNAMED = re.compile(r"[^a-z0-9]+")
_LONGEST = 40


def score_custom_figures(figures: Mapping[str, float], metrics: Collection[str]) -> Scores:
    """Return the figures that a strategy measured (`Draft.figures`) as scores. Names are reduced to lower-case letters,
    digits and `_`. If a metric has that name, the figure gets the prefix `figure_`, so that strategies cannot score
    themselves."""
    scores: Scores = {}
    for name, value in figures.items():
        plain = _UNNAMED.sub("_", name.lower())[:_LONGEST].strip("_")
        scores.setdefault(f"figure_{plain}" if plain in metrics or not plain[:1].isalpha() else plain, float(value))
    return scores


_CITATION = re.compile(r"\[(\d+)\]")
_POINTS = {"Correct": 1.0, "Partially Correct": 0.5, "Wrong": 0.0}
_SHARES = {"correct": "Correct", "partial": "Partially Correct", "wrong": "Wrong"}
_NAMES = ("unified", "right", *_SHARES, "unjudged", "refusal_accuracy", "refused_answerable", "citation_precision",
          "citation_recall", "citation_recall_in_view", "invalid_citations")


def score_corrected(item: Scored) -> Scores:
    """Score one question.

    `unified` is Table 2 of the paper: an answerable question scores 1 if Correct, 0.5 if Partially Correct, 0 if Wrong,
    and -1 if refused. An unanswerable one scores 1 if refused, otherwise 0. An answerable question without a gold
    answer, or with an unjudged one, scores None. A refusal is graded Wrong. If the rules offer no refusal, refusals are
    not scored. `right` is 1 for a correct answer (with options, the right option) and for a right refusal, otherwise 0.

    For citations, P is the set of cited chunks that were shown, and G the set of all gold items, shown or not. A chunk
    is in G if it contains a gold item. Precision is |P∩G|/|P|, and recall is (gold items in cited chunks)/|G|. Both are
    0 without citations. Recall in view counts only gold items that were shown. A question without gold labels scores
    None.
    """
    scores = _refusals(item, item.outcome == "refused")
    if item.answerable and item.answers:
        grade = "Wrong" if item.outcome == "refused" else item.grade if item.outcome == "answered" else None
        unjudged = item.outcome == "answered" and grade is None
        if not unjudged:
            scores |= {"unified": -1.0 if item.outcome == "refused" else _POINTS.get(grade or "", 0.0),
                       "right": float(grade == "Correct"),
                       **{name: float(grade == of) for name, of in _SHARES.items()}}
        scores |= {"unjudged": float(unjudged), **({"right": choice(item)["accuracy"]} if item.options else {})}
    if item.cites and item.answerable and item.gold_total:
        precision, recall = item.cited_overlap
        in_view = len(frozenset[int]().union(*item.hits.values()))
        scores |= {"citation_precision": precision, "citation_recall": recall,
                   "citation_recall_in_view": len(item.cited_gold) / in_view if in_view else None}
    return scores | {"invalid_citations": float(len(item.invalid) * item.read) if item.cites else None}


def score_as_published(item: Scored) -> Scores:
    """Score one question as the published code does; metrics that the paper does not have are None."""
    if not item.text:
        return dict.fromkeys(_NAMES)
    refused = is_published_refusal(item.text)
    scores = _refusals(item, refused)
    if item.answerable:
        shares: Scores = {name: float(item.grade == of) for name, of in _SHARES.items()} if item.grade else {}
        scores |= {"unified": -1.0 if refused and item.grade == "Wrong" else _POINTS.get(item.grade or "", 0.0),
                   "right": float(item.grade == "Correct"),
                   **shares, "unjudged": float(item.grade is None)}
    if item.answerable and item.cites:
        cited = set(_CITATION.findall(item.text))
        found = len(cited & {str(number) for number, held in item.hits.items() if held})
        labels = item.gold_total + item.gold_repeats
        scores |= {"citation_precision": found / len(cited) if cited else 0.0,
                   "citation_recall": min(found / labels, 1.0) if labels else 0.0}
    return scores


def _refusals(item: Scored, refused: bool) -> Scores:
    scores: Scores = dict.fromkeys(_NAMES)
    if not item.may_refuse:
        return scores
    if item.answerable:
        return scores | {"refused_answerable": float(refused)}
    return scores | {"refusal_accuracy": float(refused), "unified": float(refused), "right": float(refused)}
