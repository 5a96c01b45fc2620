"""HTTP to servers of others: bounded replies, no redirects, and errors of the connection by name."""
from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2

from ragbed.agents.replies import MOST_BYTES, BadReply
from ragbed.retrieval.servers import is_compressed, is_loopback, unusable_environment


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers and body that a server sent back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Bounded(httpx2.AsyncByteStream):
    """A body that may not be larger than `most` bytes; BadReply where it is."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self.most, self._stream = MOST_BYTES, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for block in self._stream:
            size += len(block)
            if size > self.most:
                raise BadReply(f"the reply is larger than {self.most >> 20} MB")
            yield block

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    if is_compressed(response.headers):
        raise BadReply("the reply is compressed, which was not asked for")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = Bounded(response.stream)


def bounded_client(url: str, connections: int) -> httpx2.AsyncClient:
    """Make a client for one address with so many connections at most, and without deadlines and retries, which are the
    caller's; raise ModelError where the environment's proxy or certificates cannot be used."""
    limits = httpx2.Limits(max_connections=connections + 4, max_keepalive_connections=connections + 4)
    # Redirects are not followed: they would take the prompts to a host that nobody named.
    try:
        return httpx2.AsyncClient(timeout=None, limits=limits, trust_env=not is_loopback(url),
                                  headers={"Accept-Encoding": "identity"}, event_hooks={"response": [_bound]})
    except (OSError, ValueError, ImportError) as error:
        raise unusable_environment(error) from None


@contextmanager
def named_errors() -> Iterator[None]:
    """Raise ConnectionError, with its reason, where no whole reply comes back."""
    try:
        yield
    except httpx2.TransportError as error:
        raise ConnectionError(reason(error)) from None


def reason(error: BaseException) -> str:
    """Name an error of the connection."""
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name
