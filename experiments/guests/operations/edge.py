"""Serve behind a reverse proxy: under a path, with the addresses that named proxies forward, for named origins."""
from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from ragbed.documents.errors import SettingsError

LogStyle = Literal["text", "json", "off"]
_PATH = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)+")
_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")
_SENT = ["Authorization", "Cache-Control", "Content-Type", "Traceparent", "Tracestate", "X-Request-Id"]  # by scripts
_SEEN = ["Retry-After", "X-Request-Id"]  # by scripts, besides the body


@dataclass(frozen=True)
class EdgeSettings:
    """Where a server stands; options of `ragbed serve`.

    Attributes:
        log: form of the line that is written for each request.
        root_path: path under which the proxy serves it, such as `/rag`; empty for none.
        proxies: addresses and networks of proxies whose `X-Forwarded-*` headers are believed.
        origins: other sites whose pages may use the API, such as `https://app.example.org`.
    """

    log: LogStyle = "off"
    root_path: str = ""
    proxies: tuple[str, ...] = ()
    origins: frozenset[str] = frozenset()

    @classmethod
    def read(cls, log: str, root_path: str, proxies: Sequence[str], origins: Sequence[str]) -> EdgeSettings:
        """Check options of the command line. Raises SettingsError for an option that is not valid."""
        if log not in get_args(LogStyle):
            raise SettingsError(f"--log {log!r:.40}: expected {', '.join(get_args(LogStyle))}")
        root = root_path.rstrip("/")
        if root and not _PATH.fullmatch(root):
            raise SettingsError(f"--root-path {root_path!r:.80}: expected a path such as /rag")
        for network in proxies:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise SettingsError(f"--proxy {network!r:.80}: expected an address or a network such as 10.0.0.0/8; "
                                    f"{error}") from None
        return cls(log, root, tuple(proxies), frozenset(map(_read_origin, origins)))  # type: ignore[arg-type]


def _read_origin(text: str) -> str:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and text == f"{parts.scheme}://{parts.netloc}"
        valid = valid and _HOST.fullmatch(parts.netloc) is not None and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise SettingsError(f"--origin {text!r:.80}: expected a scheme and a host, without a path: https://app.example.org")
    return text.lower()


def route_path(scope: Scope) -> str:
    """Return the path of a request without the server's root path."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def add_cors(app: Starlette, settings: EdgeSettings) -> None:
    """Let pages of named origins use the API with a key in a header, but never with the page's cookie."""
    if settings.origins:
        app.add_middleware(CORSMiddleware, allow_origins=sorted(settings.origins), allow_headers=_SENT,
                           allow_methods=["GET", "POST", "DELETE", "PATCH"], expose_headers=_SEEN)
        app.add_middleware(_VaryByOrigin)


class _VaryByOrigin:
    """Tells caches that responses depend on the origin, also of requests that name none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def vary(message: Any) -> None:
            if message["type"] == "http.response.start" and not any(
                    name.lower() == b"vary" and b"origin" in value.lower() for name, value in message["headers"]):
                message = {**message, "headers": [*message["headers"], (b"vary", b"Origin")]}
            await send(message)

        await self._app(scope, receive, vary)


class ProxiedRequests:
    """ASGI middleware around all others: gives each request the address, scheme, host and path that its client used.

    Headers of other peers than the named proxies are ignored. The proxy may strip the root path or leave it.
    """

    def __init__(self, app: ASGIApp, settings: EdgeSettings) -> None:
        self._settings = settings
        self._app: Any = app
        self._trusted = [ipaddress.ip_network(one) for one in settings.proxies]
        if settings.proxies:
            self._app = ProxyHeadersMiddleware(app, list(settings.proxies))  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if self._is_proxy(scope):
                _use_forwarded_host(scope)
            if root := self._settings.root_path:
                if scope["path"] == root:
                    await RedirectResponse(f"{root}/", 308)(scope, receive, send)
                    return
                if not scope["path"].startswith(f"{root}/"):
                    scope["path"] = root + scope["path"]
                    scope["raw_path"] = root.encode() + scope.get("raw_path", b"")
                scope["root_path"] = root
        await self._app(scope, receive, send)

    def _is_proxy(self, scope: Scope) -> bool:
        try:
            peer = ipaddress.ip_address((scope.get("client") or ("",))[0])
        except ValueError:
            return False
        return any(peer in network for network in self._trusted)


def _use_forwarded_host(scope: Scope) -> None:
    """Replace `Host` by the last `X-Forwarded-Host`, which the nearest proxy wrote."""
    given = [value for name, value in scope["headers"] if name == b"x-forwarded-host"]
    host = given[-1].decode("latin-1").rpartition(",")[2].strip() if given else ""
    if _HOST.fullmatch(host):
        scope["headers"] = [*(one for one in scope["headers"] if one[0] != b"host"), (b"host", host.encode())]
