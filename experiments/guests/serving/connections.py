"""Limits on connections: how many there may be, and how long one may stay silent, or not read its response.

uvicorn limits none of these before a request has arrived, so clients that send nothing could use up all open files.
"""
from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ragbed.documents.errors import SettingsError
from ragbed.documents.http_client import raise_file_limit
from ragbed.experiments.guests.serving.state import error_json

_RESERVE = 256  # open files that are left for everything else
_MIN_CONNECTIONS = 64
_CONNECTIONS = 1_000  # by default
_MAX_FILES = 65_536  # the limit on open files is raised no further
_ACCEPTED = 8  # connections accepted per turn of the event loop: other processes with this socket take the others
_READ = 16_384  # bytes read from a connection before others have their turn
_BACKLOG = 1_024  # connections that the system keeps until they are accepted
_BUSY = json.dumps(error_json("too many connections; try again in a moment", "busy", kind="server_error")).encode()
_REFUSAL = (b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 5\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_BUSY), _BUSY))


def allowed_connections(wanted: int | None, workers: int = 1) -> int:
    """Raise this process's limit on open files, and return how many connections it allows.

    Args:
        wanted: number of connections of the server; None for the default, or as many as possible if they are fewer.
        workers: number of processes, each of which gets the same part of them.

    Raises:
        SettingsError: there are fewer than workers, or more than the limit on open files allows.
    """
    if wanted is not None and wanted < workers:
        raise SettingsError(f"--connections {wanted}: --workers {workers} share them, and each needs one at least")
    part = (wanted or _CONNECTIONS) // workers
    files = raise_file_limit(_MAX_FILES)
    most = files - _RESERVE
    if most < max(part if wanted else 0, _MIN_CONNECTIONS):
        raise SettingsError(f"--connections {wanted or _MIN_CONNECTIONS}: this process may open {files} files, and "
                            f"{_RESERVE} are reserved; raise the limit with `ulimit -Hn`, or lower --connections")
    return part if wanted else min(part, most)


