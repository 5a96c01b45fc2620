"""Turn user feedback on answers into test questions.

An answer with a thumb up becomes the gold answer, and the passages that it cites the gold evidence. A refusal with a
thumb up makes the question unanswerable. The passages of other answers are only candidates, among which reviewers
choose (`ragbed review`). Review all before you use them as gold.
"""
from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Literal

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import digest
from ragbed.experiments.guests.traffic.traffic import open_traffic, question_of
from ragbed.experiments.guests.traffic.traffic_runs import question_line
from ragbed.experiments.record import Result
from ragbed.experiments.runs.store import RunFolder
from ragbed.strategies.reading import strip_citations

Thumb = Literal["up", "down", "any"]
_FEEDBACK = ("SELECT f.record, t.run, t.configuration, f.thumb, f.comment, t.standalone FROM feedback f JOIN turns t ON"
         " t.record = f.record WHERE t.ended IS NOT NULL AND (f.thumb IS NOT NULL OR f.comment != '') ORDER BY f.time")


def questions_from_feedback(traffic: Path, thumb: Thumb = "any") -> list[dict[str, Any]]:
    """Return questions with feedback as lines of the benchmark `jsonl`. If a question was asked several times, the
    last feedback counts. Ids depend on the question alone, so that reviews stay when the file is written again.

    Args:
        thumb: only answers with this thumb; `any` includes those with a comment alone.

    Raises:
        RunError: there is no traffic.
        SettingsError: there is no such feedback.
    """
    found: dict[str, dict[str, Any]] = {}
    with ExitStack() as opened:
        database = opened.enter_context(closing(open_traffic(traffic)))
        runs: dict[str, RunFolder] = {}
        for record, run, configuration, thumb_given, comment, standalone in database.read(_FEEDBACK):
            if run not in runs:
                runs[run] = opened.enter_context(closing(RunFolder.existing(database.path.parent / run)))
            (result,) = (one.result for one in runs[run].records_of(record))
            line = question_line(question_of(database, record))
            tags = {"feedback": thumb_given, "comment": comment, "given": result.text, "configuration": configuration,
                    "standalone": standalone}
            key = " ".join((standalone or line["question"]).casefold().split())
            found.pop(key, None)  # pop first, so that the question moves to the end
            found[key] = {**line, "id": digest(key)[:12], **_candidates(result, thumb_given),
                          "tags": {name: value for name, value in tags.items() if value}}
    lines = [line for line in found.values() if thumb in ("any", line["tags"].get("feedback"))]
    if not lines:
        missing = "there is no feedback" if thumb == "any" else f"no answer has a thumb {thumb}"
        raise SettingsError(f"{traffic}: {missing} yet; users rate answers on the chat page")
    return lines


def _candidates(result: Result, thumb: str | None) -> Mapping[str, Any]:
    """Return gold to review: the spans of the cited passages and the answer's text. Without a thumb up, the spans are
    candidates only."""
    cited = {passage.number: passage for passage in result.evidence}
    gold = [{"document": one.source, "format": one.format, "start": one.start, "end": one.end}
            for one in map(cited.__getitem__, result.cited)]
    if thumb != "up":
        return {"candidates": gold} if gold else {}
    if result.refused:
        return {"answerable": False}
    text = strip_citations(result.text).strip()
    return {**({"answer": text} if text else {}), **({"gold_documents": gold} if gold else {})}
