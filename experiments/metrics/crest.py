"""CReSt's metrics: ragbed's corrected version, and the version that the published code computes.

In corrected scoring every expected question counts. Outcomes other than `answered` and `refused` score 0 in `unified`,
`correct`, `partial` and every citation metric. An unreadable verdict is `unjudged` and also scores 0.

The published code (github.com/UpstageAI/CReSt, `evaluation/crest.py`) differs:

- Refused means that the lower-cased answer contains `unanswerable` anywhere, in both splits.
- The judge grades refusals too. The -1 applies only if it says Wrong; a Correct or Partially Correct answer with that
  word keeps its points.
- The judge sees the answer without the citations at its end; others stay. It is asked once, without a repair.
- In the layout `as_published`, the last turn of least-to-most asks for no tags, so the whole reply is the answer.
- The answer is the text between `<Answer>` and `</Answer>` (case-sensitive), including its whitespace.
- An empty answer is dropped: every metric is None, so n shrinks.
- An unreadable verdict is left out of the shares of Correct, Partially and Wrong but counts 0 in the unified score.
- Only `[n]` is a citation; every such number counts in P, shown or not. Refusals count in the averages.
- Repeated gold labels count repeatedly in |G|; an answerable question without gold labels scores 0.
- No F1 of citations is computed; ragbed computes the paper's (Table 4) from the published precision and recall.

These differences remain in both scorings:

- The judge's prompt is ragbed's and shows several accepted answers; a reply with two grades is unreadable, whereas the
  published code takes the first. The lexical judge removes citations everywhere.
- A refusal that no judge graded, in a run made with the other scoring, is Wrong.
- Least-to-most asks at most six different sub-questions, without the question itself, in ragbed's words; if the model
  names none it answers in one call with tags, whereas the published code has no answer.
- Documents are shown by number and content; the published prompts hold whole records, including gold marks.
- Under rules that offer no refusal, which the paper does not have, refusals are not scored.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ragbed.strategies.reading import is_published_refusal

if TYPE_CHECKING:
    from ragbed.experiments.metrics.scored import Scored, Scores

_CITATION = re.compile(r"\[(\d+)\]")
_POINTS = {"Correct": 1.0, "Partially Correct": 0.5, "Wrong": 0.0}
_SHARES = {"correct": "Correct", "partial": "Partially Correct", "wrong": "Wrong"}
_NAMES = ("unified", *_SHARES, "unjudged", "refusal_accuracy", "refused_answerable", "citation_precision",
          "citation_recall", "citation_recall_in_view", "invalid_citations")


def score_corrected(item: Scored) -> Scores:
    """Score one question.

    `unified` is Table 2 of the paper: an answerable question scores 1 if Correct, 0.5 if Partially Correct, 0 if Wrong,
    and -1 if refused. An unanswerable one scores 1 if refused, otherwise 0. An answerable question without a gold
    answer has None. A refusal is graded Wrong. If the rules offer no refusal, refusals are not scored.

    For citations, P is the set of cited chunks that were shown, and G the set of all gold items, shown or not. A chunk
    is in G if it contains a gold item. Precision is |P∩G|/|P|, and recall is (gold items in cited chunks)/|G|. Both are
    0 without citations. Recall in view counts only gold items that were shown. A question without gold labels has None.
    """
    scores = _refusals(item, item.outcome == "refused")
    if item.answerable and item.answers:
        grade = "Wrong" if item.outcome == "refused" else item.grade if item.outcome == "answered" else None
        scores |= {"unified": -1.0 if item.outcome == "refused" else _POINTS.get(grade or "", 0.0),
                   **{name: float(grade == of) for name, of in _SHARES.items()},
                   "unjudged": float(item.outcome == "answered" and grade is None)}
    if item.cites and item.answerable and item.gold_total:
        precision, recall = cited_overlap(item)
        in_view = len(frozenset[int]().union(*item.hits.values()))
        scores |= {"citation_precision": precision, "citation_recall": recall,
                   "citation_recall_in_view": len(_found(item)) / in_view if in_view else None}
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
    return scores | {"refusal_accuracy": float(refused), "unified": float(refused)}


def cited_overlap(item: Scored) -> tuple[float, float]:
    """Return two shares for a question with gold labels: cited chunks that contain gold, and gold in cited chunks."""
    held = [bool(item.hits.get(number)) for number in dict.fromkeys(item.cited) if item.read]
    return sum(held) / len(held) if held else 0.0, len(_found(item)) / item.gold_total


def _found(item: Scored) -> frozenset[int]:
    return frozenset[int]().union(*(item.hits.get(number, ()) for number in item.cited if item.read))
