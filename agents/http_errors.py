"""Interpret a model server's HTTP errors, and choose whether to stream from it."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragbed.documents.errors import CallError, CallTooLong, ModelError, RagbedError
from ragbed.documents.http import Address, error_message, parse_error

_TOO_LONG_CODES = frozenset({"exceed_context_size_error", "context_length_exceeded"})
_TOO_LONG = re.compile(r"maximum context length|maximum model length|context (?:size|window|length)"
                       r"|prompt is too long|input is too long", re.IGNORECASE)
_FILTERED = re.compile(r"content.?(?:filter|polic)|moderat|flagged|safety", re.IGNORECASE)
_NO_TOOLS = re.compile(r"\btool.?(?:use|call|choice)|support\w* tools|function.?call", re.IGNORECASE)
_OVERLOAD = re.compile(r"overload|rate.?limit|slow.?down|too.?many|exhausted", re.IGNORECASE)
_LIMIT = re.compile(r"(?:maximum (?:context|model) length (?:is|of)|context size \(|window (?:is|of))\s*(\d+)",
                    re.IGNORECASE)
_SIZE = re.compile(r"(?:resulted in|requested|request has|\(length|request \(|prompt is too long:|contains at least)"
                   r"\s*(\d+)", re.IGNORECASE)
_MAX_SCANNED = 2_000  # maximum bytes of an error body


def is_overload(status: int, body: bytes, asked: float | None) -> bool:
    """Tell whether a request was rate limited, so that others would be rejected too. `asked` is the wait in seconds
    that the server requests, if any."""
    if status in {429, 529}:  # 529: Anthropic's status for overload
        return True
    if status != 503:
        return False
    error = parse_error(body)
    said = (error_message(error, ""), str(error.get("code")), str(error.get("type")))
    return asked is not None or bool(_OVERLOAD.search(" ".join(said)))


def error_from_response(status: int, body: bytes, address: Address, model: str, attempts: int,
            accepted: bool = False) -> RagbedError:
    """Return the error for an HTTP status other than 200.

    ModelError if every call would fail, CallTooLong if the prompt does not fit, otherwise CallError of kind
    `http_<status>`. If a call was `accepted` before, a 403 concerns the prompt and not the key.
    """
    error = parse_error(body)
    said = error_message(error, address.key)
    code = {str(error.get("code")), str(error.get("type"))}
    if status == 401 or (status == 403 and not accepted and not _FILTERED.search(" ".join((said, *code)))):
        variable = address.key_variable
        remedy = f"set {variable} to a valid key" if variable else "the key is not valid"
        return ModelError(f"{model}: {address.url} rejects the key (HTTP {status}); {remedy}"
                          f"{_quoted(said) if status == 403 else ''}")
    if status == 404 and not _NO_TOOLS.search(said):  # OpenRouter's status if no host of the model supports tools
        return ModelError(f"{model}: unknown model or address at {address.url} (HTTP 404); "
                          f"check both{_quoted(said)}")
    if "insufficient_quota" in code:
        return ModelError(f"{model}: the account behind {address.key_variable or 'the key'} has no quota left "
                          f"(HTTP {status})")
    if status in {400, 413, 422} and (code & _TOO_LONG_CODES or _TOO_LONG.search(said) or status == 413):
        return CallTooLong(_sizes(error, said), "too_long", attempts)
    if status in {400, 422} and "temperature" in said and "support" in said:
        return CallError(f"{model} rejects the temperature (HTTP {status}); send none: "
                         f"calls: {{temperature: null}}, or --temperature none{_quoted(said)}",
                         f"http_{status}", attempts)
    if 300 <= status < 400:
        return CallError(f"{model}: the server redirects (HTTP {status}), which is not followed; give the final URL",
                         f"http_{status}", attempts)
    return CallError(f"{model}: HTTP {status}{_quoted(said)}", f"http_{status}", attempts)


def _sizes(error: Mapping[str, Any], said: str) -> str:
    size, limit = error.get("n_prompt_tokens"), error.get("n_ctx")
    if not isinstance(size, int) or not isinstance(limit, int):
        found_size, found_limit = _SIZE.search(said), _LIMIT.search(said)
        size = found_size and found_size[1]
        limit = found_limit and found_limit[1]
    if size and limit:
        return f"the prompt has {size} tokens and the model's context holds {limit}"
    return f"the prompt does not fit the model's context{_quoted(said)}"


def _quoted(said: str) -> str:
    return f': "{said}"' if said else ""


@dataclass(frozen=True, slots=True)
class StreamMode:
    """The way to request one reply."""

    pieces: bool = False  # whether to stream
    counted: bool = False  # whether to request token counts, which whole replies have anyway

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a streaming request."""
        return {**body, "stream": True, **({"stream_options": {"include_usage": True}} if self.counted else {})}


NOT_STREAMED = StreamMode()


class StreamNegotiator:
    """Learns from a server's errors and replies whether it streams, and whether it counts tokens of streams. Requests
    are concurrent, so each error or reply comes with the mode of its request."""

    def __init__(self) -> None:
        self._refused = self._uncounted = self._never_counted = False
        self._counts = True

    def next(self) -> StreamMode:
        """Return the mode of the next request."""
        pieces = not self._refused and not self._uncounted
        return StreamMode(pieces, pieces and self._counts)

    def refuses(self, way: StreamMode, status: int, body: bytes) -> bool:
        """Tell whether an error is about streaming, so that the call can be sent again in another mode."""
        text = body[:_MAX_SCANNED]
        if status not in {400, 422, 501} or not way.pieces or b"stream" not in text:
            return False
        if way.counted and b"stream_options" in text:
            self._counts = False
        else:
            self._refused = True
        return True

    def came_uncounted(self, way: StreamMode) -> None:
        """Note a reply without token counts, which budgets need. After a streamed one, the next request is not
        streamed. If its reply has no counts either, later requests are streamed again."""
        self._uncounted = way.pieces and not self._never_counted
        self._never_counted = self._never_counted or not way.pieces
