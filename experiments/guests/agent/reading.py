"""Read calls of tools from replies: those that the server found, and those that a model wrote in its text."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ragbed.documents.types import replace_surrogates
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Reply, ToolSpec

FINISH = "finish"  # the tool that ends the loop
MAX_CALLS = 4  # calls of tools that are performed per turn
MAX_TEXT, MAX_ARGUMENTS = 20_000, 4_000  # characters that are read of a reply, and of the arguments of a call
_MAX_PROSE = 500  # characters of a reply without a call that are kept
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_WRITTEN = re.compile(r'"name"\s?:\s?"([A-Za-z0-9_-]{1,64})"')
_OBJECT = re.compile(r'"(?:arguments|parameters)"\s?:\s?(?=\{)')
_PAIR = re.compile(r'"(\w{1,64})"\s?:\s?("(?:[^"\\\n]|\\.)*"|-?\d{1,9}|true|false)')
_ASSIGNED = re.compile(r"""(\w{1,64})\s?[=:]\s?("[^"\n]*"|'[^'\n]*'|[^,;\n]*)[,;\s]*""")
_QUOTES = "\"'`*"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool, as read from a reply. Its arguments are None if they, or the tool's name, are not valid."""

    id: str
    tool: str
    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReadTurn:
    """What is read from a reply in text: the part that stays in the conversation, and the calls in it. Without calls,
    `why` says why the loop ends."""

    kept: str
    calls: tuple[Call, ...] = ()
    why: str = ""

    @property
    def query(self) -> str:
        """Return the query of the first call; empty if there is none."""
        return str((self.calls[0].arguments or {}).get("query", "")) if self.calls else ""


def read_sent(reply: Reply, turn: int) -> Iterator[Call]:
    """Read the calls that the server found. A call without a valid id gets one made from the turn and its position."""
    ids: set[str] = set()
    for place, raw in enumerate(reply.tool_calls):
        id, function = raw.get("id"), raw.get("function")
        own = id if isinstance(id, str) and _ID.fullmatch(id) and id not in ids else f"call_{turn}_{place}"
        ids.add(own)
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(name, str) or not _NAME.fullmatch(name):
            yield Call(own, "unknown")
            continue
        sent = function.get("arguments") or "{}"  # some servers send nothing for a tool without arguments
        yield Call(own, name, _clean(sent) if isinstance(sent, Mapping) else _object(str(sent).strip(), True)[0])


def read_written(text: str, specs: Sequence[ToolSpec], id: str) -> list[Call]:
    """Read calls that a model wrote as JSON in its text, of these tools and of `finish`."""
    text = strip_thinking(text)[:MAX_TEXT]
    known = {spec.name: spec for spec in specs}
    found = [one for one in _WRITTEN.finditer(text) if one[1] in known or one[1] == FINISH]
    ends = [*(one.start() for one in found[1:]), len(text)]
    return [Call(f"{id}{place}", one[1], _written_arguments(text[one.end():end], known.get(one[1])))
            for place, (one, end) in enumerate(zip(found, ends, strict=False))]


def _written_arguments(text: str, spec: ToolSpec | None) -> Mapping[str, Any]:
    found = _OBJECT.search(text)
    return (_object(text[found.end():])[0] if found else None) or _pairs(text, spec)


def _object(text: str, whole: bool = False) -> tuple[Mapping[str, Any] | None, int]:
    """Read the JSON object at the beginning of a text, which with `whole` ends there; return it and its length."""
    try:
        value, end = json.JSONDecoder().raw_decode(text[:MAX_ARGUMENTS])
    except (ValueError, RecursionError):
        return None, 0
    return (_clean(value), end) if isinstance(value, Mapping) and (end == len(text) or not whole) else (None, 0)


