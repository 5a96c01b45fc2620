"""CReSt's metrics as its published code computes them (github.com/UpstageAI/CReSt, `evaluation/crest.py`).

Where it differs from `corrected`:

- Refused means that the lower-cased answer contains `unanswerable`, wherever, in both splits.
- A judge is asked of refusals too. The -1 applies only where it says Wrong; a Correct or Partially Correct answer with
  that word keeps its points.
- A judge is shown the answer without the citations that end it; others stay. It is asked once, without a repair.
- The last turn of least-to-most asks for no tags, in the layout `as_published`: the whole reply is the answer.
- An empty answer is dropped: every metric is None, so n shrinks.
- An unread verdict is left out of the shares of Correct, Partially and Wrong but counts 0 in the unified score.
- Only `[n]` is a citation; every number so written counts in P, shown or not. Refusals count in the averages.
- Repeated gold labels count repeatedly in |G|; an answerable question without gold labels scores 0.
- No F1 of citations is computed; ours is the paper's (Table 4), of the published precision and recall.

What is ours all the same:

- The judge's prompt is in our words and shows several accepted answers; a reply that states two grades is unread,
  where the published code takes the first. The lexical judge removes citations everywhere.
- A refusal that no judge was asked of, in a run that was made with the other scoring, is Wrong.
- Thinking in tags is removed from a reply without answer tags; the published code takes the whole reply.
- Least-to-most asks at most six different sub-questions, less the question itself, and its turns are in our words;
  where the model names none it answers in one call with tags, and the published code has no answer.
- Documents are shown by number and content; the published prompts hold whole records, gold marks among them.
- Under rules that offer no refusal, which the paper does not have, no refusal is scored.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.metrics.scored import Scored, Scores

_CITATION = re.compile(r"\[(\d+)\]")
_HALVES = {"Correct": 2, "Partially Correct": 1, "Wrong": 0}
NAMES = ("unified", "correct", "partial", "wrong", "unjudged", "refusal_accuracy", "refused_answerable",
         "citation_precision", "citation_recall", "citation_recall_in_view", "invalid_citations")


def refused_as_published(text: str) -> bool:
    """Tell by the published rule: the lower-cased text contains `unanswerable`."""
    return "unanswerable" in text.lower()


def unified(item: Scored) -> float | None:
    """Score one question; the mean is taken over the non-empty answers of a split."""
    if not item.answerable:
        return float(refused_as_published(item.text)) if item.may_refuse else None
    if item.grade == "Wrong" and refused_as_published(item.text):
        return -1.0
    return _HALVES[item.grade] / 2 if item.grade else 0.0


def grades(item: Scored) -> Scores:
    """Score the grade of an answer whose verdict was read."""
    grade = item.grade if item.answerable else None
    shares: Scores = dict.fromkeys(("correct", "partial", "wrong"))
    if grade:
        shares = {"correct": float(grade == "Correct"), "partial": float(grade == "Partially Correct"),
                  "wrong": float(grade == "Wrong")}
    return {**shares, "unjudged": float(grade is None) if item.answerable else None}


def citations(item: Scored) -> Scores:
    """Compare the positions, as sets, of a non-empty answer to an answerable question."""
    if not (item.cites and item.answerable):
        return {"citation_precision": None, "citation_recall": None}
    cited = set(_CITATION.findall(item.text))
    found = len(cited & {str(number) for number, held in item.hits.items() if held})
    labels = item.gold_total + item.gold_repeats
    return {"citation_precision": found / len(cited) if cited else 0.0,
            "citation_recall": min(found / labels, 1.0) if labels else 0.0}


def score(item: Scored) -> Scores:
    """Score one question by all metrics; those that the paper does not have are None."""
    scores: Scores = dict.fromkeys(NAMES)
    if not item.text:
        return scores
    said = float(refused_as_published(item.text)) if item.may_refuse else None
    scores |= {"unified": unified(item), **grades(item), **citations(item)}
    return scores | {"refusal_accuracy": None if item.answerable else said,
                     "refused_answerable": said if item.answerable else None}
