"""Search in one conversation, with queries that a model writes, until nothing new is found."""
from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragbed.experiments.guests.agent.agent_messages import Loop, TurnProtocol
from ragbed.experiments.guests.agent.protocols import Native, ProtocolName, Result, Talk, Text
from ragbed.experiments.guests.agent.reading import Call, ReadTurn
from ragbed.strategies.answering import answer, ask, draft
from ragbed.strategies.parts.conversation import gather_each
from ragbed.strategies.parts.merging import concatenate, new_passages
from ragbed.strategies.parts.reading import to_query
from ragbed.strategies.prompting import fill, show_documents, template
from ragbed.strategies.reading import fold
from ragbed.strategies.types import Asked, Decision, Evidence, Recipe, Task, ToolSpec

SEARCH = "search"
_IDLE = 2  # searching ends after this many turns without new evidence


def search_call(query: str) -> tuple[Call, ...]:
    """Return a call that searches, or no call if the query is empty."""
    return (Call("", SEARCH, {"query": query}),) if query else ()


def converse(task: Task, turns: int, name: str, reader: Callable[[str], ReadTurn], stop: tuple[str, ...] = (),
             protocol: ProtocolName = "text") -> Recipe:
    """Search for the question, let the model ask for more searches until it has enough, then ask for the answer.

    Under the rules `closed-book`, there is only the call for the answer.

    Args:
        turns: maximum number of further turns with searches.
        name: purpose of the calls; the prompts are `<name>_first`, `<name>_next`, and `<name>_tools` for tool calls.
        reader: reads a reply in text.
        stop: stop sequences of replies in text.
    """
    if task.rules == "closed-book":
        return (yield from answer(task, "chain_of_thought", (), "no_search"))
    found: Evidence = yield from task.gather(task.question)
    attempts: list[tuple[TurnProtocol, Talk]] = []
    if protocol != "text":
        attempts.append((Native((search_tool(),), _accept_search), _open(task, found, f"{name}_tools")))
    if protocol != "native":
        attempts.append((Text(lambda _: template(f"{name}_next"), reader, stop), _open(task, found, f"{name}_first")))
    loop = Loop(task, name, NewSearches(task, found, [fold(task.question)]), turns)
    last, talk = yield from loop.play(attempts)
    return (yield from draft(loop.ask_for_answer(
        last, talk, fill("iterations_answer", question=task.question)), task, last=True))


def _open(task: Task, found: Evidence, name: str) -> Talk:
    return Talk(ask(task, template(name), found, name, rules=True).messages, found)


def search_tool() -> ToolSpec:
    """Return the tool `search`, which takes a query."""
    query = {"query": {"type": "string", "description": template("tool_query")}}
    return ToolSpec(SEARCH, template("tool_search"), {"type": "object", "properties": query, "required": [*query],
                                                      "additionalProperties": False})


def _accept_search(name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
    query = arguments.get("query")
    return {"query": words} if name == SEARCH and isinstance(query, str) and (words := to_query(query)) else None


@dataclass(slots=True)
class NewSearches:
    """The tool `search`, which gathers evidence with the task's retrieval strategy and shows what is new.

    If the task fixes the evidence (`placed`), nothing is searched. The loop ends if every query of a turn is old, or
    two turns in a row find nothing new.
    """

    task: Task
    evidence: Evidence
    queries: list[str] = field(default_factory=list)  # so far, folded
    over: str = ""
    _new: int | None = None  # number of new passages in the last turn; None if no call was valid
    _idle: int = 0

    def perform(self, calls: Sequence[Call], shown: Evidence) -> Generator[Asked, Any, list[Result]]:
        queries = [str((call.arguments or {})["query"]) for call in calls]
        asked = list(dict.fromkeys(query for query in queries if fold(query) not in self.queries))
        self._new = 0
        self.queries += map(fold, asked)
        if not asked:
            self.over = "it asks for what was asked before"
        elif self.task.placed:
            return [Result(template("all_shown"))] * len(calls)
        results = {query: self._result(one) for query, one in zip(
            asked, (yield from gather_each(self.task, asked, Task.gather)) if asked else (), strict=True)}
        self._idle = 0 if self._new else self._idle + 1
        if asked and self._idle >= _IDLE:
            self.over = f"{_IDLE} iterations in a row brought nothing new"
        return [results.pop(query, Result(template("asked_before"))) for query in queries]

    def unread(self, call: Call) -> str:
        return template("tool_unread")

    def progress(self, turn: int, turns: int) -> Decision:
        new, self._new = self._new, None
        if new is None:
            return Decision("goes on", f"iteration {turn + 1}: no call could be read")
        if self.over:
            return Decision("stops", self.over)
        brought = "asks on: all evidence is placed" if self.task.placed else \
            f"brought {new} new passage{'s' * (new != 1)}"
        return Decision("stops" if turn + 1 == turns else "goes on", f"iteration {turn + 1} of {turns} {brought}")

    def _result(self, found: Evidence) -> Result:
        fresh = new_passages(self.evidence, found)
        self.evidence = concatenate((self.evidence, found))
        self._new = (self._new or 0) + len(fresh)
        if fresh:  # shown like the first documents
            return Result(show_documents(self.task, fresh).removesuffix("\n\n"), fresh)
        if not found:
            return Result(template("nothing_found"))
        numbers = ": " + ", ".join(f"[{passage.number}]" for passage in found) if self.task.separators else ""
        return Result(fill("nothing_new", numbers=numbers))
