"""HTTP clients for model servers: they limit the size of replies, and stay fast with thousands of connections."""
from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from urllib.request import getproxies

import httpx2

from ragbed.documents.http import MAX_REPLY_BYTES, SENT_ON, BadReply, is_compressed, is_loopback, proxy_error

try:
    import resource
except ImportError:  # not on Windows, where sockets are no files
    resource = None  # type: ignore[assignment]

_OTHER_FILES = 512  # open files besides the connections


class BoundedStream(httpx2.AsyncByteStream):
    """Body of a reply, read block by block. Reading raises BadReply beyond `max_bytes`."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self.max_bytes, self._stream = MAX_REPLY_BYTES, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for block in self._stream:
            size += len(block)
            if size > self.max_bytes:
                raise BadReply(f"the reply is larger than {self.max_bytes >> 20} MB")
            yield block

    async def aclose(self) -> None:
        await self._stream.aclose()


class SingleConnections(httpx2.AsyncBaseTransport):
    """Sends each request over a connection of its own, and keeps connections for later requests.

    A pool of httpx looks at each of its connections whenever a request begins or ends. With a thousand connections in
    one pool, that takes longer than the rest of the request, so each pool here has one. The caller limits the number
    of concurrent requests.
    """

    def __init__(self, trust_env: bool) -> None:
        self._context, self._trust_env = httpx2.create_ssl_context(trust_env=trust_env), trust_env
        self._all: list[httpx2.AsyncHTTPTransport] = []
        self._free: list[httpx2.AsyncHTTPTransport] = []  # the one that was used last is used first

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Its connection is free when the body of the response is closed."""
        pool = self._free.pop() if self._free else self._open()
        with ExitStack() as failed:
            failed.callback(self._free.append, pool)
            response = await pool.handle_async_request(request)
            failed.pop_all()
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _WatchedStream(response.stream, lambda: self._free.append(pool))
        return response

    async def aclose(self) -> None:
        for pool in self._all:
            await pool.aclose()

    def _open(self) -> httpx2.AsyncHTTPTransport:
        self._all.append(httpx2.AsyncHTTPTransport(
            verify=self._context, trust_env=self._trust_env, limits=httpx2.Limits(max_connections=1)))
        return self._all[-1]


class _WatchedStream(httpx2.AsyncByteStream):
    """Body of a reply that calls a function once when it is closed."""

    def __init__(self, stream: httpx2.AsyncByteStream, on_close: Callable[[], None]) -> None:
        self._stream, self._on_close = stream, [on_close]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._stream.__aiter__()

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            if self._on_close:
                self._on_close.pop()()


def raise_file_limit(wanted: int) -> int:
    """Raise this process's limit on open files to `wanted`, or as far as the system allows. Return the limit, at most
    `wanted`. Most systems allow 1,024 files to a process that does not ask for more."""
    if resource is None:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def bounded_client(url: str, connections: int) -> httpx2.AsyncClient:
    """Make a client for one server that limits the size of replies. The caller handles deadlines and retries. Raises
    ModelError if the proxy or certificates of the environment cannot be used."""
    async def send_on(request: httpx2.Request) -> None:
        request.headers.update(SENT_ON.get())

    async def bound(response: httpx2.Response) -> None:
        if is_compressed(response.headers):
            raise BadReply("the server compressed its reply, although ragbed did not ask for that")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = BoundedStream(response.stream)

    raise_file_limit(connections + _OTHER_FILES)
    connections, trust_env = connections + 4, not is_loopback(url)
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    # Redirects are not followed: they would send the prompts to a host that the user did not name.
    try:
        single = None if trust_env and getproxies() else SingleConnections(trust_env)
        return httpx2.AsyncClient(timeout=None, limits=limits, trust_env=trust_env, transport=single,
                                  headers={"Accept-Encoding": "identity"},
                                  event_hooks={"request": [send_on], "response": [bound]})
    except (OSError, ValueError, ImportError) as error:
        raise proxy_error(error) from None
