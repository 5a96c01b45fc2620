"""Interpret a model server's errors, and choose whether to stream from it."""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragbed.documents.errors import CallError, CallTooLong, ModelError, RagbedError
from ragbed.documents.http import FILTERED, Address, error_message, parse_error

_TOO_LONG_CODES = frozenset({"exceed_context_size_error", "context_length_exceeded"})
_TOO_LONG = re.compile(r"maximum context length|maximum model length|context (?:size|window|length)"
                       r"|prompt is too long|input is too long|maximum number of tokens", re.IGNORECASE)
_NO_TOOLS = re.compile(r"\btool.?(?:use|call|choice)|support\w* tools|function.?call", re.IGNORECASE)
_BAD_KEY = re.compile(r"api.?key (?:is )?(?:not valid|invalid)|invalid api.?key", re.IGNORECASE)  # Gemini sends 400
_OVERLOAD = re.compile(r"overload|rate.?limit|slow.?down|too.?many|exhausted", re.IGNORECASE)
_LIMIT = re.compile(r"(?:maximum (?:context|model) length (?:is|of)|context size \(|window (?:is|of))\s*(\d+)",
                    re.IGNORECASE)
_SIZE = re.compile(r"(?:resulted in|requested|request has|\(length|request \(|prompt is too long:|contains at least)"
                   r"\s*(\d+)", re.IGNORECASE)
_MAX_SCANNED = 2_000  # maximum bytes of an error body


def is_overload(status: int, body: bytes, asked: float | None) -> bool:
    """Tell whether the server is overloaded or limits the rate, so that it would reject other requests too. `asked` is
    the wait in seconds that it requests, if any."""
    if status in {429, 529}:  # 529: Anthropic's status for overload
        return True
    if status != 503:
        return False
    error = parse_error(body)
    said = (error_message(error, ""), str(error.get("code")), str(error.get("type")))
    return asked is not None or bool(_OVERLOAD.search(" ".join(said)))


def error_from_response(status: int, body: bytes, address: Address, model: str, attempts: int,
            accepted: bool = False) -> RagbedError:
    """Return the error for a status other than 200.

    It is a ModelError if every call would fail, CallTooLong if the prompt does not fit, and otherwise a CallError of
    kind `http_<status>`. If the server `accepted` a call before, status 403 is about the prompt and not the key.
    """
    error = parse_error(body)
    said = error_message(error, address.key)
    code = {str(error.get("code")), str(error.get("type"))}
    if status == 401 or (status == 400 and _BAD_KEY.search(said)) or (
            status == 403 and not accepted and not FILTERED.search(" ".join((said, *code)))):
        variable = address.key_variable
        remedy = f"set {variable} to a valid key" if variable else "the key is not valid"
        return ModelError(f"{model}: {address.url} rejects the key (HTTP {status}); {remedy}"
                          f"{_quote(said) if status == 403 else ''}")
    if status == 404 and not _NO_TOOLS.search(said):  # OpenRouter's status if no host of the model supports tools
        return ModelError(f"{model}: unknown model or address at {address.url} (HTTP 404); "
                          f"check both{_quote(said)}")
    if "insufficient_quota" in code:
        return ModelError(f"{model}: the account behind {address.key_variable or 'the key'} has no quota left "
                          f"(HTTP {status})")
    if status in {400, 413, 422} and (code & _TOO_LONG_CODES or _TOO_LONG.search(said) or status == 413):
        return CallTooLong(_sizes(error, said), "too_long", attempts)
    if status == 400 and any(map(FILTERED.search, code)):
        return CallError(f"{model}: the server's content filter stopped the reply{_quote(said)}", "content_filter",
                         attempts)
    if 300 <= status < 400:
        return CallError(f"{model}: the server redirects (HTTP {status}), which is not followed; give the final URL",
                         f"http_{status}", attempts)
    return CallError(f"{model}: HTTP {status}{_quote(said)}", f"http_{status}", attempts)


