"""Parse JSON from untrusted sources, such as server replies and other people's files."""
from __future__ import annotations

import json
import re
from typing import Any, NoReturn

MAX_NESTED = 200
_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def loads(text: str | bytes, *, mend: bool = False) -> Any:
    """Parse JSON into a value that can be encoded as UTF-8 and traversed recursively.
    
    Args:
        mend: replace lone surrogates by U+FFFD, and use the last value of a duplicate key; for model replies.
    
    Raises:
        ValueError: the text is not JSON, is nested more than 200 deep, or has NaN or an infinity; without `mend` also
            for lone surrogates and duplicate keys.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        value = json.loads(text, parse_constant=_refuse) if mend else json.loads(text, object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _check_depth(text, value)
    if _HALF.search(text):
        whole = json.dumps(value, ensure_ascii=False)
        if not mend:
            whole.encode()
        value = json.loads(whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return value


def _check_depth(text: str, value: Any) -> None:
    if text.count("[") + text.count("{") <= MAX_NESTED:
        return
    level = [value]
    for _ in range(MAX_NESTED):
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)
                 if isinstance(inner, dict | list)]
        if not level:
            return
    raise ValueError("nested too deeply")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return record


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
