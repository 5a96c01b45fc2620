"""Tools for HTTP requests to model servers: addresses, keys, retries, error messages, and limits on reply sizes.

`sanitize_line` removes API keys from error texts of servers and libraries.
"""
from __future__ import annotations

import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from math import isfinite
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from ragbed.documents.errors import ModelError
from ragbed.documents.json import loads
from ragbed.documents.keys import GENERAL_KEY, read_key, redact_keys

OPENAI_HOST = "api.openai.com"
SERVER_SCHEMES = ("openai", "http", "https")  # the part before the colon in the name of a model behind a server
MAX_REPLY_BYTES = 16 << 20  # per reply; the longest model replies take a few hundred kilobytes
SENT_ON: ContextVar[Mapping[str, str]] = ContextVar("sent_on", default=MappingProxyType({}))
"""Headers such as `traceparent`, which calls of models repeat from the request that a server is handling."""
_in_use: Counter[tuple[str, str]] = Counter()  # open models by general key and host
_OPENAI_URL = f"https://{OPENAI_HOST}/v1"
_NO_KEY = "none"  # the OpenAI client always sends some key
_MAX_MESSAGE = 200  # characters quoted from a server
_FIRST_DELAY, _MAX_DELAY = 0.5, 30.0  # seconds
_MAX_RETRY_AFTER = 1e8  # seconds: three years, longer than any deadline


class BadReply(ValueError):
    """A reply has the wrong form or size."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a server."""

    url: str  # base URL, without user, password or query
    key: str = field(repr=False)  # sent as a bearer token
    key_variable: str | None = None  # environment variable that holds the key; None if users never set it
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # sent, or left out if empty; may hold secrets
    query: tuple[tuple[str, str], ...] = ()  # sent with each request, such as Azure's api-version
    general: bool = False  # whether the key was named for no server in particular; see `hold_key`


def parse_address(spec: str, *, calls: bool = True, key_env: str | None = None,
                  base_url: str | None = None) -> tuple[Address, str]:
    """Split `openai:NAME` or `http(s)://host/v1#NAME` into the server's address and the model's name there.

    Args:
        calls: if False, the key may be missing.
        key_env: environment variable with the key, or `none`; see `find_key` for the default.
        base_url: address of the server instead of OpenAI's.

    Raises:
        ModelError: the text is malformed, names no model, or holds secrets in its URL; or the key is missing, belongs
            to another server, or cannot be sent in a header.
    """
    if spec.startswith("openai:"):
        name = check_name(spec.partition(":")[2])
        own = check_url(os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL, "OPENAI_BASE_URL")
        return find_key(base_url or own, "OPENAI_API_KEY", key_env, own=host_of(own), send=calls), name
    url, _, name = spec.partition("#")
    at = find_key(check_url(url, "a model's URL"), GENERAL_KEY, key_env, required=False, send=calls)
    return at, check_name(name)


def find_key(url: str, variable: str, key_env: str | None, *, own: str | None = None, required: bool = True,
             send: bool = True) -> Address:
    """Return a server's address with its key. A key goes only to the server that it belongs to.

    Args:
        variable: environment variable with the key for the host `own`, or without it for one server at a time.
        key_env: variable that the user named for this address instead; `none` sends no key.
        own: host and port; a beginning dot allows every host below it.
        send: False in a replay, which needs no key.

    Raises:
        ModelError: the key is missing although it is `required`, belongs to another server, or cannot be sent.
    """
    host = host_of(url)
    if key_env == "none":
        return Address(url, _NO_KEY)
    if key_env is not None:
        return Address(url, read_key(key_env, required=send) or _NO_KEY, key_env)
    if own is not None and not is_at(host, own):
        if send:
            raise ModelError(f"{variable} is the key for {own}, so it is not sent to {host}; name the key for {host} "
                             "with key_env, or set key_env: none")
        return Address(url, _NO_KEY)
    key = read_key(variable, required=required and send)
    return Address(url, key or _NO_KEY, variable, general=bool(key) and own is None)


def is_at(host: str, own: str) -> bool:
    """Tell whether a host is `own`, or below it if that begins with a dot."""
    return host == own or (own.startswith(".") and host.endswith(own))


@contextmanager
def hold_key(at: Address) -> Iterator[None]:
    """Reserve a general key, such as RAGBED_API_KEY, for a server while a model is open. Raises ModelError if an open
    model at another server has the same key."""
    check_key(at)
    used = at.key, host_of(at.url)
    _in_use[used] += at.general
    try:
        yield
    finally:
        _in_use[used] -= at.general


def check_key(at: Address) -> None:
    """Raise ModelError if an open model at another server has the same general key."""
    host = host_of(at.url)
    other = next((one for (key, one), count in _in_use.items() if count and key == at.key and one != host), None)
    if at.general and other:
        raise ModelError(f"{at.key_variable} goes to {other}, so it is not sent to {host} too; give each model its own "
                         f"key, as in {{model: {at.url}#NAME, key_env: VARIABLE}}, or key_env: none")


def host_of(url: str) -> str:
    """Return the host of a URL, with its port if it has one."""
    return urlsplit(url).netloc.lower()


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


