"""Read the trajectory of an answer from its record: the calls of tools and searches, in order."""
from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ragbed.agents.database import text_hash
from ragbed.experiments.record import Result, StoredStep
from ragbed.strategies.reading import fold

Ending = Literal["answer", "turns", "tokens", "context", "failure"]
_FINDERS = ("search", "grep", "open")  # tools, or beginnings of their names, whose results are passages
_LAST = re.compile(r"\b(\d+) of \1\b")  # "iteration 4 of 4" in the reason for which an agent stops
_TURNS = ("agent", "react", "ircot", "self_ask")  # purposes of the model calls that choose the next calls of tools
_TOOLS = re.compile(r"tools: ([^;]*)")
_READS = "opens a result"  # decision of the agent when the model reads a result that it got as a handle
_NO_TEXT = text_hash("")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool, or one search.

    Attributes:
        found: evidence numbers of the passages in its result, by rank.
        gold: the gold items in these passages.
        tokens: tokens of the model calls before it.
        empty: whether it found nothing although it did not fail.
        failure: why it failed.
        repeated: whether an earlier call has the same tool and arguments. Queries are compared by their words.
    """

    tool: str
    arguments: str
    found: tuple[int, ...]
    gold: frozenset[int]
    tokens: int
    empty: bool = False
    failure: str = ""
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The calls of an answer.

    Attributes:
        offered: names of the tools that the model could call; empty if the strategy does not tell.
        opened: the gold items whose text the model could read. A page or document that only a search found is not
            opened if the strategy can open documents.
        cited: the gold items in cited passages.
        tokens: of all model calls.
        ended: what ended it: the model itself (`answer`), a limit of turns or tokens, a full context, or a failure.
    """

    calls: tuple[Call, ...]
    offered: tuple[str, ...]
    opened: frozenset[int]
    cited: frozenset[int]
    tokens: int
    ended: Ending


def chose_calls(result: Result) -> bool:
    """Return whether the model chose which searches or tools to call."""
    return any(step.kind == "tool" or (step.kind == "generate" and step.purpose in _TURNS)
               or (step.kind == "decision" and step.purpose == "begins") for step in result.trace)


def read_trajectory(result: Result) -> Trajectory:
    """Return the trajectory of an answer. Its sub-questions are left out."""
    holds = {passage.number: passage.holds for passage in result.evidence}
    calls: list[Call] = []
    asked, tokens = set[tuple[str, str]](), 0
    for step in result.trace:
        if step.kind == "generate":
            tokens += step.usage.tokens
        elif step.kind != "decision" or step.purpose == _READS:
            tool = {"search": "search", "decision": "read_result"}.get(step.kind, step.purpose or "")
            arguments = step.text if step.kind == "decision" else step.query or _in_words(step)
            key = tool, fold(arguments) if tool.startswith("search") else arguments  # a pattern depends on case
            gold = frozenset(item for number in step.found for item in holds.get(number, ()))
            calls.append(Call(tool, arguments, step.found, gold, tokens, _is_empty(step, tool),
                              step.failure.message if step.failure else "", key in asked))
            asked.add(key)
    cited = frozenset(item for number in result.cited for item in holds.get(number, ()))
    offered = _offered(result)
    return Trajectory(tuple(calls), offered, _opened(result, calls, offered), cited, tokens, _ending(result))


def _in_words(step: StoredStep) -> str:
    """Return the arguments of a call in one line; the first without its name."""
    said = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for value in step.arguments.values()]
    return ", ".join(text if not place else f"{name}: {text}"
                     for place, (name, text) in enumerate(zip(step.arguments, said, strict=True)))


def _is_empty(step: StoredStep, tool: str) -> bool:
    return not (step.failure or step.found) and (
        tool.startswith(_FINDERS) or (step.kind == "tool" and {*step.parts} <= {_NO_TEXT}))


def _offered(result: Result) -> tuple[str, ...]:
    found = next((_TOOLS.match(step.text) for step in result.trace if step.purpose == "begins"), None)
    return tuple(found[1].split(", ")) if found else ()


def _opened(result: Result, calls: Iterable[Call], offered: Iterable[str]) -> frozenset[int]:
    opens = {number for call in calls if call.tool.startswith("open") for number in call.found}
    wants = bool(opens) or any(name.startswith("open") for name in offered)
    return frozenset(item for passage in result.in_view for item in passage.holds
                     if not wants or passage.number in opens or passage.gold not in ("page", "document"))


def _ending(result: Result) -> Ending:
    why = next((step.text for step in reversed(result.trace) if (step.kind, step.purpose) == ("decision", "stops")), "")
    if result.failure is not None:
        if result.outcome == "too_long":
            return "context"
        why = result.failure.message
        if result.outcome != "budget" or "per question" not in why:
            return "failure"
        return "tokens" if "tokens" in why else "turns"
    if _LAST.search(why):
        return "turns"
    return "context" if "context" in why else "tokens" if "tokens" in why else "answer"
