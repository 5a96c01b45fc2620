"""The demo: a run with recorded replies, then the first few of its questions with a live model.

`bench/record_demo.py` makes the recording, with the settings in this module.
"""
from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragbed.agents.cassette import load_recording
from ragbed.experiments.record import Record
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.experiments.runs.finished import open_finished
from ragbed.experiments.runs.run_manifest import read_manifest
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.file import check_settings
from ragbed.experiments.terminal.display import note, say, stoppable
from ragbed.experiments.terminal.execution import Put, carry_out, closing_line, in_turn
from ragbed.experiments.terminal.progress import RunView
from ragbed.experiments.terminal.run_tables import print_summary
from ragbed.strategies.catalogue import CRESTS

RECORDED = "recorded:qwen2.5-coder-1.5b-instruct"
QUESTIONS: dict[str, Any] = {
    "reasoning": list(CRESTS), "conditions": "retrieved", "answer_formats": "tags",
    "include": [{"reasoning": ["direct", "chain_of_thought"], "conditions": ["gold", "closed-book"]}],
    "retriever": {"kind": "bm25", "k": 4, "build": {"embedder": "none"}}, "brief": True, "limits": {"max_tokens": 256}}
# A small model sometimes repeats itself up to the token limit. Tags accept such text; JSON would be malformed.
_LIVE: dict[str, Any] = {"reasoning": "direct", "conditions": ["retrieved", "gold"], "answer_formats": "tags"}
_SECONDS = 100  # target duration of the live part
_MIN_QUESTIONS, _TRIED = 6, 2  # smallest number of live questions, and number of questions that measure the speed


def demo(model: str, out: Path, fresh: bool, live: bool, json: bool, full: bool = False) -> None:
    """Run the recorded questions and print their table, then run the first of them with the live model too.

    With `live`, the live model answers all questions, and there is no recorded run.
    """
    every = load_recording(RECORDED).questions

    def settings(name: str, questions: int, **more: Any) -> RunSettings:
        return check_settings({**QUESTIONS, "name": name, "out": str(out),
                               "benchmark": {"kind": "demo", "limit": questions}, **more}, "demo")

    def both(questions: int) -> RunSettings:
        return settings("demo-live", questions, models=RECORDED,
                        include=[*QUESTIONS["include"], {"models": model, **_LIVE}])

    def carry(one: RunSettings, put: Put) -> None:
        if one.name == "demo-live" and not begun:
            with TemporaryDirectory() as trial:
                few = settings("demo-pace", _TRIED, models=model, out=trial, include=[], **_LIVE)
                one = both(min(max(_count_fitting(few), _MIN_QUESTIONS), every))
            note(f"{one.folder}: the first {one.benchmark.limit} of {every} questions")
        carry_out(one, fresh=fresh, json=json or not live, put=put if json else lambda _: None, full=full)
        if one.name == "demo" and not json:
            with open_finished(one.folder) as recorded:
                print_summary(recorded.summary, full)
            say(closing_line(one.folder))
        elif one.name == "demo-live" and not json:
            say(f"report with the live model {model}: {one.folder / 'report.html'}")

    begun = not fresh and (both(_MIN_QUESTIONS).folder / "manifest.json").is_file()  # an earlier run keeps its size
    asked = int(read_manifest(both(_MIN_QUESTIONS).folder).benchmark["questions"]) if begun else _MIN_QUESTIONS
    if live:
        in_turn([settings("demo-all-live", every, models=model)], carry, json, fresh)
        return
    in_turn([settings("demo", every, models=RECORDED), both(asked)], carry, json, fresh)


def _count_fitting(few: RunSettings) -> int:
    """Return how many questions fit into `_SECONDS`, measured by asking a few."""
    note(f"measuring the speed of {', '.join(few.models)} on {_TRIED} questions")
    rates: list[float] = []  # cells per second, after each record

    def record(one: Record) -> None:
        view.record(one)
        rates.append((view.tally and view.tally.rate()) or 0.0)

    with stoppable("rerun the command to ask again"), RunView() as view:
        asyncio.run(run(few, RunCallbacks(view.stage, view.begun, record, view.note))).close()
    return int(_SECONDS * rates[-1] * _TRIED / len(rates))
