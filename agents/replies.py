"""Read chat completions, whole or streamed, and price them. Prices come from the settings, or from the price table of
the package genai-prices, which is not updated over the network."""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ragbed.agents.model_settings import Price
from ragbed.documents.http import MAX_REPLY_BYTES, BadReply, error_message, is_loopback
from ragbed.documents.json import find_object, loads
from ragbed.documents.keys import known_keys
from ragbed.documents.types import replace_surrogates
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Reply, Usage

Pricer = Callable[[int, int, int], "float | None"]
"""Function that returns the price of prompt, completion and cached tokens in US dollars; None if unknown."""
OnEvent = Callable[[str, str], None]
"""Called with `token` or `reasoning` and a piece of text, or with `retry` and why earlier pieces are void."""

_MAX_TOKENS = 10**9  # maximum tokens of one call, far beyond any context
_MAX_CALLS, _MAX_NAME, _MAX_ARGUMENTS = 64, 200, 20_000  # tool calls; characters of a name and of arguments
_KINDS = {"content": "token", "refusal": "token", "reasoning_content": "reasoning", "reasoning": "reasoning"}


def read_reply(data: Any, schema: Mapping[str, Any] | None, price: Pricer) -> Reply:
    """Return the reply in a parsed body. If a schema was requested, also read its text as JSON. Raises BadReply if
    there is none."""
    choices = data.get("choices") if isinstance(data, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise BadReply("the reply contains no message")
    text = _join_text(message.get("content")) or _join_text(message.get("refusal"))
    reasoning = _join_text(message.get("reasoning_content")) or _join_text(message.get("reasoning"))
    parsed = None if schema is None else parse_object(text, schema)
    return Reply(text, reasoning, _tool_calls(message.get("tool_calls")), parsed, _usage(data, price),
                 _join_text(choice.get("finish_reason")) or "unknown")


def parse_object(text: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Read the JSON object in a text, alone or among other text outside `<think>`; None if it has none."""
    try:
        value = loads(text, mend=True, lenient=True)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else find_object(strip_thinking(text), (schema or {}).get("properties"))


def server_timings(data: Mapping[str, Any]) -> Mapping[str, float]:
    """Return the timings that llama.cpp's server reports; empty for other servers."""
    value = data.get("timings")
    items = value.items() if isinstance(value, dict) else ()
    return {name: number for name, number in items if isinstance(number, int | float)}


def _join_text(content: Any) -> str:
    if isinstance(content, list):
        content = "".join(part["text"] for part in content
                          if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def _tool_calls(calls: Any) -> tuple[Mapping[str, Any], ...]:
    """Return tool calls with the fields of chat completions only, truncated if there are too many."""
    listed = calls[:_MAX_CALLS] if isinstance(calls, list) else []
    functions = [(call, call["function"]) for call in listed
                 if isinstance(call, dict) and isinstance(call.get("function"), dict)]
    return tuple({"id": _join_text(call.get("id"))[:_MAX_NAME], "type": "function", "function": {
        "name": _join_text(function.get("name"))[:_MAX_NAME],
        "arguments": _arguments(function.get("arguments"))[:_MAX_ARGUMENTS]}} for call, function in functions)


def _arguments(given: Any) -> str:
    """Return arguments as JSON text without unnecessary escapes, which could hide an API key."""
    try:
        given = loads(given, mend=True) if isinstance(given, str) and "\\" in given else given
    except ValueError:
        return str(given)
    return json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else _join_text(given)


def _usage(data: Mapping[str, Any], price: Pricer) -> Usage:
    raw = data.get("usage")
    usage: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
    details = usage.get("prompt_tokens_details")
    found = details.get("cached_tokens") if isinstance(details, dict) else usage.get(
        "prompt_cache_hit_tokens", usage.get("cache_read_input_tokens"))
    if found is None:
        found = server_timings(data).get("cache_n")
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    cached = _count(found)
    prompt += cached if cached > prompt > 0 else 0  # servers that report more cached than prompt tokens exclude these
    cached = min(cached, prompt)
    return Usage(prompt, completion, cached, 1, price(prompt, completion, cached))


def _count(value: Any) -> int:
    return value if type(value) is int and 0 < value <= _MAX_TOKENS else 0


def free_price(prompt: int, completion: int, cached: int) -> float:
    """Return 0, the price of a local model."""
    return 0.0


def fixed_price(given: Price) -> Pricer:
    """Return a pricer for a price in the settings."""
    cached_price = given.prompt if given.cached is None else given.cached

    def price(prompt: int, completion: int, cached: int) -> float:
        return ((prompt - cached) * given.prompt + cached * cached_price + completion * given.completion) / 1_000_000

    return price


def listed_price(url: str, model: str) -> Pricer:
    """Return a pricer with the provider's list prices. It returns None if the model or provider is unknown."""
    known = not is_loopback(url)

    def price(prompt: int, completion: int, cached: int) -> float | None:
        nonlocal known
        if not known:
            return None
        from genai_prices import Usage, calc_price
        try:
            usage = Usage(input_tokens=prompt, output_tokens=completion, cache_read_tokens=cached)
            return float(calc_price(usage, model, provider_api_url=url).total_price)
        except LookupError:
            known = False
            return None

    return price


class StreamAssembler:
    """Assembles a streamed chat completion, and emits its text as it arrives. The end of the text is held back while it
    may be the beginning of an API key or half of a surrogate pair."""

    def __init__(self, on_event: OnEvent, key: str) -> None:
        self._on_event, self._keys = on_event, known_keys(key)
        self._texts: dict[str, list[str]] = {}
        self._held: dict[str, str] = {}
        self._calls: list[dict[str, Any]] = []
        self._rest: dict[str, Any] = {}
        self._finish: Any = None
        self.failed = False  # whether a chunk contained an error
        self._size = 0

    @property
    def whole(self) -> bool:
        """Return whether the stream ended with a finish reason or an error. Otherwise it was interrupted."""
        return self._finish is not None or self.failed

    def add(self, chunk: Any) -> None:
        """Add one chunk. Raises BadReply if the chunk is invalid, or the reply becomes too large."""
        if not isinstance(chunk, dict):
            raise BadReply("the stream contains something that is not a chunk of a reply")
        self._rest |= {name: chunk[name] for name in ("usage", "timings") if isinstance(chunk.get(name), dict)}
        choices = chunk.get("choices")
        if not choices and error_message(chunk):  # an error without the field `error`
            self._rest["error"] = chunk
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):
                self._rest |= {"error": choice["error"]} if choice.get("error") else {}
                self._take(choice.get("delta"))
                self._finish = choice.get("finish_reason") or self._finish
        self.failed = "error" in self._rest

    def body(self) -> bytes:
        """Emit the text that was held back, and return the body of the whole completion."""
        for kind in list(self._held):
            self._emit(kind, "", last=True)
        message: dict[str, Any] = {"role": "assistant", **{name: "".join(self._texts[name]) for name in self._texts}}
        if self._calls:
            message["tool_calls"] = [{**call, "function": {name: "".join(parts) for name, parts in
                                                           call["function"].items()}} for call in self._calls]
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return json.dumps({"choices": [choice], **self._rest}).encode()

    def _take(self, delta: Any) -> None:
        if not isinstance(delta, dict):
            return
        for name, kind in _KINDS.items():
            piece = _join_text(delta.get(name))
            if piece:
                self._texts.setdefault(name, []).append(piece)
                self._grow(piece)
                # some servers send reasoning under both names
                if name != "reasoning" or not delta.get("reasoning_content"):
                    self._emit(kind, piece)
        calls = delta.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self._take_call(call)

    def _emit(self, kind: str, piece: str, last: bool = False) -> None:
        text = self._held.pop(kind, "") + piece
        for key in self._keys:
            text = text.replace(key, "[key]")
        held = 0
        if not last:
            held = max((size for key in self._keys for size in range(1, min(len(key), len(text) + 1))
                        if key.startswith(text[-size:])), default=int("\ud800" <= text[-1] <= "\udbff"))
        if held:
            text, self._held[kind] = text[:-held], text[-held:]
        if text:
            self._on_event(kind, replace_surrogates(text))

    def _take_call(self, call: Mapping[str, Any]) -> None:
        known = self._call(call)
        known |= {name: value for name, value in call.items() if name not in ("index", "function") and value}
        function = call.get("function")
        for name, part in function.items() if isinstance(function, dict) else ():
            if isinstance(part, str):
                known["function"].setdefault(name, []).append(part)
                self._grow(part)

    def _call(self, piece: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool call that a piece belongs to, by its index or, as some servers send no index, by its id."""
        index, id = piece.get("index"), piece.get("id")
        at = index if type(index) is int and 0 <= index < len(self._calls) else len(self._calls) - 1
        fresh = type(index) is int and index >= len(self._calls)
        if fresh or at < 0 or (id and self._calls[at].get("id") not in (None, id)):
            self._grow("{}")
            self._calls.append({"function": {}})
            at = -1
        return self._calls[at]

    def _grow(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > MAX_REPLY_BYTES:
            raise BadReply(f"the reply is larger than {MAX_REPLY_BYTES >> 20} MB")
