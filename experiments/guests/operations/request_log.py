"""Write one line for each request, as text or JSON: who asked what kind of thing, how it ended, and what it cost.

A line has no text of a question or an answer unless `texts` is set. All values are bounded and escaped, so a request
cannot write a line of its own. Successful requests for assets, health and metrics are left out, and so are all but a
few per second of those that were rejected before they were admitted.
"""
from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbed.agents.types import Answer
from ragbed.documents.http import SENT_ON
from ragbed.documents.keys import redact_keys
from ragbed.experiments.guests.operations.edge import LogStyle, route_path
from ragbed.experiments.guests.operations.trace_context import TraceContext

if TYPE_CHECKING:
    from prometheus_client import Counter

    from ragbed.experiments.guests.operations.turn_times import TurnTimes
    from ragbed.experiments.guests.traffic.turns import ChatTurn

Outcome = Literal["answered", "refused", "failed", "left"]
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_PLAIN = re.compile(r"[\w.:/{}@+-]+", re.ASCII)  # values that need no quotes in a line of text
_QUIET = re.compile(r"/(health|ready|metrics|assets(/.*)?|favicon\.ico)")
_MAX_TEXT = 2_000  # characters of a question, an answer or a failure
_REJECTED = frozenset((400, 401, 403, 404, 405, 408, 413, 429))
_REJECTED_LINES = 10.0  # per second
_LEFT = 499  # status of a request whose client disconnected before the response


@dataclass(slots=True)
class RequestNote:
    """What the parts of the server note about a request while they handle it.

    Attributes:
        id: the client's `X-Request-Id`, or a new one.
        trace: the client's trace; None if there is none and no traces are sent.
        fresh: whether the client does not want a cached answer.
        left: whether the client disconnected before the end of the response.
        queue: seconds in the queue.
        outcome: how the question ended; None without a question, or while it is being answered.
        answer: further fields of the line: what the answer took and cost.
    """

    id: str
    trace: TraceContext | None = None
    fresh: bool = False
    left: bool = False
    queue: float = 0.0
    outcome: Outcome | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)


_CURRENT: ContextVar[RequestNote | None] = ContextVar("ragbed_request", default=None)


def current_request() -> RequestNote:
    """Return the note of the request that is being handled; a new one outside of requests, as with MCP over stdio."""
    return _CURRENT.get() or RequestNote("")


def outcome_of(answer: Answer) -> Outcome:
    """Return how an answer ended, as a line of the log and metrics say it. A client that leaves is not a failure."""
    if answer.failure is not None and answer.failure.kind == "stopped" and current_request().left:
        return "left"
    return answer.outcome if answer.outcome in ("answered", "refused") else "failed"


def note_answer(texts: bool) -> Callable[[ChatTurn, Answer, TurnTimes], None]:
    """Return an observer of answers that notes each for the line of its request."""

    def note(turn: ChatTurn, answer: Answer, times: TurnTimes) -> None:
        now, used, request = time.time(), answer.used, current_request()
        request.outcome = outcome_of(answer)
        first = None if times.first_text is None else round(times.first_text - times.started, 3)
        failure = answer.failure and redact_keys(f"{answer.failure.kind}: {answer.failure.message}")
        request.answer = {
            "configuration": turn.configuration, "model": turn.assistant.client.name, "record": turn.record,
            **{name: True for name in ("cached", "fallback") if name in answer.notes},
            "search": _seconds(times.searches, now), "model_seconds": _seconds(list(times.calls.values()), now),
            "first_text": first, "prompt_tokens": used.prompt_tokens, "completion_tokens": used.completion_tokens,
            "price": used.price, **({"failure": failure[:_MAX_TEXT]} if failure else {}),
            **({"question": turn.question[:_MAX_TEXT], "text": answer.text[:_MAX_TEXT]} if texts else {})}

    return note


