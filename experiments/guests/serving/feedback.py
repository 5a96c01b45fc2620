"""Feedback becomes questions: what people said of answers, as lines of the user's own questions.

What a person approved of is a candidate for the gold answer, and what the answer cites for the gold evidence; neither
is gold before somebody reviewed it (`ragbed review`). A refusal that was approved of makes the question unanswerable.
"""
from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Literal

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.serving.traffic import open_kept, question_of
from ragbed.experiments.guests.serving.traffic_runs import question_line
from ragbed.experiments.record import Result
from ragbed.experiments.runs.store import RunFolder
from ragbed.strategies.reading import strip_citations

Wanted = Literal["up", "down", "any"]
_SAID = ("SELECT f.record, t.run, t.configuration, f.thumb, f.comment, t.standalone FROM feedback f JOIN turns t ON"
         " t.record = f.record WHERE t.ended IS NOT NULL AND (f.thumb IS NOT NULL OR f.comment != '') ORDER BY f.time")


def questions_of(traffic: Path, thumb: Wanted = "any") -> list[dict[str, Any]]:
    """Return the questions whose answers have this thumb, or any or a comment, as lines of JSON; of a question that was
    asked several times, the last that was said. Raises RunError where there is no traffic, and SettingsError where
    there is no such feedback."""
    found: dict[str, dict[str, Any]] = {}
    with ExitStack() as opened:
        database = opened.enter_context(closing(open_kept(traffic)))
        runs: dict[str, RunFolder] = {}
        for record, run, configuration, thumb_given, comment, standalone in database.read(_SAID):
            if run not in runs:
                runs[run] = opened.enter_context(closing(RunFolder.existing(database.path.parent / run)))
            (result,) = (one.result for one in runs[run].records_of(record))
            line = question_line(question_of(database, record))
            tags = {"feedback": thumb_given, "comment": comment, "given": result.text, "configuration": configuration,
                    "standalone": standalone}
            key = " ".join((standalone or line["question"]).casefold().split())
            found.pop(key, None)  # to its place in time
            found[key] = {**line, **_candidates(result, thumb_given),
                          "tags": {name: value for name, value in tags.items() if value}}
    lines = [line for line in found.values() if thumb in ("any", line["tags"].get("feedback"))]
    if not lines:
        missing = "nobody has said anything of an answer" if thumb == "any" else f"no answer has a thumb {thumb}"
        raise SettingsError(f"{traffic}: {missing} yet")
    return lines


def _candidates(result: Result, thumb: str | None) -> Mapping[str, Any]:
    """What of an answer may be gold: where each passage that it cites stands, and, if it was approved of, its text."""
    cited = {passage.number: passage for passage in result.evidence}
    gold = [{"document": one.source, "format": one.format, "start": one.start, "end": one.end}
            for one in map(cited.__getitem__, result.cited)]
    evidence = {"gold_documents": gold} if gold else {}
    if thumb == "up" and result.refused:
        return {"answerable": False}
    text = strip_citations(result.text).strip()
    return {"answer": text, **evidence} if thumb == "up" and text else evidence
