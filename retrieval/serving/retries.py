"""When to try again: exponential back-off with full jitter, and what `Retry-After` asks for."""
from __future__ import annotations

import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite

_FIRST, _LONGEST = 0.5, 30.0
_MOST_ASKED = 1e8  # seconds, three years: beyond every deadline, and short enough to be told


def back_off(attempt: int) -> float:
    """Seconds to wait after the given attempt, counted from 1: uniform below a doubling bound.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 ("full jitter").
    """
    return random.uniform(0.0, min(_LONGEST, _FIRST * 2.0 ** min(attempt - 1, 16)))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, given as seconds or as an HTTP date; None where it does not say.

    `Retry-After-Ms`, in milliseconds, goes before `Retry-After`, as in OpenAI's own client; like that client, this
    does not read `x-ratelimit-reset-*`, which tells when a limit is whole again and not when to come back.
    """
    wait = _number(headers.get("retry-after-ms", ""))
    if wait is not None:
        return wait / 1000
    value = headers.get("retry-after", "").strip()
    return _until(value) if _number(value) is None else _number(value)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return min(max(number, 0.0), _MOST_ASKED) if isfinite(number) else None


def _until(date: str) -> float | None:
    try:
        return max(parsedate_to_datetime(date).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None
