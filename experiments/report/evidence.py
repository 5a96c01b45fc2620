"""Prepare evidence, prompts, answers and steps for the page. Each text is stored once and referred to by number."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ragbed.agents.types import describe_tool_call as in_words
from ragbed.experiments.formatting import visible
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result, StoredPassage, StoredStep, Verdict
from ragbed.experiments.report.packing import Packed, packed_within
from ragbed.experiments.report.text import bounded, shown
from ragbed.strategies.reading import strip_citations

LONGEST = 300_000  # largest number of characters of one text in the page
_LEAST = 80  # prompts refer to passages of at least this many characters instead of repeating them

Piece = str | int | dict[str, int]


class Texts:
    """Number texts in the order of first use. Texts are looked up by their hash."""

    def __init__(self, text: Callable[[str], str]) -> None:
        self._text = lru_cache(maxsize=256)(text)  # the prompts of one question show the same passages
        self._evidence: dict[str, int] = {}
        self._prompts: dict[str, int] = {}
        self._shown: list[tuple[str, ...]] = []

    def evidence(self, key: str) -> int:
        """Return the number of a passage."""
        return self._evidence.setdefault(key, len(self._evidence))

    def prompt(self, key: str, shown: tuple[str, ...]) -> int:
        """Return the number of a prompt part, which may contain the passages with the hashes `shown`, in order."""
        if key not in self._prompts:
            self._prompts[key] = len(self._prompts)
            self._shown.append(shown)
        return self._prompts[key]

    def packed_evidence(self, budget: int) -> Packed:
        """Pack each passage as pieces."""
        return packed_within("evidence", len(self._evidence), (_literal(self._text(key)) for key in self._evidence),
                             budget)

    def packed_prompts(self, budget: int) -> Packed:
        """Pack each prompt part as pieces: a piece is text, or the number of a passage."""
        pieces = (self._pieces(self._text(key), parts) for key, parts in zip(self._prompts, self._shown, strict=True))
        return packed_within("prompts", len(self._prompts), pieces, budget)

    def _pieces(self, text: str, shown: Sequence[str]) -> list[Piece]:
        pieces: list[Piece] = []
        at = 0
        for key in shown:
            content = self._text(key)
            found = text.find(content, at) if _LEAST <= len(content) <= LONGEST else -1
            if found >= 0:
                pieces += [*_literal(text[at:found]), self.evidence(key)]
                at = found + len(content)
        return [*pieces, *_literal(text[at:])]


def _literal(text: str) -> list[Piece]:
    """Return the shown text, with the number of omitted characters."""
    beginning, left_out = bounded(text, LONGEST)
    return [*([beginning] if text else []), *([{"left_out": left_out}] if left_out else [])]


def graded(verdict: Verdict | None, question: Question) -> str:
    """Return a verdict in a few words; empty without one."""
    if verdict is None:
        return ""
    if verdict.points is not None:
        return f"{verdict.points} of 10"
    if verdict.steps is not None:
        return f"{len(verdict.steps)} of {len(question.steps)} steps"
    return visible(verdict.grade or "unjudged")


_BRACKET = re.compile(r"(\[[\d\s,;–-]{1,400}\])")
_NUMBER = re.compile(r"(\d+)")


def linked(answer: str) -> list[str | int]:
    """Split an answer into text and the numbers of its citations."""
    pieces: list[str | int] = [""]
    for at, part in enumerate(_BRACKET.split(answer)):
        cites = at % 2 == 1 and strip_citations(f"x{part}") == "x"
        for place, piece in enumerate(_NUMBER.split(part) if cites else [part]):
            before = pieces[-1]
            if place % 2:
                pieces.append(int(piece))
            elif isinstance(before, str):
                pieces[-1] = before + piece
            else:
                pieces.append(piece)
    return [piece for piece in pieces if piece != ""]


@dataclass(slots=True)
class Passages:
    """Collect the chunks shown for a question's answers, in order of first appearance."""

    texts: Texts
    found: list[dict[str, Any]] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)

    def of(self, result: Result) -> list[Any]:
        """Return each passage as its index in `found` and its number. If the numbers are 1, 2, 3, ..., return only the
        indexes.
        """
        places = [self._place(stored) for stored in result.evidence]
        numbers = [stored.number for stored in result.evidence]
        return [places] if numbers == list(range(1, len(numbers) + 1)) else [places, numbers]

    def _place(self, stored: StoredPassage) -> int:
        if stored.chunk not in self._places:
            self._places[stored.chunk] = len(self.found)
            self.found.append({
                "source": visible(stored.source), "format": stored.format, "start": stored.start, "end": stored.end,
                "text": self.texts.evidence(stored.text), **({"pages": stored.pages} if stored.pages else {})})
        place = self._places[stored.chunk]
        if stored.gold:
            self.found[place].setdefault("gold", stored.gold)
        return place


REPLY = 12_000


def steps(trace: Sequence[StoredStep], evidence: Sequence[StoredPassage], texts: Texts) -> list[dict[str, Any]]:
    """Return the steps of a trace without their empty fields."""
    keys = tuple(passage.text for passage in evidence)
    return [{name: value for name, value in _step(step, keys, texts).items() if value} for step in trace]


def _step(step: StoredStep, evidence: tuple[str, ...], texts: Texts) -> dict[str, Any]:
    failure = shown(f"{step.failure.kind}: {step.failure.message}", REPLY) if step.failure else ""
    if step.kind == "search":
        return {"query": shown(step.query or "(no words)", REPLY), "found": step.found, "failure": failure}
    if step.kind == "decision":
        return {"decided": shown(step.purpose or "", REPLY), "why": shown(step.text, REPLY)}
    usage = step.usage
    return {"purpose": visible(step.purpose or step.kind),
            # role, numbers of the parts, tool calls, and the call that the message answers
            "messages": [[visible(one.role), *(texts.prompt(key, evidence) for key in one.parts),
                          *map(_called, one.tool_calls), *([visible(f"answers {one.call_id}")] if one.call_id else [])]
                         for one in step.messages],
            "reply": shown(step.text, REPLY), "reasoning": shown(step.reasoning, REPLY),
            "calls": list(map(_called, step.tool_calls)),
            "ended": visible(step.finish_reason), "failure": failure,
            "tokens": [usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens]}


def _called(call: Mapping[str, Any]) -> str:
    return bounded(in_words(call), REPLY)[0]
