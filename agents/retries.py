"""When to try again: exponential back-off with full jitter, and what `Retry-After` asks for."""
from __future__ import annotations

import random
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite

_FIRST, _LONGEST = 0.5, 30.0


def back_off(attempt: int) -> float:
    """Seconds to wait after the given attempt, counted from 1: uniform below a doubling bound.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 ("full jitter").
    """
    return random.uniform(0.0, min(_LONGEST, _FIRST * 2.0 ** min(attempt - 1, 16)))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, given as seconds or as an HTTP date; None where it does not say."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _until(value)
    return max(seconds, 0.0) if isfinite(seconds) else None


def _until(date: str) -> float | None:
    try:
        return max(parsedate_to_datetime(date).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None
