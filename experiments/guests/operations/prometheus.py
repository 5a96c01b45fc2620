"""Prometheus metrics of a server: requests, answers, latency, tokens, price. Labels never contain text of requests."""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.responses import Response

from ragbed.agents.types import Answer, GenerateStep, SearchStep, ToolStep
from ragbed.experiments.guests.operations.request_log import outcome_of

if TYPE_CHECKING:
    from ragbed.experiments.guests.operations.turn_times import TurnTimes
    from ragbed.experiments.guests.traffic.turns import ChatTurn
    from ragbed.strategies.types import ToolSpec

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)


class Metrics:
    """Metrics of one server. A process may have several servers."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("ragbed_requests", "Requests by route and status.", ("route", "status"),
                                registry=registry)
        self.unknown_keys = Counter("ragbed_unknown_keys", "Unknown keys that clients sent.", registry=registry)
        self._answers = Counter("ragbed_answers", "Answers by outcome.", ("configuration", "outcome"),
                                registry=registry)
        self._first = Histogram("ragbed_first_text_seconds", "Time from the question to the first text of its answer.",
                                ("configuration",), buckets=_SECONDS, registry=registry)
        self._whole = Histogram("ragbed_answer_seconds", "Time from the question to the end of its answer.",
                                ("configuration",), buckets=_SECONDS, registry=registry)
        self._tokens = Counter("ragbed_tokens", "Tokens of model calls; cached tokens are part of the prompt tokens.",
                               ("configuration", "kind"), registry=registry)
        self._price = Counter("ragbed_price_usd", "Price of model calls whose price is known.",
                              ("configuration",), registry=registry)
        self._unpriced = Counter("ragbed_unpriced_answers", "Answers whose price is unknown, and not in the total.",
                                 ("configuration",), registry=registry)
        self._stored = Counter("ragbed_cached_answers", "Answers from the answer cache.", ("configuration",),
                               registry=registry)
        self._fallbacks = Counter("ragbed_fallback_answers", "Answers of the fallback model.", ("configuration",),
                                  registry=registry)
        self._tools = Counter("ragbed_tool_calls", "Calls of tools by agents and MCP clients.", ("tool", "outcome"),
                              registry=registry)
        self._searches = Counter("ragbed_searches", "Searches.", ("configuration",), registry=registry)
        self._failures = Counter("ragbed_model_failures", "Model calls that failed.", ("configuration", "kind"),
                                 registry=registry)
        self._running = Gauge("ragbed_running", "Requests that are being answered now.", registry=registry)
        self._waiting = Gauge("ragbed_waiting", "Requests that are waiting in the queue.", registry=registry)

    def watch_queue(self, running: Callable[[], int], waiting: Callable[[], int]) -> None:
        """Report how many requests of a queue run and wait. Each function returns its number now."""
        self._running.set_function(running)
        self._waiting.set_function(waiting)

    def __call__(self, turn: ChatTurn, answer: Answer, times: TurnTimes) -> None:
        """Count an answer, its tokens and its price."""
        name, now = turn.configuration, time.time()
        self._answers.labels(name, "left" if outcome_of(answer) == "left" else answer.outcome).inc()
        self._whole.labels(name).observe(now - times.started)
        if times.first_text is not None:
            self._first.labels(name).observe(times.first_text - times.started)
        used = answer.used
        for kind, tokens in (("prompt", used.prompt_tokens), ("completion", used.completion_tokens),
                             ("cached", used.cached_tokens)):
            self._tokens.labels(name, kind).inc(tokens)
        if used.price is None:
            self._unpriced.labels(name).inc()
        else:
            self._price.labels(name).inc(used.price)
        for note, counter in (("cached", self._stored), ("fallback", self._fallbacks)):
            counter.labels(name).inc(note in answer.notes)
        self._searches.labels(name).inc(sum(isinstance(step, SearchStep) for step in answer.trace))
        for step in answer.trace:
            if isinstance(step, GenerateStep) and step.failure is not None:
                self._failures.labels(name, step.failure.kind).inc()
            elif isinstance(step, ToolStep):
                known = turn.assistant.tools.specs if turn.assistant.tools else ()
                self.count_tool(tool_label(step.tool, known), step.failure is not None)

    def count_tool(self, tool: str, failed: bool) -> None:
        """Count a call of a tool, whose name must not come from a client or a model."""
        self._tools.labels(tool, "failed" if failed else "done").inc()


def tool_label(tool: str, known: Iterable[ToolSpec]) -> str:
    """Return the name of a known tool; `unknown` for names that a model or a client made up."""
    return tool if any(one.name == tool for one in known) else "unknown"


def metrics_routes(metrics: Metrics) -> APIRouter:
    """Return the route that Prometheus scrapes."""
    router = APIRouter()

    @router.get("/metrics", response_class=Response)
    async def scrape() -> Response:
        registry = metrics.registry
        if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):  # of `--workers`: the sums over all processes
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router
