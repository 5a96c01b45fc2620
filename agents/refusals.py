"""What a server's refusal means: try again, give this call up, or stop the run."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agents.replies import BadJson
from documents.errors import CallError, CallTooLong, ModelError, RagbedError
from retrieval.serving.servers import Address, error_of, hide, is_secret, server_message

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


def is_overload(status: int, body: bytes, asked: float | None) -> bool:
    """Whether a request that may succeed later was refused for the number of requests, so that others would be too.

    Args:
        asked: seconds that the server asks to wait; None where it does not say.
    """
    if status in {429, 529}:  # 529 is Anthropic's for an overloaded service
        return True
    if status != 503:
        return False
    error = error_of(body)
    said = (server_message(error, ""), str(error.get("code")), str(error.get("type")))
    return asked is not None or bool(_OVERLOAD.search(" ".join(said)))


def refusal(status: int, body: bytes, address: Address, model: str, attempts: int,
            accepted: bool = False) -> RagbedError:
    """The error that a status other than 200 stands for.

    Args:
        accepted: whether a call to this model succeeded before, so that a 403 is about this prompt and not the key.

    Returns:
        ModelError where the user has to mend something and every other call would fail alike; CallTooLong where
        the prompt does not fit; else CallError of kind `http_<status>`.
    """
    error = error_of(body)
    said = server_message(error, address.key)
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


def hide_in(value: Any, key: str) -> Any:
    """Parsed JSON without the key: a server may echo it, escaped as it likes, into a reply, which is recorded.

    Raises:
        BadJson: nested beyond reason.
    """
    try:
        return _hidden(value, key) if is_secret(key) else value
    except RecursionError:
        raise BadJson from None


def _hidden(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return hide(value, key)
    if isinstance(value, dict):
        return {hide(name, key): _hidden(inner, key) for name, inner in value.items()}
    return [_hidden(inner, key) for inner in value] if isinstance(value, list) else value


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
