"""The demo: a recorded model's run, whose table stands at once, then a live model beside it over its first questions.

The recording is made by `bench/record_demo.py`, with the settings that stand here; it holds how many questions.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

from agents.recorded import recording_of
from experiments.settings import RunSettings
from experiments.settings.file import check_settings
from experiments.terminal.run import Put, carry_out, in_turn
from strategies.catalogue import CRESTS

RECORDED = "recorded:qwen2.5-coder-1.5b-instruct"
QUESTIONS: dict[str, Any] = {
    "reasoning": list(CRESTS), "conditions": "retrieved", "answer_formats": "tags",
    "include": [{"reasoning": ["direct", "chain_of_thought"], "conditions": ["gold", "closed-book"]}],
    "retriever": {"kind": "bm25", "k": 4, "build": {"embedder": "none"}}, "brief": True, "limits": {"max_tokens": 256}}
_LIVE: dict[str, Any] = {
    **QUESTIONS, "name": "demo-live", "benchmark": {"kind": "demo", "limit": 12}, "conditions": "retrieved",
    "reasoning": ["direct", "chain_of_thought"], "cell_limits": {"seconds": 60}}  # two minutes on two cores


def demo(model: str, out: Path, fresh: bool, live: bool, json: bool) -> None:
    """Carry out the recorded run, and one with both models; with `live` all that was recorded, asked of the model."""
    def settings(**more: Any) -> RunSettings:
        return check_settings({"out": str(out), **more}, "demo")

    def carry(one: RunSettings, put: Put) -> None:
        carry_out(one, fresh=fresh, json=json, put=put)

    every = {**QUESTIONS, "benchmark": {"kind": "demo", "limit": recording_of(RECORDED).questions}}
    if live:
        in_turn([settings(**every, name="demo-all-live", models=model)], carry, json, fresh)
        return
    both = [{"models": model, "answer_formats": "json"}]
    in_turn([settings(**every, name="demo", models=RECORDED), settings(**{
        **_LIVE, "models": RECORDED, "include": both})], carry, json, fresh)
