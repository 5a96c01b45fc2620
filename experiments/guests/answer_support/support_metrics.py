"""Metrics from the labels of a support check: how well citations support sentences, and how many nuggets an answer has.

The group `sentences`: Thakur et al., "Support Evaluation for the TREC 2024 RAG Track: Comparing Human versus LLM
Judges", 2025, arXiv:2504.15205. Full support counts 1, partial 0.5, none 0. Weighted precision is the mean over the
sentences that cite, weighted recall over all sentences. TREC checks the first passage that a sentence cites; here all
of them are checked together.

The group `nuggets`: Pradeep et al., "Initial Nugget Evaluation Results for the TREC 2024 RAG Track with the
AutoNuggetizer Framework", 2024, arXiv:2411.09607. Let s be 1 if the answer fully supports a nugget, 0.5 (`strict`: 0)
if partially, and 0 if not. V is the mean of s over the vital nuggets, A the mean over all, and W the mean over all with
half weight for okay ones: (sum s of vital + 0.5 * sum s of okay) / (vital + 0.5 * okay). TREC's first measure is V
strict.

Labels that could not be parsed are left out; a separate metric reports their share, from which the bounds of the other
metrics follow. If none could be parsed, the other metrics are None.
"""
from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ragbed.experiments.metrics.metric import ANSWERABLE, Metric, MetricGroup, Scored, Scores, Scoring
from ragbed.experiments.record import SupportLabel

_WEIGHTS = {"full": 1.0, "partial": 0.5}
_LEVELS = ("full", "partial", "none")


def sentences(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score the sentences of the answer to an answerable question. A refusal or failure has precision and recall 0, and
    an answer without citations has precision 0. All are None if the rules ask for no citations or nothing was
    checked."""
    scores: Scores = dict.fromkeys(metric.name for metric in SENTENCES.metrics)
    if not item.cites or not item.answerable:
        return scores
    labels = item.support.sentences if item.support else ()
    if item.outcome != "answered":
        return scores | {"sentence_precision": 0.0, "sentence_recall": 0.0}
    if not labels:
        return scores
    scores |= {"sentences_uncited": fmean(not label.cited for label in labels),
               "sentences_unread": _share(labels, None)}
    if not (read := [label for label in labels if label.level is not None]):
        return scores
    weights = _weights(read)
    citing = [weight for weight, label in zip(weights, read, strict=True) if label.cited]
    return scores | {"sentence_precision": fmean(citing) if citing else 0.0, "sentence_recall": fmean(weights),
                     **{f"sentences_{level}": _share(read, level) for level in _LEVELS}}


def nuggets(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """Score the nuggets of an answerable question. A refusal or failure contains none."""
    scores: Scores = dict.fromkeys(metric.name for metric in NUGGETS.metrics)
    labels = item.support.nuggets if item.support and item.answerable else ()
    if not labels:
        return scores
    if item.outcome != "answered":
        labels = tuple(label.model_copy(update={"level": "none"}) for label in labels)
    scores["nuggets_unread"] = _share(labels, None)
    if not (labels := tuple(label for label in labels if label.level is not None)):
        return scores
    vital = [label for label in labels if label.vital]
    importance = [1.0 if label.vital else 0.5 for label in labels]
    for suffix, partial in (("", 0.5), ("_strict", 0.0)):
        weights = _weights(labels, partial)
        scores |= {f"nuggets_vital{suffix}": fmean(_weights(vital, partial)) if vital else None,
                   f"nuggets_all{suffix}": fmean(weights),
                   f"nuggets_weighted{suffix}": fmean(weights, importance)}
    return scores


def _weights(labels: Sequence[SupportLabel], partial: float = 0.5) -> list[float]:
    return [(_WEIGHTS | {"partial": partial}).get(label.level or "", 0.0) for label in labels]


def _share(labels: Sequence[SupportLabel], level: str | None) -> float:
    return fmean(label.level == level for label in labels)


_CITED = "answerable questions whose rules ask for citations"
_CITING = "answers to answerable questions whose rules ask for citations"
SENTENCES = MetricGroup((
    Metric("sentence_precision", "mean support of the sentences that cite: full 1, partial 0.5", _CITED),
    Metric("sentence_recall", "mean support of all sentences; 0 for a sentence without citations", _CITED),
    Metric("sentences_full", "share of the sentences with full support", _CITING),
    Metric("sentences_partial", "share of the sentences with partial support", _CITING),
    Metric("sentences_none", "share of the sentences without support, including those that cite nothing", _CITING,
           less=True),
    Metric("sentences_uncited", "share of the sentences that cite nothing", _CITING, less=True),
    Metric("sentences_unread", "share of the sentences whose check could not be parsed", _CITING, less=True)),
    sentences)
_NUGGETS = f"{ANSWERABLE} with nuggets"
NUGGETS = MetricGroup((
    Metric("nuggets_vital_strict", "share of the vital nuggets that the answer fully contains",
           f"{_NUGGETS}, any of them vital"),
    Metric("nuggets_vital", "share of the vital nuggets in the answer, partial ones counting half",
           f"{_NUGGETS}, any of them vital"),
    Metric("nuggets_all_strict", "share of all nuggets that the answer fully contains", _NUGGETS),
    Metric("nuggets_all", "share of all nuggets in the answer, partial ones counting half", _NUGGETS),
    Metric("nuggets_weighted_strict", "share of all nuggets fully contained, okay ones at half weight", _NUGGETS),
    Metric("nuggets_weighted", "share of all nuggets in the answer, partial and okay ones counting half", _NUGGETS),
    Metric("nuggets_unread", "share of the nuggets whose check could not be parsed", _NUGGETS, less=True)), nuggets)
