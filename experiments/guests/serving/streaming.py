"""From the events of a question to the text of its answer as it comes: without tags, fields and thinking."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Form

_ANSWER = re.compile(r"<answer>", re.IGNORECASE)
_ANSWER_END = re.compile(r"</answer>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:thinking|answer)>", re.IGNORECASE)
_TAG_BEGUN = re.compile(r"</?[a-z]{0,9}\Z", re.IGNORECASE)  # of which the next piece may make one that is not shown


class AnswerText:
    """Reads the answer out of the reply that is the final one, piece by piece, and what it thinks before.

    A strategy whose last call is not known before it ends streams nothing; its answer comes whole.

    Attributes:
        told: the text so far.
    """

    def __init__(self) -> None:
        self.told = ""
        self._thought = ""
        self._raw = ""
        self._call: int | None = None
        self._form: Form = "plain"

    def feed(self, event: Mapping[str, Any]) -> tuple[str, str]:
        """Take an event of `agents.graph`; return what is new of the thinking and of the answer, often nothing."""
        if event["event"] == "asking" and event["answers"]:
            self._call, self._form, self._raw, self._thought = event["call"], event["answers"], "", ""
        elif self._call is None or event.get("call") != self._call:
            return "", ""
        elif event["event"] == "retry":
            self._raw, self._thought = "", ""
        elif event["event"] == "token":
            self._raw += event["text"]
            thought, text = _READ[self._form](self._raw)
            before, self._thought = self._thought, max(self._thought, thought, key=len)
            return self._thought[len(before):], self._new(text.strip())
        return "", ""

    def rest(self, text: str) -> str:
        """Return what is left to tell of the answer that the question ended with. One that came otherwise than it was
        told, as where a call was sent again, is told anew, after a blank line."""
        if text.startswith(self.told):
            return self._new(text)
        self.told += f"\n\n{text}"
        return f"\n\n{text}"

    def _new(self, text: str) -> str:
        if not text.startswith(self.told):
            return ""
        new = text[len(self.told):]
        self.told = text
        return new


def _plain(raw: str) -> tuple[str, str]:
    """A reply that is all answer, but for what it thinks and tags that it was not asked for."""
    if "<" not in raw:
        return "", raw
    shown = _TAG_BEGUN.sub("", strip_thinking(raw))
    return _tagged(raw) if _TAG.search(shown) else ("", shown)


def _tagged(raw: str) -> tuple[str, str]:
    """What stands before the first answer tag, and in the last one."""
    first, *answers = _ANSWER.split(strip_thinking(raw))
    shown = _TAG_BEGUN.sub("", _ANSWER_END.split(answers[-1])[0]) if answers else ""
    return _TAG.sub("", first if answers else _TAG_BEGUN.sub("", first)).strip(), shown


def _fields(raw: str) -> tuple[str, str]:
    """The fields `reasoning` and `answer` of a JSON object that is not yet whole."""
    try:
        fields = from_json(raw, allow_partial="trailing-strings")
    except ValueError:
        return "", ""
    if not isinstance(fields, dict):
        return "", ""
    thought, said = fields.get("reasoning"), fields.get("answer")
    return thought if isinstance(thought, str) else "", said if isinstance(said, str) else ""


_READ = {"plain": _plain, "tags": _tagged, "fields": _fields}
