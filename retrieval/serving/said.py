"""What a server's reply says of itself: whether to try again, in which words it refuses, whether it can be read."""
from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from documents.errors import ModelError
from retrieval.serving.servers import clean

_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)


def is_transient(status: int, body: bytes = b"") -> bool:
    """Whether the same request may succeed later."""
    if status == 429:  # one request may be more than the limit of a whole minute
        return not _TOO_LARGE.search(server_message(error_of(body), ""))
    return status in {408, 409, 425} or status >= 500


def is_compressed(headers: Mapping[str, str]) -> bool:
    """Whether a reply is, though that was not asked for: a few compressed bytes could stand for gigabytes."""
    return headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


def error_of(body: bytes) -> dict[str, Any]:
    """The error object of the usual shapes: `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": "…"}`."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    error = data.get("error", data)
    if isinstance(error, dict):
        return error if "message" in error else {**error, "message": error.get("detail")}
    return {"message": error}


def server_message(error: Mapping[str, Any], key: str) -> str:
    """The message in an error object as one short printable line without the key."""
    message = error.get("message")
    return clean(message if isinstance(message, str) else "", key)


def unusable_environment(error: Exception) -> ModelError:
    """The error of a client that cannot be made. Its own message may hold the proxy's password."""
    return ModelError("the proxy or certificates named in the environment cannot be used "
                      f"({type(error).__name__}); see HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE")
