"""The demo: a recorded model's run, whose table stands at once, then a live model beside it over its first questions.

The recording is made by `bench/record_demo.py`, with the settings that stand here; it holds how many questions.
"""
from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ragbed.agents.recorded import load_recording
from ragbed.experiments.record import Record
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.experiments.runs.manifest import manifest_of
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.file import check_settings
from ragbed.experiments.terminal.display import note, stoppable
from ragbed.experiments.terminal.live import RunView
from ragbed.experiments.terminal.run import Put, carry_out, in_turn
from ragbed.strategies.catalogue import CRESTS

RECORDED = "recorded:qwen2.5-coder-1.5b-instruct"
QUESTIONS: dict[str, Any] = {
    "reasoning": list(CRESTS), "conditions": "retrieved", "answer_formats": "tags",
    "include": [{"reasoning": ["direct", "chain_of_thought"], "conditions": ["gold", "closed-book"]}],
    "retriever": {"kind": "bm25", "k": 4, "build": {"embedder": "none"}}, "brief": True, "limits": {"max_tokens": 256}}
# Small models repeat themselves up to the limit now and then, which leaves no tag and no JSON; here any text answers.
_LIVE: dict[str, Any] = {"reasoning": "direct", "conditions": ["retrieved", "gold"], "answer_formats": "tags"}
_SECONDS, _LEAST, _TRIED = 100, 6, 2  # that the live part takes; questions of it at least; those that tell its pace


def demo(model: str, out: Path, fresh: bool, live: bool, json: bool, full: bool = False) -> None:
    """Carry out the recorded run, and one with both models; with `live` all that was recorded, asked of the model."""
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
                one = both(min(max(_fitting(few), _LEAST), every))
            note(f"{one.folder}: the first {one.benchmark.limit} of {every} questions")
        carry_out(one, fresh=fresh, json=json, put=put, full=full)

    begun = not fresh and (both(_LEAST).folder / "manifest.json").is_file()  # with as many questions as fitted then
    asked = int(manifest_of(both(_LEAST).folder).benchmark["questions"]) if begun else _LEAST
    in_turn([settings("demo-all-live", every, models=model)] if live else
            [settings("demo", every, models=RECORDED), both(asked)], carry, json, fresh)


def _fitting(few: RunSettings) -> int:
    """Ask a few questions to see how many take `_SECONDS`; what was replied is not kept."""
    note(f"asking {', '.join(few.models)} {_TRIED} questions, to see how many take {_SECONDS} s")
    rates: list[float] = []  # cells a second, after each

    def record(one: Record) -> None:
        view.record(one)
        rates.append((view.tally and view.tally.rate()) or 0.0)

    with stoppable("the same command asks again"), RunView() as view:
        asyncio.run(run(few, RunCallbacks(view.stage, view.begun, record, view.note))).close()
    return int(_SECONDS * rates[-1] * _TRIED / len(rates))
