"""OpenTelemetry traces of answers, sent only if OTEL_EXPORTER_OTLP_ENDPOINT is set.

Each answer is one trace: a span `invoke_agent` with a span `retrieval` for each search, `chat` for each model call, and
`execute_tool` for each call of a tool. It continues the trace of the client's `traceparent`, and the model's server
gets the id of `invoke_agent` as the parent of its own spans. Attribute names follow OpenTelemetry's semantic
conventions for generative AI, v0.1.0; names that it lacks begin with `ragbed.`. Texts of prompts, queries and replies
are included only if
OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is `true`, `span_only` or `span_and_event`.
"""
from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ragbed.agents.types import Answer, GenerateStep, SearchStep, ToolStep
from ragbed.documents.errors import MissingExtra
from ragbed.experiments.guests.operations.prometheus import tool_label
from ragbed.experiments.guests.operations.request_log import current_request, outcome_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

    from ragbed.experiments.guests.operations.trace_context import TraceContext
    from ragbed.experiments.guests.operations.turn_times import TurnTimes
    from ragbed.experiments.guests.traffic.turns import ChatTurn

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURED = {"true", "span_only", "span_and_event"}


def is_tracing() -> bool:
    """Tell whether traces are sent."""
    return any(map(os.environ.get, _ENDPOINTS))


@contextlib.contextmanager
def open_telemetry() -> Iterator[Sequence[Telemetry]]:
    """Yield the observer that sends traces, or nothing if no endpoint is set; flush at the end. Raises MissingExtra if
    the packages are not installed."""
    if not is_tracing():
        yield ()
        return
    if find_spec("opentelemetry.exporter") is None or find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        raise MissingExtra("opentelemetry-exporter-otlp-proto-http", "telemetry")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = {} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "ragbed"}
    ids = _request_ids()
    provider = TracerProvider(resource=Resource.create(name), shutdown_on_exit=False, id_generator=ids)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield [Telemetry(provider, ids, os.environ.get(_CONTENT, "").lower() in _CAPTURED)]
    finally:
        provider.shutdown()


class Telemetry:
    """Sends a trace of each answer after the answer has ended, so that the client does not wait for it."""

    def __init__(self, provider: TracerProvider, ids: Any, content: bool) -> None:
        self._tracer, self._ids, self._content = provider.get_tracer("ragbed"), ids, content

    def __call__(self, turn: ChatTurn, answer: Answer, times: TurnTimes) -> None:
        from opentelemetry.trace import set_span_in_context

        assistant, used, left = turn.assistant, answer.used, outcome_of(answer) == "left"
        trace = current_request().trace
        self._ids.of(trace)
        root = self._start(f"invoke_agent {turn.configuration}", [times.started], {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": turn.configuration,
            "gen_ai.provider.name": "ragbed", "gen_ai.conversation.id": turn.thread,
            "gen_ai.request.model": assistant.client.name, "gen_ai.usage.input_tokens": used.prompt_tokens,
            "gen_ai.usage.output_tokens": used.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": used.cached_tokens,
            "ragbed.record": turn.record, "ragbed.calls": used.calls,
            "ragbed.outcome": "left" if left else answer.outcome,
            **({} if used.price is None else {"ragbed.price_usd": used.price}),
            **_messages(self._content, [("user", turn.question)], answer.text)}, _remote_parent(trace))
        if times.first_text is not None:
            root.add_event("ragbed.first_text", timestamp=_nanoseconds(times.first_text))
        parent = set_span_in_context(root)
        searches = [step for step in answer.trace if isinstance(step, SearchStep)]
        calls = [step for step in answer.trace if isinstance(step, GenerateStep)]
        tools = [step for step in answer.trace if isinstance(step, ToolStep)]
        for search, at in zip(searches, times.searches, strict=False):
            self._search(search, at, assistant.index.content, parent)
        for tool, at in zip(tools, times.tools, strict=False):
            name = tool_label(tool.tool, assistant.tools.specs if assistant.tools else ())
            span = self._start(f"execute_tool {name}", at, {
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "ragbed.found": len(tool.found)},
                parent)
            _end(span, at, tool.failure.kind if tool.failure else None)
        for number, call in enumerate(calls, 1):
            if number in times.calls:
                self._call(call, times.calls[number], assistant.client.name, parent)
        _end(root, [], answer.failure.kind if answer.failure and not left else None)

    def _search(self, step: SearchStep, at: Sequence[float], index: str, parent: Any) -> None:
        query = {"gen_ai.retrieval.query.text": step.query} if self._content else {}
        span = self._start("retrieval", at, {
            "gen_ai.operation.name": "retrieval", "gen_ai.provider.name": "ragbed", "gen_ai.data_source.id": index,
            "ragbed.found": len(step.found), **query}, parent)
        _end(span, at, step.failure.kind if step.failure else None)

    def _call(self, step: GenerateStep, at: Sequence[float], model: str, parent: Any) -> None:
        span = self._start(f"chat {model}", at, {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": step.usage.prompt_tokens,
            "gen_ai.usage.output_tokens": step.usage.completion_tokens,
            "gen_ai.usage.cache_read.input_tokens": step.usage.cached_tokens,
            "gen_ai.response.finish_reasons": [step.finish_reason] if step.finish_reason else [],
            "ragbed.purpose": step.purpose,
            **_messages(self._content, [(one.role, one.content) for one in step.messages], step.text)}, parent)
        _end(span, at, step.failure.kind if step.failure else None)

    def _start(self, name: str, at: Sequence[float], attributes: Mapping[str, Any], parent: Any = None) -> Span:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind

        kind = SpanKind.CLIENT if name.startswith(("chat ", "retrieval")) else SpanKind.INTERNAL
        return self._tracer.start_span(name, parent or Context(), kind, attributes, start_time=_nanoseconds(at[0]))


def _request_ids() -> Any:
    """Return a generator of ids that gives the first span of an answer the id that the model's server was sent."""
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class RequestIds(RandomIdGenerator):
        def of(self, trace: TraceContext | None) -> None:
            self._trace = self._span = trace

        def generate_trace_id(self) -> int:
            trace, self._trace = self._trace, None
            return int(trace.trace, 16) if trace else super().generate_trace_id()

        def generate_span_id(self) -> int:
            trace, self._span = self._span, None
            return int(trace.span, 16) if trace else super().generate_span_id()

    return RequestIds()


def _remote_parent(trace: TraceContext | None) -> Any:
    """Return the context of the client's span; None if the trace starts here."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState, set_span_in_context

    return set_span_in_context(NonRecordingSpan(SpanContext(
        int(trace.trace, 16), int(trace.parent, 16), True, TraceFlags(int(trace.sampled)),
        TraceState.from_header([trace.state])))) if trace and trace.parent else None


def _end(span: Span, at: Sequence[float], failure: str | None) -> None:
    from opentelemetry.trace import StatusCode

    if failure is not None:
        span.set_attribute("error.type", failure)
        span.set_status(StatusCode.ERROR)
    span.end(_nanoseconds(at[1]) if len(at) > 1 else None)


def _messages(content: bool, prompt: Sequence[tuple[str, str]], reply: str) -> dict[str, str]:
    """Return the messages and the reply in the form of OpenTelemetry's conventions."""
    if not content:
        return {}
    sent = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in prompt]
    came = [{"role": "assistant", "parts": [{"type": "text", "content": reply}], "finish_reason": "stop"}]
    return {"gen_ai.input.messages": json.dumps(sent), "gen_ai.output.messages": json.dumps(came)}


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
