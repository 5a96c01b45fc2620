"""Parse JSON from untrusted sources, such as server replies and other people's files."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

MAX_NESTED = 200
_HALF, _ESCAPED_HALF = re.compile("[\ud800-\udfff]"), re.compile(r"\\u[dD][89a-fA-F]")


def loads(text: str | bytes, *, mend: bool = False, lenient: bool = False) -> Any:
    """Parse JSON. The result can be encoded as UTF-8, and recursive code can process it.

    Args:
        mend: accept common faults of model replies: lone surrogates become U+FFFD; of duplicate keys, the last is used.
        lenient: accept line breaks in strings and, with `mend`, read NaN and infinities as null.

    Raises:
        ValueError: the text is not JSON, or is nested more than 200 deep; without `lenient` also if it has NaN or an
            infinity; without `mend` also for lone surrogates and duplicate keys.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        value = (json.loads(text, parse_constant=_read_as_null if lenient else _reject_constant, strict=not lenient)
                 if mend else json.loads(text, object_pairs_hook=_reject_duplicates, strict=not lenient))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _check_depth(text, value)
    if _ESCAPED_HALF.search(text) or (not text.isascii() and _HALF.search(text)):
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


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return record


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _read_as_null(constant: str) -> None:
    return None


_START = re.compile(r'\{(?=\s*["}])')
_MARK = re.compile(r'["{}]|\\.', re.DOTALL)
_WORDS = {"None": "null", "True": "true", "False": "false"}
_SLIPS = re.compile(r'("(?:[^"\\]|\\.)*+")|,(?=\s*[}\]])|\b(None|True|False)\b', re.DOTALL)
_MAX_UNCLOSED, _MAX_OBJECTS = 16, 64


def find_object(text: str, fields: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Return the JSON object among a reply's text: the last complete one with all `fields` or, if none has all, the
    last of those with the most. Inside an object that was cut, only one with all fields counts. Takes linear time."""
    best: dict[str, Any] | None = None
    for start, end, in_cut in reversed([*_object_spans(text)][-_MAX_OBJECTS:]):
        piece = _SLIPS.sub(lambda found: found[1] or _WORDS.get(found[2] or "", ""), text[start:end])
        try:
            value = loads(piece, mend=True, lenient=True)
        except ValueError:
            continue
        has = len((fields or {}).keys() & value.keys())
        if fields is None or has == len(fields):
            return dict(value)
        if has and not in_cut and (best is None or has > len(fields.keys() & best.keys())):
            best = value
    return best


def _object_spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield start and end of each outermost pair of braces, and whether it is inside a brace that is never closed."""
    at = unclosed = 0
    while unclosed < _MAX_UNCLOSED and (found := _START.search(text, at)):
        depth, in_string, at = 0, False, found.end()
        for mark in _MARK.finditer(text, found.start()):
            if mark[0] == '"':
                in_string = not in_string
            elif not in_string and mark[0] in "{}":
                depth += 1 if mark[0] == "{" else -1
                if not depth:
                    yield found.start(), mark.end(), unclosed > 0
                    at = mark.end()
                    break
        unclosed += depth > 0
