"""Reading the body of a chat completion: text, reasoning, tool calls, usage."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from strategies.types import Reply, Usage

Pricer = Callable[[int, int, int], "float | None"]


_MOST_TOKENS = 10**9  # of one call, far beyond any context
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_MOST_CALLS, _LONGEST_NAME, _LONGEST_ARGUMENTS = 64, 200, 20_000  # of tools in one reply; the others are characters


class BadJson(ValueError):
    """The body is not JSON."""


class BadReply(ValueError):
    """The body is JSON, and no chat completion."""


def parse_body(body: bytes) -> Any:
    """The body as JSON.

    Raises:
        BadJson: it is not JSON, or nested beyond reason.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BadJson from None


def read_reply(data: Any, wants_object: bool, price: Pricer) -> Reply:
    """The reply that a parsed body holds; its text may be empty.

    Args:
        wants_object: whether a schema was asked for, so that the text is parsed.
        price: US dollars of prompt, completion and cached tokens.

    Raises:
        BadReply: there is no message in it.
    """
    choices = data.get("choices") if isinstance(data, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise BadReply("the reply holds no message")
    text = text_of(message.get("content")) or text_of(message.get("refusal"))
    reasoning = text_of(message.get("reasoning_content")) or text_of(message.get("reasoning"))
    return Reply(
        text, reasoning,
        tool_calls=_tool_calls(message.get("tool_calls")),
        parsed=parse_object(text) if wants_object else None,
        usage=_usage(data, price),
        finish_reason=text_of(choice.get("finish_reason")) or "unknown")


def parse_object(text: str) -> dict[str, Any] | None:
    """The text as a JSON object, or None."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def timings(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """What llama.cpp's server says about its own speed; empty elsewhere."""
    value = data.get("timings")
    return value if isinstance(value, dict) else {}


def text_of(content: Any) -> str:
    """Content as text: a string, or the text parts of a list. Halves of surrogate pairs are replaced."""
    if isinstance(content, list):
        content = "".join(part["text"] for part in content
                          if isinstance(part, dict) and isinstance(part.get("text"), str))
    if not isinstance(content, str):
        return ""
    try:
        content.encode()
    except UnicodeEncodeError:
        return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return content


def _tool_calls(calls: Any) -> tuple[Mapping[str, Any], ...]:
    """What the model calls, with no fields but those that chat completions have; cut where there is too much of it."""
    listed = calls[:_MOST_CALLS] if isinstance(calls, list) else []
    return tuple(_tool_call(call, call["function"]) for call in listed
                 if isinstance(call, dict) and isinstance(call.get("function"), dict))


def _tool_call(call: Mapping[str, Any], function: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"id": text_of(call.get("id"))[:_LONGEST_NAME], "type": "function", "function": {
        "name": text_of(function.get("name"))[:_LONGEST_NAME],
        "arguments": text_of(_written(function.get("arguments")))[:_LONGEST_ARGUMENTS]}}


def _written(arguments: Any) -> Any:
    """Arguments as JSON in a text, as chat completions have them, with no character escaped that need not be.

    Some servers send an object; and behind an escape could stand what is to be hidden.
    """
    escaped = isinstance(arguments, str) and "\\" in arguments
    try:
        said = json.loads(arguments) if escaped else arguments
        return json.dumps(said, ensure_ascii=False) if escaped or isinstance(said, dict) else said
    except (ValueError, RecursionError):
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], str(arguments))


def _usage(data: Mapping[str, Any], price: Pricer) -> Usage:
    raw = data.get("usage")
    usage: Mapping[str, Any] = raw if isinstance(raw, dict) else {}
    details = usage.get("prompt_tokens_details")
    found = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    if found is None:
        found = timings(data).get("cache_n")
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    cached = min(_count(found), prompt)
    return Usage(prompt, completion, cached, 1, price(prompt, completion, cached))


def _count(value: Any) -> int:
    """Tokens; 0 where the value is no number of them that a call could use."""
    return value if type(value) is int and 0 < value <= _MOST_TOKENS else 0


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
