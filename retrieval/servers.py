"""Servers that speak OpenAI's protocol: address and key, when to try again, and what a refusal says."""
from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from ragbed.documents.errors import ModelError
from ragbed.documents.json import loads

OPENAI_HOST = "api.openai.com"
SERVED = ("openai", "http", "https")  # what stands before the colon in the name of a model that is served elsewhere
KEYS_OF_SERVERS = ("OPENAI_API_KEY", "RAGBED_API_KEY", "MILVUS_TOKEN")  # the variables that hold them
_OPENAI_URL = f"https://{OPENAI_HOST}/v1"
_NO_KEY = "none"  # the OpenAI client sends some key always
_MESSAGE = 200  # characters of what a server says
_SHORTEST_KEY = 8  # a shorter one is a placeholder such as `x`, and would be found inside ordinary words


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL and the key that it wants."""

    url: str  # base URL, without user, password or query
    key: str = field(repr=False)
    key_variable: str | None = None  # the environment variable that holds the key; None where no user ever sets it


def served_at(spec: str, *, calls: bool = True) -> tuple[Address, str]:
    """Return the address and the served name of `openai:NAME` or `http(s)://host/v1#NAME`; without `calls` the key may
    be missing. Raises ModelError for another form, no name, a URL that holds secrets, a missing key or one that cannot
    be sent."""
    if spec.startswith("openai:"):
        name = _named(spec.partition(":")[2])
        url = checked_url(os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL, "OPENAI_BASE_URL")
        key = _key("OPENAI_API_KEY", required=calls) or _NO_KEY
        return Address(url, key, "OPENAI_API_KEY"), name
    url, _, name = spec.partition("#")
    key = _key("RAGBED_API_KEY", required=False) or _NO_KEY
    return Address(checked_url(url, "a model's URL"), key, "RAGBED_API_KEY"), _named(name)


def is_loopback(url: str) -> bool:
    """Tell whether the URL's host is this machine, so that no proxy may stand between."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def clean(text: str, key: str = "", limit: int = _MESSAGE) -> str:
    """Hostile text as one printable line: no control characters, no key, at most `limit` characters."""
    text = hide_keys(text[:20 * limit], key)
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= limit else line[:limit - 1] + "…"


def known_keys(key: str = "") -> list[str]:
    """List the key and those of the environment, which another server may hold, the longest first; no placeholders."""
    known = {key, *(os.environ.get(variable, "").strip() for variable in KEYS_OF_SERVERS)}
    return sorted((one for one in known if len(one) >= _SHORTEST_KEY), key=len, reverse=True)


def hide_keys(text: str, key: str = "") -> str:
    """Return the text of somebody else without the key, and without those of the environment."""
    for known in known_keys(key):
        text = text.replace(known, "[key]")
    return text


def _named(name: str) -> str:
    """The name. It is shown and recorded, so neither it nor what stands where it is missing is quoted."""
    if not name.strip():
        raise ModelError("no model is named; the forms are openai:NAME and http://host/v1#NAME")
    if set(name) & set("?&="):
        raise ModelError("a model's name must not hold ?, & or =, as a query does; the key goes into "
                         "RAGBED_API_KEY, or OPENAI_API_KEY for openai:NAME")
    return name


def checked_url(url: str, what: str) -> str:
    """Return the base URL; ModelError for one that carries a password or query, for names are shown and recorded."""
    try:
        parts = urlsplit(url)
        # Reading the port checks it.
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, whole = urlsplit(""), False
    if parts.username or parts.password or parts.query:
        raise ModelError(f"{what} must not hold a user, password or query; "
                         "the key goes into RAGBED_API_KEY, or OPENAI_API_KEY for openai:NAME")
    if not whole:
        form = "http://host/v1" if what == "OPENAI_BASE_URL" else "http://host/v1#NAME"
        raise ModelError(f"{what} is written {form} or {form.replace('http', 'https')}")
    return url.rstrip("/")


def _key(variable: str, *, required: bool) -> str:
    key = os.environ.get(variable, "").strip()
    if required and not key:
        raise ModelError(f"no key: set {variable}")
    # A header cannot carry these, and the error of whoever tries shows the key.
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ModelError(f"{variable} holds spaces or characters that no key has")
    return key


_FIRST, _LONGEST = 0.5, 30.0
_MOST_ASKED = 1e8  # seconds, three years: beyond every deadline, and short enough to be told


def back_off(attempt: int) -> float:
    """Return seconds to wait after the given attempt, counted from 1: uniform below a doubling bound (M. Brooker,
    "Exponential Backoff And Jitter", AWS Architecture Blog, 2015, "full jitter")."""
    return random.uniform(0.0, min(_LONGEST, _FIRST * 2.0 ** min(attempt - 1, 16)))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds that the server asks to wait, given as seconds or as an HTTP date; None where it does not say.

    `Retry-After-Ms`, in milliseconds, goes before `Retry-After`, as in OpenAI's own client; like that client, this
    does not read `x-ratelimit-reset-*`, which tells when a limit is whole again and not when to come back.
    """
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
    return min(max(number, 0.0), _MOST_ASKED) if isfinite(number) else None


_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)


def is_transient(status: int, body: bytes = b"") -> bool:
    """Tell whether the same request may succeed later."""
    if status == 429:  # one request may be more than the limit of a whole minute
        return not _TOO_LARGE.search(server_message(error_of(body), ""))
    return status in {408, 409, 425} or status >= 500


def is_compressed(headers: Mapping[str, str]) -> bool:
    """Tell whether a reply is, though that was not asked for: a few compressed bytes could stand for gigabytes."""
    return headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


def error_of(body: bytes) -> dict[str, Any]:
    """Return the error object of the usual shapes: under `error` a mapping or a text, or `message`, or `detail`."""
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


def server_message(error: Mapping[str, Any], key: str) -> str:
    """Return the message in an error object as one short printable line without the key."""
    message = error.get("message")
    return clean(message if isinstance(message, str) else "", key)


def unusable_environment(error: Exception) -> ModelError:
    """Return the error of a client that cannot be made. Its own message may hold the proxy's password."""
    return ModelError("the proxy or certificates named in the environment cannot be used "
                      f"({type(error).__name__}); see HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE, PIP_CERT")
