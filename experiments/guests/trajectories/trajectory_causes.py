"""Causes of wrong answers that only a trajectory shows. They read its figures in the scores of the record."""
from __future__ import annotations

from ragbed.experiments.analysis.causes import FinerCause
from ragbed.experiments.record import Result

_IN_VIEW = ("distracted", "reasoning_error", "undetermined")


def _lacks(result: Result, name: str) -> bool:
    share = result.scores.get(name)
    return share is not None and share < 1


def _gave_up(result: Result) -> bool:
    return (result.outcome == "refused" and result.scores.get("ended_by_answer") == 1
            and _lacks(result, "gold_opened"))


GAVE_UP = FinerCause(
    "gave up", "The model refused before it had read all of the gold, although it could have gone on.",
    ("retrieval_miss", "wrong_refusal"), _gave_up)
NEVER_FOUND = FinerCause(
    "never found", "Some gold is in no result of a search or tool.",
    ("retrieval_miss",), lambda result: _lacks(result, "gold_seen"))
NOT_OPENED = FinerCause(
    "found, not opened", "All gold was found, but the model did not read all of it: it opened other documents, or only "
    "saw a handle of the result.", ("retrieval_miss", "wrong_refusal", *_IN_VIEW),
    lambda result: _lacks(result, "gold_opened"))
NOT_USED = FinerCause(
    "opened, not used", "The model read all of the gold, but the answer cites none of it.",
    _IN_VIEW, lambda result: result.scores.get("gold_cited") == 0)