@dataclass
class Connections:
    """The open connections of a server.

    When there are too many, the one that has waited longest for a request is closed. A new one is refused only if all
    others have a request in progress.

    Attributes:
        limit: maximum number of connections.
        per_address: maximum number of connections from one address; half of all by default.
        head_seconds: seconds in which the head of a request must arrive.
        write_seconds: seconds in which a client must read some of a response that does not fit the buffers.
        proxies: addresses and networks without a limit of their own.
    """

    limit: int = 1_000
    per_address: int = 0
    head_seconds: float = 10.0
    write_seconds: float = 60.0
    proxies: Sequence[str] = ()
    _open: dict[GuardedProtocol, str] = field(default_factory=dict)
    _waiting: dict[GuardedProtocol, None] = field(default_factory=dict)  # the one that waited longest first
    _counts: Counter[str] = field(default_factory=Counter)

    def admit(self, connection: GuardedProtocol, host: str) -> bool:
        """Count a connection from a host, and return whether it may stay. Closes one that waits if there are too many.
        """
        address = network_of(host)
        crowded = self._counts[address] >= (self.per_address or max(self.limit // 2, 1))
        if crowded and not any(ipaddress.ip_address(host) in ipaddress.ip_network(one) for one in self.proxies):
            admitted = self._evict(one for one in self._waiting if self._open[one] == address)
        else:
            admitted = len(self._open) < self.limit or self._evict(self._waiting)
        if admitted:
            self._open[connection] = address
            self._counts[address] += 1
        return admitted

    def mark(self, connection: GuardedProtocol, waiting: bool) -> None:
        """Note whether a connection waits for a request, or has one in progress."""
        if not waiting:
            self._waiting.pop(connection, None)
        elif connection in self._open:
            self._waiting.setdefault(connection)

    def forget(self, connection: GuardedProtocol) -> None:
        """Stop counting a connection."""
        self._waiting.pop(connection, None)
        if (address := self._open.pop(connection, None)) is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def _evict(self, waiting: Iterable[GuardedProtocol]) -> bool:
        oldest = next(iter(waiting), None)
        if oldest is not None:
            self.forget(oldest)
            oldest.abort()
        return oldest is not None

    def protocol(self, **options: Any) -> GuardedProtocol:
        """Return the protocol of a new connection. uvicorn calls this."""
        return GuardedProtocol(self, **options)


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 as in uvicorn, with limits on silence."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._connections, self._refused = connections, False
        self._head: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.max_size = _READ  # type: ignore[attr-defined]  # by default 256 KiB, which may hold 40,000 tiny chunks
        self._refused = not self._connections.admit(self, self.client[0] if self.client else "")
        if self._refused:
            transport.write(_REFUSAL)
            transport.close()
        else:
            self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.forget(self)
        self._stop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._refused:
            super().data_received(data)
            self._watch_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_waiting():
            self._connections.mark(self, waiting=True)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self._writing or self.loop.call_later(self._connections.write_seconds, self.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing:
            self._writing.cancel()
        self._writing = None

    def abort(self) -> None:
        """Close the connection without sending what is buffered."""
        self._stop_timers()
        self.transport.abort()

    def _watch_head(self) -> None:
        """Limit the time from the first byte of a request, or from the connection, to the end of the head."""
        waiting = self._is_waiting()
        self._connections.mark(self, waiting)
        if not waiting and self._head:
            self._head.cancel()
            self._head = None
        elif waiting and not self._head:
            self._head = self.loop.call_later(self._connections.head_seconds, self.abort)

    def _is_waiting(self) -> bool:
        return (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing()

    def _stop_timers(self) -> None:
        for timer in (self._head, self._writing):
            if timer:
                timer.cancel()
        self._head = self._writing = None


class GuardedServer(uvicorn.Server):
    """uvicorn's server with limits on connections."""

    def __init__(self, connections: Connections, app: Any, **options: Any) -> None:
        super().__init__(uvicorn.Config(
            app, http=connections.protocol, ws="none", backlog=_ACCEPTED,  # type: ignore[arg-type]
            log_level="warning", access_log=False, lifespan="on", server_header=False,
            proxy_headers=False, **options))
        for name in ("asyncio", "uvicorn.error", "ragbed"):
            logging.getLogger(name).addFilter(_REPEATS)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(_BACKLOG)  # asyncio would accept this many at once


class RepeatFilter(logging.Filter):
    """Log filter that lets a message pass once per minute, with the number of its repetitions."""

    def __init__(self, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._seconds, self._clock = seconds, clock
        self._seen: dict[Any, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        first, now = record.getMessage().partition("\n")[0], self._clock()
        kind = (first, _place_of(record.exc_info[1])) if record.exc_info else first
        began, count = self._seen.get(kind, (now, 0))
        if count and now - began < self._seconds:
            self._seen[kind] = began, count + 1
            return False
        if len(self._seen) >= 1_000:
            self._seen.clear()
        self._seen[kind] = now, 1
        if count > 1:
            record.msg, record.args = f"{record.getMessage()} ({count - 1} more since the last such line)", ()
        if record.exc_info and isinstance(record.exc_info[1], OSError):  # of the system, not of this program
            record.msg, record.args, record.exc_info = f"{first}: {record.exc_info[1]}", (), None
        return True


_REPEATS = RepeatFilter()


def _place_of(error: BaseException | None) -> tuple[str, int]:
    """Return the kind of an error, and the line that raised it."""
    place = error.__traceback__ if error else None
    while place and place.tb_next:
        place = place.tb_next
    return type(error).__name__, place.tb_lineno if place else 0


def network_of(host: str) -> str:
    """Return an IPv4 address, or the network of an IPv6 address, of which a client has a whole one; otherwise empty."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else host
