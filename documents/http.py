"""HTTP to model servers: addresses, keys, retries, error messages, and replies of bounded size.

Keys never reach a message: `redact_keys` and `sanitize_line` remove them from what servers and libraries say.
"""
from __future__ import annotations

import os
import random
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from math import isfinite
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragbed.documents.errors import ModelError
from ragbed.documents.json import loads

if TYPE_CHECKING:
    import httpx2  # imported when a client is made: it takes 70 ms

OPENAI_HOST = "api.openai.com"
SERVER_SCHEMES = ("openai", "http", "https")  # the part before the colon in the name of a model behind a server
MAX_REPLY_BYTES = 16 << 20  # per reply; the longest model replies take a few hundred kilobytes
_KEY_VARIABLES = ("OPENAI_API_KEY", "RAGBED_API_KEY", "MILVUS_TOKEN")
_OPENAI_URL = f"https://{OPENAI_HOST}/v1"
_NO_KEY = "none"  # the OpenAI client always sends some key
_MAX_MESSAGE = 200  # characters quoted from a server
_MIN_KEY = 8  # characters; a shorter key is a placeholder such as `x`, and would be found inside ordinary words
_FIRST_DELAY, _MAX_DELAY = 0.5, 30.0  # seconds
_MAX_RETRY_AFTER = 1e8  # seconds, three years: beyond every deadline, and short enough to print


class BadReply(ValueError):
    """A reply of the wrong form or size."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a server."""

    url: str  # base URL, without user, password or query
    key: str = field(repr=False)  # sent as a bearer token
    key_variable: str | None = None  # environment variable that holds the key; None if users never set it


def parse_address(spec: str, *, calls: bool = True) -> tuple[Address, str]:
    """Split `openai:NAME` or `http(s)://host/v1#NAME` into the server's address and the model's name there. Without
    `calls`, the key may be missing. Raises ModelError if the text has another form, names no model, holds secrets in
    its URL, or if the key is missing or cannot be sent in a header."""
    if spec.startswith("openai:"):
        name = _check_name(spec.partition(":")[2])
        url = check_url(os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL, "OPENAI_BASE_URL")
        key = _key("OPENAI_API_KEY", required=calls) or _NO_KEY
        return Address(url, key, "OPENAI_API_KEY"), name
    url, _, name = spec.partition("#")
    key = _key("RAGBED_API_KEY", required=False) or _NO_KEY
    return Address(check_url(url, "a model's URL"), key, "RAGBED_API_KEY"), _check_name(name)


def is_loopback(url: str) -> bool:
    """Tell whether the URL's host is this machine, which must never be reached through a proxy."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def sanitize_line(text: str, key: str = "", limit: int = _MAX_MESSAGE) -> str:
    """Return untrusted text as one printable line of at most `limit` characters, without keys."""
    text = redact_keys(text[:20 * limit], key)
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= limit else line[:limit - 1] + "…"


def known_keys(key: str = "") -> list[str]:
    """List the given key and those in environment variables, longest first, without placeholders."""
    keys = {key, *(os.environ.get(variable, "").strip() for variable in _KEY_VARIABLES)}
    return sorted((one for one in keys if len(one) >= _MIN_KEY), key=len, reverse=True)


def redact_keys(text: str, key: str = "") -> str:
    """Replace the given key, and those in environment variables, by `[key]`."""
    for one in known_keys(key):
        text = text.replace(one, "[key]")
    return text


def _check_name(name: str) -> str:
    """Return the name if it can be shown and recorded. Errors do not quote it, since it may contain a key."""
    if not name.strip():
        raise ModelError("the model has no name; write openai:NAME or http://host/v1#NAME")
    if set(name) & set("?&="):
        raise ModelError("a model's name must not contain ?, & or =; put the key into RAGBED_API_KEY, or "
                         "OPENAI_API_KEY for openai:NAME")
    return name


def check_url(url: str, what: str) -> str:
    """Return the base URL without a slash at the end; `what` names it in messages. Raises ModelError if it is not an
    HTTP URL, or has a user, password or query, which would be shown and recorded."""
    try:
        parts = urlsplit(url)
        # Reading `port` raises ValueError if it is not valid.
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, whole = urlsplit(""), False
    if parts.username or parts.password or parts.query:
        raise ModelError(f"{what} must not contain a user, password or query; put the key into RAGBED_API_KEY, or "
                         "OPENAI_API_KEY for openai:NAME")
    if not whole:
        form = "http://host/v1" if what == "OPENAI_BASE_URL" else "http://host/v1#NAME"
        raise ModelError(f"{what} is not a URL; write {form} or {form.replace('http', 'https')}")
    return url.rstrip("/")


def _key(variable: str, *, required: bool) -> str:
    key = os.environ.get(variable, "").strip()
    if required and not key:
        raise ModelError(f"{variable} is not set; set it to the server's key")
    # A header cannot carry these, and the HTTP client's own error would show the key.
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ModelError(f"{variable} contains spaces or characters that cannot be sent; set it to the key alone")
    return key


def backoff_delay(attempt: int) -> float:
    """Return the seconds to wait after an attempt, counted from 1: random, below a bound that doubles with each
    attempt. Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015, "full jitter"."""
    return random.uniform(0.0, min(_MAX_DELAY, _FIRST_DELAY * 2.0 ** min(attempt - 1, 16)))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait; None if it does not ask. `Retry-After-Ms` is preferred to
    `Retry-After`, which holds seconds or a date. Like OpenAI's client, it ignores `x-ratelimit-reset-*`, which tells
    when the limit is fully restored, not when to retry."""
    wait = _number(headers.get("retry-after-ms", ""))
    if wait is not None:
        return wait / 1000
    value = headers.get("retry-after", "").strip()
    if (wait := _number(value)) is not None:
        return wait
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return min(max(number, 0.0), _MAX_RETRY_AFTER) if isfinite(number) else None


