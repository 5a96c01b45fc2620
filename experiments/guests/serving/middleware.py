"""Middleware in front of all routes: keys, allowed hosts, rate limit, queue, body size, timeout, response headers."""
from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import ipaddress
import json
import math
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import ConfigDict, Field
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbed.documents.errors import SettingsError
from ragbed.experiments.guests.access.key_claims import KEY_ENDS, Claims, read_claims, split_key_line
from ragbed.experiments.guests.operations.request_log import current_request
from ragbed.experiments.guests.serving.state import RequestModel, http_error

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                               "img-src 'self' data:; frame-src 'self'; base-uri 'none'; form-action 'none'; "
                               "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff"}
COOKIE = "ragbed_session"
_SESSION_SECONDS = 12 * 3600  # seconds a cookie is valid
_MIN_KEY_LENGTH = 16
_PUBLIC = re.compile(r"/|/health|/ready|/favicon\.ico|/assets/.*")  # need no key, because they reveal nothing
_UNLIMITED = {"/api/session", "/api/feedback"}  # POST routes that call no model
_BODY_SECONDS = 30.0  # seconds to wait for a request's body
_BUSY_SECONDS = 5.0  # `Retry-After` when the queue is full
_PERIODS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


class Keys:
    """Keys of a server, with their owners and the claims of these. Only hashes are kept, compared in constant time."""

    def __init__(self, lines: Iterable[str] = (), where: str = "keys") -> None:
        self._hashes: dict[str, bytes] = {}
        self.owners: dict[str, Claims] = {}
        self._secret = secrets.token_bytes(32)
        for number, line in enumerate(lines, 1):
            if (found := line.strip()) and not found.startswith("#"):
                self._add(found, f"{where}, line {number}")

    @classmethod
    def read(cls, path: Path | None, environment: str | None) -> Keys:
        """Read keys from a file, or from the value of RAGBED_KEYS if there is no file.

        A line holds a name, a key or `sha256:` and the hash of one, and claims such as `groups=finance,hr`; or all as a
        JSON object, with `name` and `key`. Raises SettingsError for any other line."""
        if path is None:
            return cls(KEY_ENDS.split(environment or ""), "RAGBED_KEYS")
        try:
            keys = cls(path.read_text(encoding="utf-8").splitlines(), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"--keys {path}: cannot be read: {getattr(error, 'strerror', error)}") from error
        if not keys:
            raise SettingsError(f"--keys {path}: holds no key; write one line per owner, with a name and a key")
        return keys

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def claims(self, owner: str) -> Claims:
        """Return the claims of an owner; none if the owner is unknown."""
        return self.owners.get(owner, {})

    def owner(self, key: str) -> str | None:
        """Return the owner of a key; None if it is unknown."""
        given, found = hashlib.sha256(key.encode("utf-8", "replace")).digest(), None
        for name, hash in self._hashes.items():  # compare all keys, so that the time taken reveals nothing
            if hmac.compare_digest(given, hash):
                found = name
        return found

    def create_session(self, owner: str) -> str:
        """Return a cookie that replaces an owner's key until it expires or the server stops."""
        content = f"{owner} {int(time.time()) + _SESSION_SECONDS}".encode()
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=")
                        for part in (content, self._sign(content)))

    def session_owner(self, cookie: str) -> str | None:
        """Return the owner of a cookie; None if this server did not sign it, or it has expired."""
        try:
            content, sign = (base64.urlsafe_b64decode(f"{part}{'=' * (-len(part) % 4)}") for part in cookie.split("."))
        except ValueError:
            return None
        if not hmac.compare_digest(self._sign(content), sign):
            return None
        owner, end = content.decode().split(" ")
        return owner if float(end) > time.time() else None

    def _sign(self, content: bytes) -> bytes:
        return hmac.digest(self._secret, content, "sha256")

    def _add(self, line: str, where: str) -> None:
        name, key, claims = split_key_line(line)
        if not re.fullmatch(r"[A-Za-z0-9_.@-]{1,64}", name) or name in self._hashes:
            raise SettingsError(f"{where}: expected a unique name and a key, separated by a space")
        self.owners[name] = read_claims(name, claims, where)
        if key.startswith("sha256:"):
            if not re.fullmatch(r"sha256:[0-9a-f]{64}", key):
                raise SettingsError(f"{where}: expected 64 hexadecimal digits after sha256:")
            self._hashes[name] = bytes.fromhex(key[7:])
        elif len(key) < _MIN_KEY_LENGTH:
            raise SettingsError(f"{where}: a key needs at least {_MIN_KEY_LENGTH} characters")
        else:
            self._hashes[name] = hashlib.sha256(key.encode()).digest()


