"""Middleware in front of all routes: keys, allowed hosts, rate limit, queue, body size, timeout, response headers."""
from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import re
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.operations.edge import route_path
from ragbed.experiments.guests.operations.request_log import current_request
from ragbed.experiments.guests.serving.api_keys import COOKIE, Keys
from ragbed.experiments.guests.serving.state import http_error, retry_later
from ragbed.experiments.guests.serving.supervisor import RATES, SharedNumbers

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                               "img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; "
                               "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff"}
_PUBLIC = re.compile(r"/|/health|/ready|/favicon\.ico|/assets/.*")  # need no key, because they reveal nothing
_UNLIMITED = {"/api/session", "/api/feedback"}  # POST routes that call no model
_BODY_SECONDS = 30.0  # seconds to wait for a request's body
_LOGIN_BYTES = 10_000  # maximum bytes of a request without a key
_BUSY_SECONDS = 5.0  # `Retry-After` when the queue is full
_POLL_SECONDS = 0.05  # seconds between looks whether another process has left a place
_PERIODS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


class Rate:
    """A rate limit per owner such as `60/minute`, as a token bucket. Raises SettingsError for any other text."""

    def __init__(self, text: str) -> None:
        found = re.fullmatch(r"([1-9]\d{0,8})/(second|minute|hour|day)", text)
        if not found:
            raise SettingsError(f"--rate {text!r:.40}: expected a number per second, minute, hour or day: 60/minute")
        self.text, self._count, self._interval = text, float(found[1]), _PERIODS[found[2]] / int(found[1])
        self.numbers = SharedNumbers()

    def wait(self, owner: str) -> float:
        """Count a request and return 0, or return the seconds until the owner may send the next one."""
        with self.numbers.locked():
            now = time.monotonic()  # the same clock in all processes
            left, at = self.numbers.read(RATES, owner) or (self._count, now)
            left = min(left + max(now - at, 0.0) / self._interval, self._count)
            self.numbers.write(RATES, owner, left - 1 if left >= 1 else left, now)
        return 0.0 if left >= 1 else (1 - left) * self._interval


class Queue:
    """Limits concurrent requests, and lets a bounded number of further requests wait.

    Attributes:
        running: number of requests that hold a place.
        waiting: number of requests that wait for a place.
        numbers: the same numbers of all processes, to which the limits apply; None if this one is alone.
    """

    def __init__(self, places: int, max_waiting: int, numbers: SharedNumbers | None = None) -> None:
        self.running = self.waiting = 0
        self._places, self._max_waiting, self._numbers = places, max_waiting, numbers
        self._turns: deque[asyncio.Future[None]] = deque()

    @contextlib.asynccontextmanager
    async def place(self, receive: Receive) -> AsyncIterator[bool]:
        """Hold a place; yield False if the client disconnected meanwhile. Raises HTTPException if the queue is full."""
        if self._enter():
            pass
        elif self._total()[1] >= self._max_waiting:
            raise retry_later("the server is busy; try again in a moment", "busy", _BUSY_SECONDS)
        elif not await self._wait(receive):
            yield False
            return
        try:
            yield True
        finally:
            self._leave()

    async def _wait(self, receive: Receive) -> bool:
        turn, gone = asyncio.get_running_loop().create_future(), asyncio.ensure_future(receive())
        began = time.monotonic()
        self._turns.append(turn)
        self._count(0, 1)
        taken = False
        try:
            while not await self._wait_once(turn, gone):
                if self._turns[0] is turn and self._enter(first=True):  # another process has left a place
                    self._turns.popleft().set_result(None)
            taken = turn.done() and not gone.done()
            return taken
        finally:
            self._count(0, -1)
            current_request().queue = time.monotonic() - began
            gone.cancel()
            if not turn.done():
                self._turns.remove(turn)
            elif not taken:
                self._leave()

    def _leave(self) -> None:
        """Give the place to the request that has waited longest, or free it, if only others' requests wait or this
        process holds more than half of the places."""
        greedy = self._numbers is not None and 2 * self.running > self._places and self._total()[1] > self.waiting
        if self._turns and not greedy:
            self._turns.popleft().set_result(None)
        else:
            self._count(-1, 0)

    def _enter(self, first: bool = False) -> bool:
        """Take a place if there is one, and nobody waits here, unless it is for the `first` who waits."""
        with self._numbers.locked() if self._numbers else contextlib.nullcontext():
            free = self._total()[0] < self._places and (first or not self._turns)
            if free:
                self._count(1, 0)
        return free

    async def _wait_once(self, turn: asyncio.Future[None], gone: asyncio.Future[Message]) -> bool:
        both: set[asyncio.Future[Any]] = {turn, gone}
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED,
                                     timeout=_POLL_SECONDS if self._numbers else None)
        return bool(done)

    def _count(self, running: int, waiting: int) -> None:
        self.running, self.waiting = self.running + running, self.waiting + waiting
        if self._numbers:
            self._numbers.put(self.running, self.waiting)

    def _total(self) -> tuple[int, int]:
        return self._numbers.total() if self._numbers else (self.running, self.waiting)


@dataclass(frozen=True)
class GateSettings:
    """Limits of a server; options of `ragbed serve`.

    Attributes:
        names: accepted Host names, in addition to addresses and `localhost`.
        rate: questions per key and time; a server without keys has no rate limit.
        concurrency: maximum number of answers at the same time.
        queue: maximum number of waiting requests; further ones get status 429.
        seconds: timeout of a request.
        body: maximum bytes of a request.
        bodies: maximum bytes of all requests that are arriving.
        connections: maximum number of open connections.
        grace: seconds that running answers have when the server stops.
        origins: other sites whose pages may send requests, with a key but without the cookie.
    """

    keys: Keys = field(default_factory=Keys)
    names: frozenset[str] = frozenset()
    rate: Rate = field(default_factory=lambda: Rate("60/minute"))
    concurrency: int = 64
    queue: int = 64
    seconds: float = 900.0
    body: int = 1_000_000
    bodies: int = 64_000_000
    connections: int = 1_000
    grace: float = 30.0
    origins: frozenset[str] = frozenset()