_LIMITS = ("max_tokens", "max_completion_tokens")
_DROPPABLE = ("temperature", "seed", "stop", "response_format", "tool_choice", *_LIMITS)  # requests can do without
_REFUSED = (r"(?:unsupported|un(?:known|recogni[sz]ed|expected)|"
            r"(?:not|n't|cannot) (?:be )?(?:support|permit|allow|compat)|deprecated|"
            r"extra (?:inputs|fields)|cannot find|use '?max_completion_tokens)")
_BETWEEN = r"[^.;{}]{0,60}?"  # characters of the same sentence or field
_AT_FAULT = re.compile(r"invalid schema|schema (?:is )?invalid|in context|too (?:large|many|long)|at most|exceed|"
                       r"maximum", re.IGNORECASE)
_PLACE = re.compile(rb'"loc"\s*:\s*\[[^\]]{0,99}"(\w{1,40})"\s*\]')


def refused_parameter(status: int, body: bytes, sent: Mapping[str, Any]) -> str | None:
    """Return the optional parameter that the server does not accept; None if the error has another cause.

    It is named by `param` or pydantic's `loc` in the error, or in the same sentence as a word such as "unsupported".
    Values out of range and schemas with mistakes are other causes.
    """
    if status not in {400, 422}:
        return None
    error = parse_error(body)
    said = error_message(error)
    if _AT_FAULT.search(said):
        return None
    named = [error.get("param"), *(place.decode() for place in _PLACE.findall(body[:_MAX_SCANNED]))]
    for name in (name for name in _DROPPABLE if name in sent):
        same = rf"\b{name}\b{_BETWEEN}{_REFUSED}|{_REFUSED}{_BETWEEN}\b{name}\b"
        if re.search(same, said, re.IGNORECASE) or (
                name in named and re.search(_REFUSED, f"{error.get('code')} {said}", re.IGNORECASE)):
            return name
    return None


def other_limit(name: str) -> str | None:
    """Return the other name of the limit on a reply's tokens; None for other parameters."""
    return next((one for one in _LIMITS if one != name), None) if name in _LIMITS else None


def _sizes(error: Mapping[str, Any], said: str) -> str:
    size, limit = error.get("n_prompt_tokens"), error.get("n_ctx")
    if not isinstance(size, int) or not isinstance(limit, int):
        found_size, found_limit = _SIZE.search(said), _LIMIT.search(said)
        size = found_size and found_size[1]
        limit = found_limit and found_limit[1]
    if size and limit:
        return f"the prompt has {size} tokens and the model's context holds {limit}"
    return f"the prompt does not fit the model's context{_quote(said)}"


def _quote(said: str) -> str:
    return f': "{said}"' if said else ""


@dataclass(frozen=True, slots=True)
class StreamMode:
    """How to request one reply: whole or streamed, and with or without token counts."""

    pieces: bool = False  # whether to stream
    counted: bool = False  # whether to request token counts, which only streams need

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a streaming request."""
        return {**body, "stream": True, **({"stream_options": {"include_usage": True}} if self.counted else {})}


NOT_STREAMED = StreamMode()


class StreamNegotiator:
    """Learns from errors and replies whether a server can stream, and whether it counts the tokens of streams. The mode
    of the request is passed with each error or reply, because requests are concurrent."""

    def __init__(self) -> None:
        self._refused = self._uncounted = self._never_counted = False
        self._counts = True

    def next(self) -> StreamMode:
        """Return the mode of the next request."""
        pieces = not self._refused and not self._uncounted
        return StreamMode(pieces, pieces and self._counts)

    def refuses(self, way: StreamMode, status: int, body: bytes) -> bool:
        """Tell whether the server rejects the mode of a request, so that the call can be sent again in another mode."""
        text = body[:_MAX_SCANNED]
        if status not in {400, 422, 501} or not way.pieces or b"stream" not in text:
            return False
        if way.counted and b"stream_options" in text:
            self._counts = False
        else:
            self._refused = True
        return True

    def note_missing_counts(self, way: StreamMode) -> None:
        """Note a reply without token counts, which budgets need. If it was streamed, the next request is not. If that
        reply has no counts either, later requests are streamed again."""
        self._uncounted = way.pieces and not self._never_counted
        self._never_counted = self._never_counted or not way.pieces