_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)


def is_transient(status: int, body: bytes = b"") -> bool:
    """Tell whether the same request may succeed later."""
    if status == 429:  # permanent if this request alone exceeds the limit per minute
        return not _TOO_LARGE.search(error_message(parse_error(body), ""))
    return status in {408, 409, 425} or status >= 500


def is_compressed(headers: Mapping[str, str]) -> bool:
    """Tell whether a reply is compressed. Compression is never requested, since a few compressed bytes may unpack to
    gigabytes."""
    return headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


def parse_error(body: bytes) -> dict[str, Any]:
    """Return the error object of a reply, with its text under `message`; empty if the reply has none. Servers send an
    object or text in `error`, or a text in `message` or `detail`."""
    try:
        data = loads(body, mend=True)
    except ValueError:
        return {}
    if not isinstance(data, dict):
        return {}
    error = data.get("error", data)
    if isinstance(error, dict):
        return error if "message" in error else {**error, "message": error.get("detail")}
    return {"message": error}


def error_message(error: Mapping[str, Any], key: str) -> str:
    """Return the message of an error object as one short printable line without keys."""
    message = error.get("message")
    return sanitize_line(message if isinstance(message, str) else "", key)


def proxy_error(error: Exception) -> ModelError:
    """Return the error to raise when an HTTP client cannot be made. The original error is hidden, since it may quote
    the proxy's password."""
    return ModelError("the proxy or certificates set in the environment cannot be used "
                      f"({type(error).__name__}); check HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE, PIP_CERT")


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers and body of a server's reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class BoundedStream:
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


def bounded_client(url: str, connections: int) -> httpx2.AsyncClient:
    """Make a client for one address whose replies have a `BoundedStream`. The caller handles deadlines and retries.
    Raises ModelError if the proxy or certificates of the environment cannot be used."""
    import httpx2

    class Stream(BoundedStream, httpx2.AsyncByteStream):
        """Subclass of the base class that the client requires."""

    async def bound(response: httpx2.Response) -> None:
        if is_compressed(response.headers):
            raise BadReply("the reply is compressed, which was not asked for")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = Stream(response.stream)

    limits = httpx2.Limits(max_connections=connections + 4, max_keepalive_connections=connections + 4)
    # Redirects are not followed: they would send the prompts to a host that the user did not name.
    try:
        return httpx2.AsyncClient(timeout=None, limits=limits, trust_env=not is_loopback(url),
                                  headers={"Accept-Encoding": "identity"}, event_hooks={"response": [bound]})
    except (OSError, ValueError, ImportError) as error:
        raise proxy_error(error) from None


@contextmanager
def transport_errors() -> Iterator[None]:
    """Raise ConnectionError, with the cause in words, if no complete reply arrives."""
    import httpx2

    try:
        yield
    except httpx2.TransportError as error:
        raise ConnectionError(describe_error(error)) from None


def describe_error(error: BaseException) -> str:
    """Return the class and text of an error, as in "ConnectError: connection refused"."""
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name
