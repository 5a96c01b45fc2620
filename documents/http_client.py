"""HTTP clients for model servers: they limit the size of replies, and stay fast with thousands of connections."""
from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from urllib.request import getproxies

import httpcore2  # installed by httpx2, with the same version
import httpx2

from ragbed.documents.http import MAX_REPLY_BYTES, SENT_ON, BadReply, is_compressed, is_loopback, proxy_error

try:
    import resource
except ImportError:  # not on Windows, where sockets are no files
    resource = None  # type: ignore[assignment]

_KEPT_SECONDS = 5.0  # idle connections are reused for as long as httpx reuses them, and then closed
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
    """Transport that gives each concurrent request its own connection, and reuses idle ones.

    A pool of httpx looks at each of its connections whenever a request begins or ends. With a thousand connections,
    that takes longer than the rest of the request. The caller must limit the number of concurrent requests.
    """

    def __init__(self, trust_env: bool) -> None:
        self._context = httpx2.create_ssl_context(trust_env=trust_env)
        self._all = set[httpcore2.AsyncHTTPConnection]()
        # with the time since when it is free; the one that was used last is used first
        self._free = deque[tuple[float, httpcore2.AsyncHTTPConnection]]()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Its connection is free when the body of the response is closed."""
        at = request.url
        url = httpcore2.URL(scheme=at.raw_scheme, host=at.raw_host, port=at.port, target=at.raw_path)
        connection = await self._take(url.origin)
        sent = httpcore2.Request(request.method, url, headers=request.headers.raw, content=request.stream,
                                 extensions=request.extensions)
        with ExitStack() as failed, _httpx_errors():
            failed.callback(self._give_back, connection)
            got = await connection.handle_async_request(sent)
            failed.pop_all()
        return httpx2.Response(got.status, headers=got.headers, stream=_Body(got, partial(self._give_back, connection)),
                               extensions=got.extensions)

    async def aclose(self) -> None:
        for connection in list(self._all):  # requests that end meanwhile remove theirs
            await connection.aclose()

    async def _take(self, origin: httpcore2.Origin) -> httpcore2.AsyncHTTPConnection:
        while self._free and self._free[0][0] < time.monotonic() - _KEPT_SECONDS:
            await self._close(self._free.popleft()[1])
        while self._free:
            _, connection = self._free.pop()
            if connection.can_handle_request(origin) and not connection.has_expired():
                return connection
            await self._close(connection)
        connection = httpcore2.AsyncHTTPConnection(origin, self._context, keepalive_expiry=_KEPT_SECONDS)
        self._all.add(connection)
        return connection

    async def _close(self, connection: httpcore2.AsyncHTTPConnection) -> None:
        await connection.aclose()
        self._all.discard(connection)

    def _give_back(self, connection: httpcore2.AsyncHTTPConnection) -> None:
        if connection.is_available():
            self._free.append((time.monotonic(), connection))
        elif connection.is_closed():  # one whose closing was cancelled stays in `_all` until `aclose`
            self._all.discard(connection)


class _Body(httpx2.AsyncByteStream):
    """Body of a response that calls a function once when it is closed."""

    def __init__(self, response: httpcore2.Response, on_close: Callable[[], None]) -> None:
        self._response, self._on_close = response, [on_close]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            assert isinstance(self._response.stream, AsyncIterable)
            async for block in self._response.stream:
                yield block

    async def aclose(self) -> None:
        try:
            await self._response.aclose()
        finally:
            if self._on_close:
                self._on_close.pop()()


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Raise an error of httpcore as the error of httpx that has its name."""
    try:
        yield
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
        raise getattr(httpx2, type(error).__name__)(str(error)) from error


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
