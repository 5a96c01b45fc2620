"""The gate of a server: who may ask, from where, how often, how much at a time, and how many at once."""
from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import math
import re
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.serving.keys import COOKIE, Keys
from ragbed.experiments.guests.serving.state import refused

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                               "img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; "
                               "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff"}
_OPEN = re.compile(r"/|/health|/favicon\.ico|/assets/.*")  # what may be read without a key: it says nothing
_FREE = {"/api/session", "/api/feedback"}  # posts that ask no model
_BODY_SECONDS = 30.0  # for a request's body to come in whole
_LATER = 5.0  # seconds after which a client that found the queue full may try again
_PER = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


class Rate:
    """So many requests for each owner in so long, such as `60/minute`, as a bucket that fills evenly. Raises
    SettingsError where the text says no rate."""

    def __init__(self, text: str) -> None:
        found = re.fullmatch(r"([1-9]\d{0,8})/(second|minute|hour|day)", text)
        if not found:
            raise SettingsError(f"--rate {text!r:.40}: expected a number per second, minute, hour or day: 60/minute")
        self.text, self._count, self._every = text, float(found[1]), _PER[found[2]] / int(found[1])
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, owner: str) -> float:
        """Count a request; where the owner has none left, return the seconds until the next."""
        now = time.monotonic()
        left, at = self._buckets.get(owner, (self._count, now))
        left = min(left + (now - at) / self._every, self._count)
        self._buckets[owner] = (left - 1 if left >= 1 else left), now
        return 0.0 if left >= 1 else (1 - left) * self._every


class Queue:
    """Places for requests under way, and a bounded queue for one.

    Attributes:
        under_way: how many have a place now.
        waiting: how many wait for one.
    """

    def __init__(self, places: int, most_waiting: int) -> None:
        self.under_way = self.waiting = 0
        self._places, self._most_waiting = places, most_waiting
        self._turns: deque[asyncio.Future[None]] = deque()

    @contextlib.asynccontextmanager
    async def place(self, receive: Receive) -> AsyncIterator[bool]:
        """Hold a place; yields False where the client went away before there was one. Refuses whom the queue has no
        room for."""
        if self.under_way < self._places:
            self.under_way += 1
        elif self.waiting >= self._most_waiting:
            raise _later("the server is busy; try again in a moment", "busy", _LATER)
        elif not await self._wait(receive):
            yield False
            return
        try:
            yield True
        finally:
            self._leave()

    async def _wait(self, receive: Receive) -> bool:
        turn, gone = asyncio.get_running_loop().create_future(), asyncio.ensure_future(receive())
        self._turns.append(turn)
        self.waiting += 1
        taken = False
        try:
            await asyncio.wait({turn, gone}, return_when=asyncio.FIRST_COMPLETED)
            taken = turn.done() and not gone.done()
            return taken
        finally:
            self.waiting -= 1
            gone.cancel()
            if not turn.done():
                self._turns.remove(turn)
            elif not taken:
                self._leave()

    def _leave(self) -> None:
        """Hand the place on to who waits longest, else give it back."""
        if self._turns:
            self._turns.popleft().set_result(None)
        else:
            self.under_way -= 1


@dataclass(frozen=True)
class GateSettings:
    """Settings of a gate; the options of `ragbed serve`.

    Attributes:
        names: of the server, which requests may have as Host, beside its addresses and those of this machine.
        rate: of questions for each key; a server without keys has none.
        concurrency: answers under way at once.
        queue: requests that wait for a place; the next is told to come later.
        seconds: that a request may take.
        body: bytes that a request may have.
    """

    keys: Keys = field(default_factory=Keys)
    names: frozenset[str] = frozenset()
    rate: Rate = field(default_factory=lambda: Rate("60/minute"))
    concurrency: int = 64
    queue: int = 64
    seconds: float = 900.0
    body: int = 1_000_000


