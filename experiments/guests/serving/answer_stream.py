"""Extract the text of an answer from a question's events, piece by piece."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import from_json

from ragbed.agents.graph import Event
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Form

_PIECES = frozenset({"token", "reasoning", "text"})  # events with a piece of a text
_ANSWER = re.compile(r"<answer>", re.IGNORECASE)
_ANSWER_END = re.compile(r"</answer>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:thinking|answer)>", re.IGNORECASE)
_PARTIAL_TAG = re.compile(r"</?[a-z]{0,9}\Z", re.IGNORECASE)  # the next piece may complete a tag that is not shown


class AnswerStream:
    """Extracts the reasoning and the answer from a question's events, without tags and other JSON fields.

    If a strategy does not know in advance which call is its last, nothing is streamed and the answer comes whole.

    Attributes:
        sent: the text of the answer so far.
    """

    def __init__(self) -> None:
        self.sent = ""
        self._reasoning = ""
        self._raw = ""
        self._call: int | None = None
        self._form: Form = "plain"

    def feed(self, event: Mapping[str, Any]) -> tuple[str, str]:
        """Process an event of `agents.graph`. Return the new pieces of reasoning and answer, which are often empty."""
        if event["event"] == "asking" and event["answers"]:
            self._call, self._form, self._raw, self._reasoning = event["call"], event["answers"], "", ""
        elif self._call is None or event.get("call") != self._call:
            return "", ""
        elif event["event"] == "retry":
            self._raw, self._reasoning = "", ""
        elif event["event"] == "token":
            self._raw += event["text"]
            reasoning, text = _READERS[self._form](self._raw)
            before, self._reasoning = self._reasoning, max(self._reasoning, reasoning, key=len)
            return self._reasoning[len(before):], self._advance(text.strip())
        return "", ""

    def rest(self, text: str) -> str:
        """Return the part of the final answer that was not sent yet. If the answer differs from the sent text, as after
        a retry, return all of it after a blank line."""
        if text.startswith(self.sent):
            return self._advance(text)
        self.sent += f"\n\n{text}"
        return f"\n\n{text}"

    def _advance(self, text: str) -> str:
        if not text.startswith(self.sent):
            return ""
        new = text[len(self.sent):]
        self.sent = text
        return new


def join_pieces(events: Iterable[Event | None]) -> list[Event | None]:
    """Join the pieces of one text between two other events, so that a client that is behind gets fewer events."""
    joined: list[Event | None] = []
    last: dict[tuple[str, int | None], Event] = {}
    for event in events:
        if event is None or event["event"] not in _PIECES:
            last.clear()
        elif (earlier := last.get((event["event"], event.get("call")))) is not None:
            earlier["text"] += event["text"]
            continue
        else:
            event = last[event["event"], event.get("call")] = {**event}
        joined.append(event)
    return joined


def _read_plain(raw: str) -> tuple[str, str]:
    """Read a reply that consists of the answer, apart from unrequested reasoning and tags."""
    if "<" not in raw:
        return "", raw
    shown = _PARTIAL_TAG.sub("", strip_thinking(raw))
    return _read_tags(raw) if _TAG.search(shown) else ("", shown)


def _read_tags(raw: str) -> tuple[str, str]:
    """Return the text before the first answer tag, and the text in the last one."""
    first, *answers = _ANSWER.split(strip_thinking(raw))
    shown = _PARTIAL_TAG.sub("", _ANSWER_END.split(answers[-1])[0]) if answers else ""
    return _TAG.sub("", first if answers else _PARTIAL_TAG.sub("", first)).strip(), shown


def _read_fields(raw: str) -> tuple[str, str]:
    """Return the fields `reasoning` and `answer` of a JSON object that may be incomplete, or have a fence around it."""
    raw = strip_thinking(raw)
    try:
        fields = from_json(raw[max(raw.find("{"), 0):raw.rfind("```", 3) if "```" in raw[3:] else None],
                           allow_partial="trailing-strings")
    except ValueError:
        return "", ""
    if not isinstance(fields, dict):
        return "", ""
    reasoning, text = fields.get("reasoning"), fields.get("answer")
    return reasoning if isinstance(reasoning, str) else "", text if isinstance(text, str) else ""


_READERS = {"plain": _read_plain, "tags": _read_tags, "fields": _read_fields}