def _seconds(spans: Sequence[Sequence[float]], now: float) -> float:
    """Return the seconds that at least one of the spans covers. A span without an end lasts until now."""
    total, until = 0.0, 0.0
    for start, end in sorted((span[0], span[1] if len(span) > 1 else now) for span in spans):
        total += max(end - max(start, until), 0.0)
        until = max(until, end)
    return round(total, 3)


class RequestLog:
    """ASGI middleware around all others: gives each request an id, continues its trace, counts it by route, and writes
    its line. `tracing` starts a trace for requests without one."""

    def __init__(self, app: ASGIApp, requests: Counter, style: LogStyle = "off", tracing: bool = False,
                 write: Callable[[str], object] | None = None) -> None:
        self._app, self._requests, self._style, self._tracing = app, requests, style, tracing
        self._write = write or _write_line
        self._room, self._at, self._left_out = _REJECTED_LINES, time.monotonic(), 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        ids = headers.getlist("x-request-id")
        note = RequestNote(ids[0] if len(ids) == 1 and _ID.fullmatch(ids[0]) else uuid4().hex,
                           TraceContext.read(headers) or (TraceContext.start() if self._tracing else None),
                           "no-cache" in headers.get("cache-control", ""))
        tokens = _CURRENT.set(note), SENT_ON.set(note.trace.headers if note.trace else {})
        started, status, complete, path = time.monotonic(), 0, False, route_path(scope)
        failed = True

        async def receiving() -> Message:
            message = await receive()
            note.left = note.left or (message["type"] == "http.disconnect" and not complete)
            return message

        async def sending(message: Message) -> None:
            nonlocal status, complete
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = note.id
            elif message["type"] == "http.response.body":
                complete = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receiving, sending)
            failed = False
        finally:
            status = status or (500 if failed and not note.left else _LEFT)
            _CURRENT.reset(tokens[0])
            SENT_ON.reset(tokens[1])
            self._requests.labels(_route(scope), str(status)).inc()
            if self._style != "off" and not (status < 400 and _QUIET.fullmatch(path)):
                self._log(scope, note, status, time.monotonic() - started)

    def _log(self, scope: Scope, note: RequestNote, status: int, seconds: float) -> None:
        route, owner = _route(scope), scope.get("state", {}).get("owner")
        outcome = "left" if note.left or status == _LEFT else note.outcome or ("failed" if status >= 500 else None)
        if status in _REJECTED and not owner and not self._has_room():
            self._left_out += 1
            return
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "request": note.id, "key": owner,
                "method": scope["method"][:20], "route": route, "status": status, "outcome": outcome,
                "seconds": round(seconds, 3), "queue": round(note.queue, 3), **note.answer,
                **({"trace": note.trace.trace} if note.trace else {}),
                **({"left_out": self._left_out} if self._left_out else {})}
        self._left_out = 0
        self._write(json.dumps(line) if self._style == "json" else _text_line(line))

    def _has_room(self) -> bool:
        now = time.monotonic()
        self._room, self._at = min(self._room + (now - self._at) * _REJECTED_LINES, _REJECTED_LINES), now
        if self._room < 1:
            return False
        self._room -= 1
        return True


def _route(scope: Scope) -> str:
    """Return the route's template, which has no text of the request."""
    return str(getattr(scope.get("route"), "path", "") or "other")


def _text_line(line: Mapping[str, Any]) -> str:
    """Return a line for people: NAME=VALUE, with JSON strings for values that are not plain words."""
    first = f"{line['time']} {line['method']} {line['route']} {line['status']} {line['outcome'] or '-'}"
    rest = {name: "unknown" if name == "price" and value is None else value for name, value in line.items()
            if name not in ("time", "method", "route", "status", "outcome")}
    return " ".join([first, *(f"{name}={_quoted(value)}" for name, value in rest.items() if value not in (None, ""))])


def _quoted(value: Any) -> str:
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else json.dumps(value)


def _write_line(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