class RequestGate:
    """ASGI middleware in front of all routes; what it refuses has the form of OpenAI's errors."""

    def __init__(self, app: ASGIApp, settings: GateSettings, queue: Queue) -> None:
        self._app, self._settings, self._queue = app, settings, queue

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Headed(send)
        try:
            async with asyncio.timeout(self._settings.seconds) as limit:
                await self._admit(scope, receive, answer)
        except HTTPException as error:
            await JSONResponse(error.detail, error.status_code, error.headers)(scope, receive, answer)
        except TimeoutError:
            if not limit.expired():
                raise
            late = refused(504, f"no answer within {self._settings.seconds:g} seconds", "timeout")
            await answer.end(late, scope, receive)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self._check_place(scope, headers)
        scope["state"] = {**scope.get("state", {}), "owner": self._owner(scope, headers)}
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        asks = scope["path"] not in _FREE
        if asks and self._settings.keys and (wait := self._settings.rate.wait(scope["state"]["owner"])):
            raise _later(f"this key may ask {self._settings.rate.text}", "rate_limit_exceeded", wait)
        body = await self._body(headers, receive, self._settings.body)
        if body is None:
            return
        async with self._queue.place(receive) if asks else contextlib.nullcontext(True) as here:
            if here:
                await self._app(scope, _again(body, receive), send)

    def _check_place(self, scope: Scope, headers: Headers) -> None:
        """Refuse what a page of another site sends: through a name of its own that leads here, or from where it is."""
        host = headers.get("host", "")
        name = _hostname(host)
        if not (name in self._settings.names or name == "localhost" or _is_address(name)):
            raise refused(400, f"{name!r:.100} is no name of this server; `ragbed serve --name` adds one", "host")
        if scope["method"] in ("GET", "HEAD"):
            return
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        own = site in ("same-origin", "none") if site else origin is None or origin.partition("//")[2] == host
        if not own:
            raise refused(403, "pages of other sites may not ask", "cross_site")

    def _owner(self, scope: Scope, headers: Headers) -> str:
        keys = self._settings.keys
        if not keys:
            return ""
        kind, _, key = headers.get("authorization", "").partition(" ")
        owner = keys.owner(key.strip()) if kind.lower() == "bearer" else None
        if owner is None and not key and (cookie := Request(scope).cookies.get(COOKIE)):
            owner = keys.of_session(cookie)
        if owner is not None:
            return owner
        if scope["path"] == "/api/session" or (scope["method"] in ("GET", "HEAD") and _OPEN.fullmatch(scope["path"])):
            return ""
        error = refused(401, "no such key" if key else "send a key: Authorization: Bearer KEY", "invalid_api_key")
        error.headers = {"WWW-Authenticate": "Bearer"}
        raise error

    async def _body(self, headers: Headers, receive: Receive, most: int) -> bytes | None:
        """Read a request's body; None where the client goes away meanwhile."""
        too_large = refused(413, f"a request may have {most} bytes", "request_too_large")
        size = headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > most:
            raise too_large
        parts, length, more = [], 0, True
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    length += len(parts[-1])
                    more = message.get("more_body", False)
                    if length > most:
                        raise too_large
        except TimeoutError:
            raise refused(408, f"the request did not come in within {_BODY_SECONDS:g} seconds", "timeout") from None
        return b"".join(parts)


class _Headed:
    """Sends an answer with the headers that every one has which sets none of that name itself."""

    def __init__(self, send: Send) -> None:
        self._send, self._kind = send, ""
        self._begun = self._whole = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            self._begun, self._kind = True, headers.get("content-type", "")
        else:
            self._whole = not message.get("more_body", False)
        await self._send(message)

    async def end(self, error: HTTPException, scope: Scope, receive: Receive) -> None:
        """Answer with an error; a stream that has begun ends with it, anything else that has begun is broken off."""
        if not self._begun:
            await JSONResponse(error.detail, error.status_code)(scope, receive, self)
        elif not self._whole and self._kind.startswith("text/event-stream"):
            await self({"type": "http.response.body", "body": f"data: {json.dumps(error.detail)}\n\n".encode()})


def _again(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read once more; after it, what comes."""
    left = [body]

    async def give() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return give


def _later(message: str, code: str, seconds: float) -> HTTPException:
    error = refused(429, message, code)
    error.headers = {"Retry-After": str(math.ceil(seconds))}
    return error


def _hostname(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    """Say whether a host is an address: no site of others can make its own name lead here by it."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
