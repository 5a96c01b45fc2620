"""What a server's refusal means: try again, in another way or later, give this call up, or stop the run."""
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
_SAID_OF_STREAMS = 2_000  # bytes of a refusal


def is_overload(status: int, body: bytes, asked: float | None) -> bool:
    """Say whether a request that may succeed later was refused for the number of requests, so that others would be too;
    `asked` are the seconds that the server asks to wait, None where it does not say."""
    if status in {429, 529}:  # 529 is Anthropic's for an overloaded service
        return True
    if status != 503:
        return False
    error = parse_error(body)
    said = (error_message(error, ""), str(error.get("code")), str(error.get("type")))
    return asked is not None or bool(_OVERLOAD.search(" ".join(said)))


def error_from_response(status: int, body: bytes, address: Address, model: str, attempts: int,
            accepted: bool = False) -> RagbedError:
    """Return the error that a status other than 200 stands for: ModelError where the user has to mend something and
    every other call would fail alike; CallTooLong where the prompt does not fit; else CallError, `http_<status>`. Where
    a call to this model was `accepted` before, a 403 is about this prompt and not the key."""
    error = parse_error(body)
    said = error_message(error, address.key)
    code = {str(error.get("code")), str(error.get("type"))}
    if status == 401 or (status == 403 and not accepted and not _FILTERED.search(" ".join((said, *code)))):
        variable = address.key_variable
        remedy = f"set {variable} to a key that it accepts" if variable else "its key is not accepted"
        return ModelError(f"{model}: {address.url} refuses the key (HTTP {status}); {remedy}"
                          f"{_quoted(said) if status == 403 else ''}")
    if status == 404 and not _NO_TOOLS.search(said):  # which OpenRouter says where no host of the model takes tools
        return ModelError(f"{model}: {address.url} does not know this model or address (HTTP 404); "
                          f"check both{_quoted(said)}")
    if "insufficient_quota" in code:
        return ModelError(f"{model}: the account behind {address.key_variable or 'the key'} has no quota left "
                          f"(HTTP {status})")
    if status in {400, 413, 422} and (code & _TOO_LONG_CODES or _TOO_LONG.search(said) or status == 413):
        return CallTooLong(_sizes(error, said), "too_long", attempts)
    if status in {400, 422} and "temperature" in said and "support" in said:
        return CallError(f"{model} refuses the temperature that was asked for (HTTP {status}); to send none, set "
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
    """A way of asking for one reply."""

    pieces: bool = False  # whether in pieces rather than in one
    counted: bool = False  # whether with the tokens that the pieces took, which a reply in one says unasked

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request's body with these wishes, for pieces."""
        return {**body, "stream": True, **({"stream_options": {"include_usage": True}} if self.counted else {})}


NOT_STREAMED = StreamMode()


class StreamNegotiator:
    """Learns how a server is best asked for replies in pieces from what it refuses, and from what it leaves out. Many
    requests are under way at once, so each is judged by the way in which it was itself asked."""

    def __init__(self) -> None:
        self._refused = self._uncounted = self._never_counted = False
        self._counts = True

    def next(self) -> StreamMode:
        """Return how the next request for pieces is best asked."""
        pieces = not self._refused and not self._uncounted
        return StreamMode(pieces, pieces and self._counts)

    def refuses(self, way: StreamMode, status: int, body: bytes) -> bool:
        """Say whether a refusal is of the pieces rather than the call, which may be sent again in another way."""
        said = body[:_SAID_OF_STREAMS]
        if status not in {400, 422, 501} or not way.pieces or b"stream" not in said:
            return False
        if way.counted and b"stream_options" in said:
            self._counts = False
        else:
            self._refused = True
        return True

    def came_uncounted(self, way: StreamMode) -> None:
        """Learn that a reply came without its tokens, which a question's budget counts. After one in pieces the next is
        asked for in one; where that has none either, nothing is gained."""
        self._uncounted = way.pieces and not self._never_counted
        self._never_counted = self._never_counted or not way.pieces