class SessionRequest(RequestModel):
    """A key to exchange for a cookie."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(max_length=1_000)


def session_routes(keys: Keys) -> APIRouter:
    """Return the route that sets a cookie. The page's frames and images need it, because they cannot send a header."""
    router = APIRouter()

    @router.post("/api/session")
    async def session(given: SessionRequest, request: Request) -> JSONResponse:
        owner = keys.owner(given.key) if keys else ""
        if owner is None:
            raise http_error(401, "unknown key", "invalid_api_key")
        answer = JSONResponse({"owner": owner})
        if keys:
            answer.set_cookie(COOKIE, keys.create_session(owner), _SESSION_SECONDS, httponly=True, samesite="strict",
                              secure=request.url.scheme == "https")
        return answer

    return router


class Rate:
    """A rate limit per owner such as `60/minute`, as a token bucket. Raises SettingsError for any other text."""

    def __init__(self, text: str) -> None:
        found = re.fullmatch(r"([1-9]\d{0,8})/(second|minute|hour|day)", text)
        if not found:
            raise SettingsError(f"--rate {text!r:.40}: expected a number per second, minute, hour or day: 60/minute")
        self.text, self._count, self._interval = text, float(found[1]), _PERIODS[found[2]] / int(found[1])
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, owner: str) -> float:
        """Count a request and return 0, or return the seconds until the owner may send the next one."""
        now = time.monotonic()
        left, at = self._buckets.get(owner, (self._count, now))
        left = min(left + (now - at) / self._interval, self._count)
        self._buckets[owner] = (left - 1 if left >= 1 else left), now
        return 0.0 if left >= 1 else (1 - left) * self._interval


class Queue:
    """Limits concurrent requests, and lets a bounded number of further requests wait.

    Attributes:
        running: number of requests that hold a place.
        waiting: number of requests that wait for a place.
    """

    def __init__(self, places: int, max_waiting: int) -> None:
        self.running = self.waiting = 0
        self._places, self._max_waiting = places, max_waiting
        self._turns: deque[asyncio.Future[None]] = deque()

    @contextlib.asynccontextmanager
    async def place(self, receive: Receive) -> AsyncIterator[bool]:
        """Hold a place; yield False if the client disconnected meanwhile. Raises HTTPException if the queue is full."""
        if self.running < self._places:
            self.running += 1
        elif self.waiting >= self._max_waiting:
            raise _retry_later("the server is busy; try again in a moment", "busy", _BUSY_SECONDS)
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
        self.waiting += 1
        taken = False
        try:
            await asyncio.wait({turn, gone}, return_when=asyncio.FIRST_COMPLETED)
            taken = turn.done() and not gone.done()
            return taken
        finally:
            self.waiting -= 1
            current_request().queue = time.monotonic() - began
            gone.cancel()
            if not turn.done():
                self._turns.remove(turn)
            elif not taken:
                self._leave()

    def _leave(self) -> None:
        """Give the place to the request that has waited longest, or free it."""
        if self._turns:
            self._turns.popleft().set_result(None)
        else:
            self.running -= 1


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
        connections: maximum number of open connections.
    """

    keys: Keys = field(default_factory=Keys)
    names: frozenset[str] = frozenset()
    rate: Rate = field(default_factory=lambda: Rate("60/minute"))
    concurrency: int = 64
    queue: int = 64
    seconds: float = 900.0
    body: int = 1_000_000
    connections: int = 1_000


class RequestGate:
    """ASGI middleware in front of all routes. Its errors have the form of OpenAI's."""

    def __init__(self, app: ASGIApp, settings: GateSettings, queue: Queue) -> None:
        self._app, self._settings, self._queue = app, settings, queue

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

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self._check_origin(scope, headers)
        scope["state"] = {**scope.get("state", {}), "owner": self._owner(scope, headers)}
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        limited = scope["path"] not in _UNLIMITED
        if limited and self._settings.keys and (wait := self._settings.rate.wait(scope["state"]["owner"])):
            raise _retry_later(f"rate limit of this key: {self._settings.rate.text}", "rate_limit_exceeded", wait)
        body = await self._body(headers, receive, self._settings.body)
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
        own = site in ("same-origin", "none") if site else origin is None or origin.partition("//")[2] == host
        if not own:
            raise http_error(403, "pages of other sites must not send requests", "cross_site")

    def _owner(self, scope: Scope, headers: Headers) -> str:
        keys = self._settings.keys
        if not keys:
            return ""
        kind, _, key = headers.get("authorization", "").partition(" ")
        owner = keys.owner(key.strip()) if kind.lower() == "bearer" else None
        if owner is None and not key and (cookie := Request(scope).cookies.get(COOKIE)):
            owner = keys.session_owner(cookie)
        if owner is not None:
            return owner
        if scope["path"] == "/api/session" or (scope["method"] in ("GET", "HEAD") and _PUBLIC.fullmatch(scope["path"])):
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
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    length += len(parts[-1])
                    more = message.get("more_body", False)
                    if length > max_bytes:
                        raise too_large
        except TimeoutError:
            raise http_error(408, f"the request did not arrive within {_BODY_SECONDS:g} seconds",
                             "timeout") from None
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


def _retry_later(message: str, code: str, seconds: float) -> HTTPException:
    error = http_error(429, message, code)
    error.headers = {"Retry-After": str(math.ceil(seconds))}
    return error


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
