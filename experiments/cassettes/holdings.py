"""What a cassette holds, counted."""
from __future__ import annotations

from typing import Any

from agents.cassette_lines import Call
from experiments.cassettes.replay import Replay
from strategies.types import Usage


def holdings(replay: Replay) -> dict[str, Any]:
    """The run that a cassette is of, and how much it holds; the price is as if its calls were made now."""
    used, failed = Usage(), 0
    for line in replay.cassette.lines():
        if isinstance(line, Call):
            failed += line.failure is not None
            used += line.reply.usage if line.reply is not None else Usage()
    about, counts = replay.about, replay.cassette.counts
    return {"file": str(replay.path), "bytes": replay.path.stat().st_size, "ragbed": replay.cassette.ragbed,
            "run": about.name, "benchmark": about.benchmark.name, "questions": about.benchmark.questions,
            "models": about.models, "cells": about.cells, "calls": counts.get("calls", 0), "failed": failed,
            "searches": counts.get("searches", 0), "texts": counts.get("texts", 0),
            "tokens": {"prompt": used.prompt_tokens, "cached": used.cached_tokens,
                       "completion": used.completion_tokens},
            "price": None if used.price is None else round(used.price, 8), "results": about.results}
