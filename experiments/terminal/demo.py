"""The demo: a recorded model's run at once, then a model that answers here, and a report with both."""
from __future__ import annotations

from strategies.catalogue import CRESTS

RECORDED_RUN = {
    "name": "demo", "benchmark": {"kind": "demo"}, "models": "recorded:qwen2.5-coder-1.5b-instruct",
    "reasoning": list(CRESTS), "conditions": ["retrieved", "gold", "closed-book"],
    "retriever": {"kind": "bm25", "k": 4, "build": {"embedder": "none"}}, "limits": {"max_tokens": 256},
    "brief": True,
}
