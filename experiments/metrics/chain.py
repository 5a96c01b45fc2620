"""The group `chain`: the answers to the sub-questions beside the final one (MRKE, MuSiQue, MoreHopQA).

"MRKE: The Multi-hop Reasoning Evaluation of LLMs by Knowledge Edition" (2024). Joint F1 here is of each question:
precision and recall are the products of those of the final and all sub-answers. As published (Table 3), of a set:
`joint_em_log` is -ln(2 * product / sum) of the set's EMs of the final answer and of each sub-question, `joint_f1_log`
-ln of the joint F1. Lower is better in both.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from typing import TYPE_CHECKING

from experiments.answers import Overlap
from experiments.metrics.means import Derived, Means
from experiments.metrics.metric import Group, Metric
from experiments.metrics.scored import Scored, Scores, Scoring
from experiments.metrics.text import compared

if TYPE_CHECKING:
    from experiments.metrics.means import Floats

_OVER = "questions whose sub-questions were asked"
_OF_CHAIN = ("joint_em", "joint_f1", "chain_correct", "lucky")


def chain(item: Scored, scoring: Scoring = "corrected") -> Scores:
    """`sub_em@I`, `sub_f1@I` of the I-th sub-question, from 1, and the metrics of the whole chain.

    A refusal or failure is 0, for a sub-question as for the question. None where no sub-questions were asked, where
    the question has no gold answer, and where its gold evidence was dropped.
    """
    if not _applies(item):
        return _none(len(item.subs))
    final, *subs = links = _links(item)
    shared = [overlap for _, overlap in links]
    joint = Overlap(math.prod(one.precision for one in shared), math.prod(one.recall for one in shared))
    right = math.prod(em for em, _ in links)
    scores: Scores = {"joint_em": right, "joint_f1": joint.f1, "chain_correct": right, "lucky": final[0] - right}
    for place, (em, overlap) in enumerate(subs, start=1):
        scores |= {f"sub_em@{place}": em, f"sub_f1@{place}": overlap.f1}
    return scores


def chain_pattern(scores: Mapping[str, float | None]) -> tuple[bool, ...]:
    """Correct or not by exact match, of each sub-question in order and last of the question (MRKE, Table 5).

    Empty where no chain is scored.

    Args:
        scores: of one question, with those of this group.
    """
    right, lucky = scores.get("chain_correct"), scores.get("lucky")
    if right is None or lucky is None:
        return ()
    subs = takewhile(scores.__contains__, (f"sub_em@{place}" for place in count(1)))
    return (*(bool(scores[name]) for name in subs), bool(right or lucky))


def _applies(item: Scored) -> bool:
    return bool(item.subs and item.answers and item.answerable)


def _links(item: Scored) -> list[tuple[float, Overlap]]:
    """Exact match and overlap of the final answer, then of each sub-answer."""
    return [compared(item.outcome, item.text, item.answers),
            *(compared(sub.outcome, sub.text, (sub.answer,)) for sub in item.subs)]


def _none(subs: int) -> Scores:
    places = range(1, subs + 1)
    return dict.fromkeys((*_OF_CHAIN, *(f"{name}@{place}" for place in places for name in ("sub_em", "sub_f1"))))


def joint_em_log(ems: Sequence[Floats]) -> Floats:
    """-ln(2 * product / sum) of a set's EMs, 0 to 1, per resample; infinite where one of them is 0."""
    import numpy as np

    product, total = np.prod(ems, axis=0), np.sum(ems, axis=0)
    return _minus_log(np.divide(2 * product, total, out=np.zeros_like(total), where=total != 0))


def _derive(means: Means) -> dict[str, Derived]:
    """The published figures of a set; `joint_em_log` only of a set whose questions all have equally many hops."""
    if means.scoring != "as-published" or "joint_f1" not in means:
        return {}
    figures = {"joint_f1_log": Derived(_minus_log(means["joint_f1"]), "joint_f1")}
    ems = ["em", *takewhile(means.__contains__, (f"sub_em@{place}" for place in count(1)))]
    if "em" in means and means.same_questions([*ems, "joint_em"]):
        figures["joint_em_log"] = Derived(joint_em_log([means[name] for name in ems]), "joint_em")
    return figures


def _minus_log(values: Floats) -> Floats:
    import numpy as np

    return -np.log(values, out=np.full_like(values, -math.inf), where=values != 0)


CHAIN = Group((
    Metric("joint_em", "the question and all its sub-questions are answered exactly", _OVER, share=True),
    Metric("joint_f1", "F1 of the products of the precisions and of the recalls of all answers", _OVER),
    Metric("chain_correct", "share right for the right reason: the final answer and every step", _OVER, share=True),
    Metric("lucky", "share whose final answer is right though a step is wrong", _OVER, share=True),
    Metric("sub_em", "answer to the N-th sub-question equals the gold answer", _OVER, share=True, cut=0),
    Metric("sub_f1", "token F1 of the answer to the N-th sub-question", _OVER, cut=0),
    Metric("joint_em_log", "as published: -ln(2 x product / sum) of the EMs of the set", _OVER, of_set=True,
           high=None),
    Metric("joint_f1_log", "as published: -ln of the joint F1", _OVER, of_set=True, high=None)), chain, _derive)
