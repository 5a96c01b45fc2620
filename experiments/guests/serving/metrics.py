"""Figures of a server for Prometheus: what was asked of it and how that went. No label holds text of a request's."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbed.agents.types import Answer, GenerateStep, SearchStep

if TYPE_CHECKING:
    from ragbed.experiments.guests.serving.gate import Queue
    from ragbed.experiments.guests.serving.turns import Asked, Times

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)


class Metrics:
    """Counts what a server is asked and answers; one for each, for a process may have several."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("ragbed_requests", "Requests by route and status.", ("route", "status"),
                                registry=registry)
        self._answers = Counter("ragbed_answers", "Answers by how they ended.", ("configuration", "outcome"),
                                registry=registry)
        self._first = Histogram("ragbed_first_text_seconds", "From the question to the first text of its answer.",
                                ("configuration",), buckets=_SECONDS, registry=registry)
        self._whole = Histogram("ragbed_answer_seconds", "From the question to the end of its answer.",
                                ("configuration",), buckets=_SECONDS, registry=registry)
        self._tokens = Counter("ragbed_tokens", "Tokens of model calls; those cached are of the prompts.",
                               ("configuration", "kind"), registry=registry)
        self._price = Counter("ragbed_price_usd", "What model calls cost, where prices are known.",
                              ("configuration",), registry=registry)
        self._searches = Counter("ragbed_searches", "Searches.", ("configuration",), registry=registry)
        self._failures = Counter("ragbed_model_failures", "Model calls that failed.", ("configuration", "kind"),
                                 registry=registry)
        self._under_way = Gauge("ragbed_under_way", "Requests that are being answered.", registry=registry)
        self._waiting = Gauge("ragbed_waiting", "Requests that wait for their turn.", registry=registry)

    def follow(self, queue: Queue) -> None:
        """Show how many requests a queue has."""
        self._under_way.set_function(lambda: queue.under_way)
        self._waiting.set_function(lambda: queue.waiting)

    def __call__(self, asked: Asked, answer: Answer, times: Times) -> None:
        """Count an answer."""
        name, now = asked.configuration, time.time()
        self._answers.labels(name, answer.outcome).inc()
        self._whole.labels(name).observe(now - times.begun)
        if times.first is not None:
            self._first.labels(name).observe(times.first - times.begun)
        used = answer.used
        for kind, tokens in (("prompt", used.prompt_tokens), ("completion", used.completion_tokens),
                             ("cached", used.cached_tokens)):
            self._tokens.labels(name, kind).inc(tokens)
        self._price.labels(name).inc(used.price or 0.0)
        self._searches.labels(name).inc(sum(isinstance(step, SearchStep) for step in answer.trace))
        for step in answer.trace:
            if isinstance(step, GenerateStep) and step.failure is not None:
                self._failures.labels(name, step.failure.kind).inc()


class Counted:
    """ASGI middleware that counts requests by the route that took them, never by their path."""

    def __init__(self, app: ASGIApp, requests: Counter) -> None:
        self._app, self._requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 499  # until there is an answer: a client that goes away sees none

        async def counting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, counting)
        finally:
            self._requests.labels(getattr(scope.get("route"), "path", "other"), str(status)).inc()


def metrics_routes(metrics: Metrics) -> APIRouter:
    """Return the route that Prometheus reads."""
    router = APIRouter()

    @router.get("/metrics", response_class=Response)
    async def figures() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return router