def check_name(name: str) -> str:
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
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        parts, whole = urlsplit(""), False
    if parts.username or parts.password or parts.query:
        raise ModelError(f"{what} must not contain a user, password or query; put the key into RAGBED_API_KEY, or "
                         "OPENAI_API_KEY for openai:NAME")
    if not whole:
        form = "http://host/v1" if what == "OPENAI_BASE_URL" else "http://host/v1#NAME"
        raise ModelError(f"{what} is not a URL; write {form} or {form.replace('http', 'https')}")
    return url.rstrip("/")


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
    """Tell whether a reply is compressed. It is never requested, since a few bytes may unpack to gigabytes."""
    return headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


def parse_error(body: bytes) -> dict[str, Any]:
    """Return the error object of a reply; empty if the reply has none. Servers send an object, a list or a text in
    `error`, or the error's fields at the top."""
    data = _parse_object(body)
    error = next((data[name] for name in ("error", "errors", "base_resp") if data.get(name)), data)
    return error if isinstance(error, dict) else {"message": error}


def _parse_object(body: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        data = loads(body, mend=True)
        data = data[0] if isinstance(data, list) and data else data  # Google's form
        return data if isinstance(data, dict) else {}
    return {}


def error_message(error: Mapping[str, Any], key: str = "") -> str:
    """Return the message of an error object as one short printable line without keys. A gateway's message is followed
    by that of the provider behind it."""
    return sanitize_line(_error_text(error), key)


def _error_text(error: Any, depth: int = 4) -> str:
    if isinstance(error, str) and error.startswith(("{", "[")):
        with suppress(ValueError):
            error = loads(error, mend=True)
    if depth and isinstance(error, list):
        return "; ".join(filter(None, (_error_text(one, depth - 1) for one in error[:3])))
    if depth and isinstance(error, dict):
        *texts, of_provider = (_error_text(error.get(name), depth - 1) for name in (
            "message", "detail", "msg", "status_msg", "error", "raw", "metadata"))
        return ": ".join(dict.fromkeys(filter(None, (next(filter(None, texts), ""), of_provider))))
    return error if isinstance(error, str) else ""


def proxy_error(error: Exception) -> ModelError:
    """Return the error to raise if an HTTP client cannot be made. It hides the cause, which may quote a password."""
    return ModelError("the proxy or certificates set in the environment cannot be used "
                      f"({type(error).__name__}); check HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE, PIP_CERT")


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers and body of a server's reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes


FILTERED = re.compile(r"content.?(?:filter|polic)|moderat|flagged|safety|prohibited.content|recitation|blocklist"
                       r"|^sensitive$", re.IGNORECASE)
_STATUS_OF_WORD = {  # for errors that are named by a word instead of a number; the first match counts
    429: r"rate.?limit|too.?many|exhausted|quota|throttl",
    503: r"overload|unavailable|capacity|insufficient_system_resource|abort",
    504: r"timed?.?out|deadline",
    401: r"authenti|unauthori|api.?key",
    403: r"permission|forbidden",
    404: r"not.?found",
    400: rf"invalid.(?:request|argument|parameter)|bad.?request|context.(?:length|size)|{FILTERED.pattern}",
    502: r"network|upstream|bad.?gateway|provider"}
_FAILED = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})  # finish reasons


def unwrap_error(answer: Response) -> Response:
    """Return the error in a reply with HTTP status 200 as a response with the error's own status. A reply without an
    error is returned as it is.

    Gateways send status 200 before they know how a call ends. The error is then in the field `error` of the reply or of
    its choice, or only the finish reason names it. A reply without choices may also be an error object itself.
    """
    data = _parse_object(answer.body) if answer.status == 200 else {}
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    error, finish = data.get("error") or choice.get("error"), str(choice.get("finish_reason"))
    if not error and (finish in _FAILED or FILTERED.search(finish)):
        error = {"code": finish, "message": f"finish_reason: {finish}"}
    if data and not error and not choice and error_message(named := parse_error(answer.body)):
        error = named
    status = _status_of(error, data) if error else 200
    if status < 400:
        return answer
    return Response(status, answer.headers, json.dumps({"error": error}).encode())


def _status_of(error: Any, data: Mapping[str, Any]) -> int:
    """Return the HTTP status for the code, status, type or message of an error in `data`. It is 500 if they are
    unknown, and 0 or 200 if the code means success."""
    given = error if isinstance(error, Mapping) else data
    given = given["error"] if isinstance(given.get("error"), Mapping) else given
    said = [str(given.get(name)) for name in ("code", "status", "status_code", "type")]
    if known := [int(one) for one in said if re.fullmatch(r"0|200|[45][0-9]{2}", one)]:
        return known[0]
    said.append(error_message(error if isinstance(error, Mapping) else {"message": error}))
    return next((status for one in said for status, words in _STATUS_OF_WORD.items()
                 if re.search(words, one, re.IGNORECASE)), 500)


def connection_errors() -> tuple[type[Exception], ...]:
    """Return the errors of connections: those of httpx, and those of TLS connections that it does not turn into its
    own."""
    import ssl

    import anyio
    import httpx2  # takes 70 ms

    return httpx2.TransportError, ssl.SSLError, anyio.EndOfStream


@contextmanager
def transport_errors() -> Iterator[None]:
    """Turn errors of the HTTP client into ConnectionError with a readable cause."""
    try:
        yield
    except connection_errors() as error:
        raise ConnectionError(describe_error(error)) from None


def describe_error(error: BaseException) -> str:
    """Return the class and text of an error, as in "ConnectError: connection refused"."""
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name