class RequestGate:
    """ASGI middleware in front of all routes. Its errors have the form of OpenAI's."""

    def __init__(self, app: ASGIApp, settings: GateSettings, queue: Queue) -> None:
        self._app, self._settings, self._queue, self._arriving = app, settings, queue, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _HeaderSender(send)
        try:
            async with asyncio.timeout(self._settings.seconds) as limit:
                await self._admit(scope, receive, answer)
        except HTTPException as error:
            await JSONResponse(error.detail, error.status_code, error.headers)(scope, receive, answer)
        except TimeoutError:
            if not limit.expired():
                raise
            late = http_error(504, f"no answer within {self._settings.seconds:g} seconds", "timeout")
            await answer.end(late, scope, receive)
        except asyncio.CancelledError:  # uvicorn cancels what is left after the grace
            stopped = http_error(503, "the server was stopped before the answer ended", "stopped")
            await answer.end(stopped, scope, receive)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self._check_origin(scope, headers)
        scope["state"] = {**scope.get("state", {}), "owner": self._owner(scope, headers)}
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        limited = route_path(scope) not in _UNLIMITED
        if limited and self._settings.keys and (wait := self._settings.rate.wait(scope["state"]["owner"])):
            raise retry_later(f"rate limit of this key: {self._settings.rate.text}", "rate_limit_exceeded", wait)
        most = self._settings.body if scope["state"]["owner"] or not self._settings.keys else _LOGIN_BYTES
        body = await self._body(headers, receive, most)
        if body is None:
            return
        async with self._queue.place(receive) if limited else contextlib.nullcontext(True) as connected:
            if connected:
                await self._app(scope, _replay(body, receive), send)

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Reject requests from other websites: those to an unknown host name, and those from another origin."""
        host = headers.get("host", "")
        name = _hostname(host)
        if not (name in self._settings.names or name == "localhost" or _is_address(name)):
            raise http_error(400, f"{name!r:.100} is not a name of this server; add it with `ragbed serve --name`",
                             "host")
        if scope["method"] in ("GET", "HEAD"):
            return
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if origin in self._settings.origins:
            return
        own = site in ("same-origin", "none") if site else origin is None or origin.partition("//")[2] == host
        if not own:
            raise http_error(403, "pages of other sites must not send requests", "cross_site")

    def _owner(self, scope: Scope, headers: Headers) -> str:
        keys = self._settings.keys
        if not keys:
            return ""
        kind, _, key = headers.get("authorization", "").partition(" ")
        owner = keys.login(key.strip(), (scope.get("client") or ("",))[0]) if kind.lower() == "bearer" else None
        foreign = headers.get("origin") in self._settings.origins  # a page of a named origin must send its own key
        if owner is None and not key and not foreign and (cookie := Request(scope).cookies.get(COOKIE)):
            owner = keys.session_owner(cookie)
        if owner is not None:
            return owner
        path = route_path(scope)
        if path == "/api/session" or (scope["method"] in ("GET", "HEAD") and _PUBLIC.fullmatch(path)):
            return ""
        error = http_error(401, "unknown key" if key else "send a key: Authorization: Bearer KEY", "invalid_api_key")
        error.headers = {"WWW-Authenticate": "Bearer"}
        raise error

    async def _body(self, headers: Headers, receive: Receive, max_bytes: int) -> bytes | None:
        """Read the body; None if the client disconnects meanwhile."""
        too_large = http_error(413, f"a request may have at most {max_bytes} bytes", "request_too_large")
        size = headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > max_bytes:
            raise too_large
        parts, length, more = [], 0, True
        try:  # what arrives too slowly, or with too much else, must not fill the memory
            async with asyncio.timeout(_BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    length += len(parts[-1])
                    self._arriving += len(parts[-1])
                    more = message.get("more_body", False)
                    if length > max_bytes:
                        raise too_large
                    if self._arriving > self._settings.bodies:
                        raise retry_later("too many long requests arrive at once", "busy", _BUSY_SECONDS)
        except TimeoutError:
            raise http_error(408, f"the request did not arrive within {_BODY_SECONDS:g} seconds",
                             "timeout") from None
        finally:
            self._arriving -= length
        return b"".join(parts)


class _HeaderSender:
    """Sends a response, with `HEADERS` unless the response sets a header of the same name."""

    def __init__(self, send: Send) -> None:
        self._send, self._kind = send, ""
        self._started = self._complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            self._started, self._kind = True, headers.get("content-type", "")
        else:
            self._complete = not message.get("more_body", False)
        await self._send(message)

    async def end(self, error: HTTPException, scope: Scope, receive: Receive) -> None:
        """Send an error, as the response or as the last event of a stream that has started. Any other response that has
        started is cut off."""
        if not self._started:
            await JSONResponse(error.detail, error.status_code)(scope, receive, self)
        elif not self._complete and self._kind.startswith("text/event-stream"):
            await self({"type": "http.response.body", "body": f"data: {json.dumps(error.detail)}\n\n".encode()})


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first returns a body that was already read, and then what arrives."""
    left = [body]

    async def give() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return give


def _hostname(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    """Tell whether a host is an IP address. Another website cannot make its own domain name pass for one."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