def _clean(value: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return arguments as every server takes them back: without lone surrogates, and None if they hold NaN."""
    try:
        cleaned: dict[str, Any] = json.loads(replace_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False)))
    except (ValueError, RecursionError):
        return None
    return cleaned


def _pairs(text: str, spec: ToolSpec | None) -> Mapping[str, Any]:
    """Read the fields of an object that is not valid JSON, such as one that was cut off."""
    known = properties(spec) if spec else {}
    return _clean({one[1]: _value(one[2]) for one in _PAIR.finditer(text[:MAX_ARGUMENTS]) if one[1] in known}) or {}


def _value(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except ValueError:  # such as "\d+", which a model wrote for a pattern
        return text[1:-1]


def properties(spec: ToolSpec) -> Mapping[str, Any]:
    """Return the schemas of a tool's arguments by name."""
    found = spec.parameters.get("properties")
    return found if isinstance(found, Mapping) else {}


def example_call(spec: ToolSpec) -> str:
    """Return a call as a line of text, such as `search: {"query": "..."}`."""
    fields = dict.fromkeys(spec.parameters.get("required") or [*properties(spec)][:1], "...")
    return f"{spec.name}: {json.dumps(fields)}"


@lru_cache(maxsize=256)
def action_pattern(names: tuple[str, ...], alone: bool = False) -> re.Pattern[str]:
    """Return a pattern for a line that calls a tool, such as `Search: Ada`, `Action: search[Ada]` or `finish`. The
    groups are the name, the mark after it, its arguments, and `finish`. `alone`: a name without arguments is a call."""
    end = r"|(?=[ \t]*(?:\n|\Z))" if alone else ""
    listed = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"^[ \t>*#_`-]{{0,8}}(?:then )?(?:(?:action|call)[*_`]{{0,3}} ?\d{{0,2}} ?[:：][ \t*_`]{{0,4}})?"
                      rf"(?:({listed})[*_`]{{0,3}} ?([:：(\[]{end})([^\n]*)|({FINISH})\b[^\n]*)\n?",
                      re.IGNORECASE | re.MULTILINE)


def read_lines(text: str, specs: Sequence[ToolSpec]) -> ReadTurn:
    """Read the first action of a reply, and further calls in the lines directly after it. Keep the reply up to there,
    since the model makes up what follows. A reply without an action is a call that cannot be read."""
    text = strip_thinking(text)[:MAX_TEXT]
    text += "}" if text.count("{") > text.count("}") else ""  # servers leave the stop sequence out of the reply
    known = {spec.name.casefold(): spec for spec in specs}
    pattern = action_pattern(tuple(known), alone=True)
    calls: list[Call] = []
    act, end = pattern.search(text), 0
    while act and len(calls) < MAX_CALLS:
        if act[4]:
            if not calls:  # after a call, the model cannot know yet whether it is the last one
                return ReadTurn(text[:act.end()], why=FINISH)
            break
        spec = known[act[1].casefold()]
        arguments, end = _line_arguments(spec, text, act)
        calls.append(Call("", spec.name, arguments))
        act = pattern.match(text, end)
    calls = calls or [call for call in read_written(text, specs, "") if call.tool != FINISH][:MAX_CALLS]
    if not calls:
        return ReadTurn(text[:_MAX_PROSE], (Call("", ""),))
    return ReadTurn(text[:end or None], tuple(calls))


def _line_arguments(spec: ToolSpec, text: str, act: re.Match[str]) -> tuple[Mapping[str, Any] | None, int]:
    """Read the arguments after a tool's name: a JSON object, `name=value` pairs, or words for the first argument.
    Return them, or None if there are none, with their end in the text."""
    known, line = properties(spec), act[3].strip()
    start = act.start(3) + len(act[3]) - len(act[3].lstrip(" \t*_`"))
    if text.startswith("{", start):
        read, length = _object(text[start:])
        line_end = text.find("\n", start + length)
        return _pairs(line, spec) or None if read is None else read, line_end + 1 or len(text)
    line = line.removesuffix(")" if act[2] == "(" else "]" if act[2] == "[" else "").strip()
    if (pair := _ASSIGNED.match(line)) and pair[1] in known:
        return {one[1]: _typed(one[2], known[one[1]]) for one in _ASSIGNED.finditer(line) if one[1] in known}, act.end()
    required = spec.parameters.get("required")
    first = next(iter(required if isinstance(required, list) else ()), "") or next(iter(known), "")
    words = line.strip("*").strip()
    return {first: _typed(words, known.get(first))} if words and first else None if required else {}, act.end()


def _typed(words: str, schema: Any) -> Any:
    words = words.strip()
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind == "integer" and re.fullmatch(r"-?\d{1,9}", words.strip(_QUOTES)):
        return int(words.strip(_QUOTES))
    return words[1:-1] if len(words) > 1 and words[0] == words[-1] and words[0] in _QUOTES else words
