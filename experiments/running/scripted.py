"""A stand-in for a model: replies that any strategy may get, so that what it then asks for can be counted.

No one reply leads every strategy through the least or the most calls, so each of several manners is played: the
least and the most that any of them leads to are the bounds.
"""
from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal
from zlib import crc32

from strategies.reading import REFUSAL
from strategies.types import Generate, Reply, Usage

# short: an answer in its tags. echo: the question again, and nothing new. refusal: that it cannot be answered.
# long: a list of questions that fills the limit. doubt: never content, and never twice the same: the lowest of every
# grade, no to every question, always something more to search for, and a sum of what nobody knows; it fills the limit
# too. deaf: in doubt, and calls no tool. mended: in doubt when it is first asked for something, content when it is
# asked again, and its answers say what no document does. picky: likewise, but content with all that comes before the
# first answer.
Manner = Literal["short", "echo", "refusal", "long", "doubt", "deaf", "mended", "picky"]
MANNERS: tuple[Manner, ...] = ("short", "echo", "refusal", "long", "doubt", "deaf", "mended", "picky")
FINDING: tuple[Manner, ...] = ("long", "doubt", "deaf", "mended")
"""Those under which every search finds something else, so that what goes on until nothing is found goes on."""
_DOUBT = """\
What do the documents say of part {number}?
Grade: 0
Sufficiency: 0
Missing: part {number}
Follow-up: What do the documents say of part {number}?
Search: part {number}
part{number} = unknown + 1
complex
1: no
No.
"""
_CONTENT = """\
Grade: 3
Sufficiency: 10
Missing: nothing
1: yes
Yes.
"""
_UNSUPPORTED = "<Thinking>The documents say so.</Thinking>\n<Answer>Part 9876543210 [1]</Answer>"
_CHARACTERS = 4  # of English for a token
_LINES, _LONGEST = 8, 900
_PIECES = re.compile(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]")
_WORD, _DIGITS = 5, 2


@lru_cache(maxsize=1024)
def about_tokens(text: str) -> int:
    """How many tokens a text has in about: five letters of a word, two digits, or any other sign are one.

    Of what SmolLM2's tokeniser counts that is 0.9 to 1.1 times as many for English prose and pages, 0.8 for pages of
    figures, of which it takes each digit alone, and 0.4 for Korean, which it spells in bytes.
    """
    count = 0
    for piece in _PIECES.findall(text):
        if piece.isascii() and piece.isalnum():
            count -= -len(piece) // (_DIGITS if piece.isdigit() else _WORD)
        else:
            count += 1
    return count


def prompt_tokens(call: Generate) -> int:
    """How many tokens a call's messages and tools have in about; three for what stands around each message."""
    texts = [text for message in call.messages for text in (*message.parts, *map(json.dumps, message.tool_calls))]
    return 3 * len(call.messages) + sum(map(about_tokens, [*texts, *map(json.dumps, call.tools)]))


def reply_to(call: Generate, question: str, manner: Manner, limit: int, before: Collection[str] = ()) -> Reply:
    """What the stand-in says.

    Args:
        limit: tokens of a reply.
        before: the purposes of the question's earlier calls.
    """
    parsed = None if call.schema is None else _instance(call.schema, manner == "long")
    doubts = manner in ("doubt", "deaf") or (call.purpose not in (*before, "answer") and (
        manner == "mended" or (manner == "picky" and "answer" in before)))
    text = _doubt(call, limit) if doubts else _said(question, manner, limit, call.purpose)
    return Reply(text, parsed=parsed, usage=Usage(prompt_tokens(call), limit, calls=1),
                 tool_calls=tuple(_called(call, manner)) if call.tool_choice == "auto" else ())


def _called(call: Generate, manner: Manner) -> Iterator[dict[str, Any]]:
    """In doubt the first of the tools several times, each time with other texts; to refuse, the last one."""
    wanted = call.tools[:1] * _LINES if manner == "doubt" else call.tools[-1:] if manner == "refusal" else ()
    for place, tool in enumerate(wanted):
        fields = tool["function"]["parameters"].get("properties", {})
        said = {name: f"part {_number(call)} {place}" if inner.get("type") == "string" else _instance(inner, True)
                for name, inner in fields.items()}
        yield {"id": f"call_{_number(call)}_{place}", "type": "function",
               "function": {"name": tool["function"]["name"], "arguments": json.dumps(said)}}


def _said(question: str, manner: Manner, limit: int, purpose: str) -> str:
    if manner == "long":
        return _list(limit)
    if manner in ("mended", "picky"):
        return _UNSUPPORTED if purpose == "answer" else _CONTENT + _list(limit)
    return {"short": "<Thinking>The documents say so.</Thinking>\n<Answer>Yes [1]</Answer>", "echo": question,
            "refusal": f"<Answer>{REFUSAL}</Answer>"}[manner]


def _doubt(call: Generate, limit: int) -> str:
    """A reply that another prompt, or another draw, would not get."""
    return _DOUBT.format(number=_number(call)) + _list(limit)


def _number(call: Generate) -> int:
    return crc32(call.messages[-1].content.encode("utf-8", "replace"), call.sample)


@lru_cache(maxsize=16)
def _list(limit: int) -> str:
    """Questions, one a line, that together have the limit's length."""
    lines = max(_LINES, limit * _CHARACTERS // _LONGEST)
    filler = " and what follows from it" * (limit * _CHARACTERS // lines // 25)
    return "\n".join(f"{number}. What do the documents say of part {number}{filler}?"
                     for number in range(1, lines + 1))


def _instance(schema: Mapping[str, Any], most: bool) -> Any:
    """A value that fits a JSON Schema: the least one, or one with lists of several."""
    if "enum" in schema:
        return schema["enum"][-1 if most else 0]
    match schema.get("type"):
        case "object":
            return {name: _instance(inner, most) for name, inner in schema.get("properties", {}).items()}
        case "array":
            count = schema.get("maxItems", _LINES) if most else schema.get("minItems", 0)
            return [_instance(schema.get("items", {}), most) for _ in range(count)]
        case "boolean":
            return most
        case "integer" | "number":
            return schema.get("maximum" if most else "minimum", 1)
        case _:
            return "What do the documents say of it?"
