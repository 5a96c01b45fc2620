"""A scripted model, for testing a strategy without a server.

    from ragbed.agents import Scripted
    from my_strategy import recipe

    def test_it_searches_for_what_is_missing():
        model = Scripted({"missing": "Who directed Jaws?", "answer": "<Answer>Cincinnati [1]</Answer>"},
                         {"Who directed Jaws?": ["Spielberg of Cincinnati directed Jaws."]})
        answer = model.play(recipe, "Where was the director of Jaws born?")
        assert (answer.text, answer.cited) == ("Cincinnati [1]", (1,))

`drive` plays a recipe with your functions for replies and searches. `answer_reply` and `unsatisfied_reply` make a reply
that fits any call.
"""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn
from zlib import crc32

from ragbed.agents.model_settings import Limits
from ragbed.agents.replies import parse_object
from ragbed.agents.session import Runtime, Session
from ragbed.agents.tools import ToolOutput
from ragbed.agents.types import Answer, CallOutcome
from ragbed.documents.errors import ScriptEnded
from ragbed.documents.types import Chunk, digest
from ragbed.strategies.settings import strategy_config
from ragbed.strategies.types import Failure, Generate, Reasoning, Reply, Retrieval, Search, Task, ToolCall, Usage

ScriptedLine = str | Reply | Failure  # the reply to one call; a plain text is short for a reply with this text


def drive(recipe: Reasoning, task: Task,
          reply: Callable[[Sequence[Generate]], Sequence[Reply | Failure | CallOutcome]],
          find: Callable[[Sequence[Search]], Sequence[Sequence[Chunk] | Failure]],
          limits: Limits | None = None,
          call: Callable[[Sequence[ToolCall]], Sequence[ToolOutput | Failure]] | None = None) -> Answer:
    """Play a recipe, with functions for replies, searches and tools, until it ends or reaches a limit.

    This function is synchronous and does not use LangGraph, unlike `graph.QuestionPlayer`: a dry run plays a question
    many times, and a test may call it while an event loop is running.

    Args:
        reply: receives concurrent calls, and returns a reply or failure for each.
        find: receives concurrent searches, and returns for each the chunks, best first, or a failure.
        limits: limits of the question; None for the defaults.
        call: receives concurrent calls of tools, and returns the result of each; None if there is no tool.
    """
    play = Session(task, recipe, Runtime(_reject_use, _reject_use, _reject_use, _reject_use, limits or Limits()))
    while play.node != "finish" and not play.end_if_over_budget():
        if play.node == "generate":
            play.add_replies([one if isinstance(one, CallOutcome) else CallOutcome("", one)
                             for one in reply(play.pending_calls())])
            continue
        found = find(play.pending_searches()) if play.node == "search" else ()
        called = (call or _no_tools)(play.pending_tools()) if play.node == "call_tools" else ()
        failed = next((one for one in [*found, *called] if isinstance(one, Failure)), None)
        if failed is not None:
            play.add_lost(failed)
        elif play.node == "search":
            play.add_found([one for one in found if not isinstance(one, Failure)])
        else:
            play.add_called([one for one in called if not isinstance(one, Failure)])
    return play.answer()


def _no_tools(calls: Sequence[ToolCall]) -> list[Failure]:
    return [Failure("strategy", "the strategy calls a tool, but no tool is open")] * len(calls)


def _reject_use(*given: object) -> NoReturn:
    raise NotImplementedError("use `drive`, which performs searches and calls itself")


@dataclass
class Scripted:
    """A model with scripted replies, and a retriever over scripted texts.

    Attributes:
        replies: one of: a mapping from a call's purpose to its reply, or to its replies in order; a list of replies for
            all calls in order; a function from a call to its reply. Replies to calls that request JSON must be JSON.
        library: one of: a mapping from queries to the texts found, with `""` for all other queries; the texts that
            every search finds; a function from a search to chunks.
        tools: calls a tool. `play(..., tools=SPECS)` describes them to the strategy.
        rounds: queries of the searches so far, with one list per group of concurrent searches.
    """

    replies: Mapping[str, ScriptedLine | list[ScriptedLine]] | list[ScriptedLine] | Callable[[Generate], ScriptedLine]
    library: Mapping[str, Sequence[str]] | Sequence[str] | Callable[[Search], Sequence[Chunk]] = ()
    limits: Limits = field(default_factory=Limits)  # limits of each question
    tools: Callable[[ToolCall], ToolOutput] = lambda call: ToolOutput(failure=f"there is no tool {call.tool}")
    calls: list[Generate] = field(default_factory=list)  # all calls so far
    rounds: list[list[str]] = field(default_factory=list)

    def play(self, reasoning: str | Mapping[str, Any] | Reasoning, question: str = "Where was it built?",
             retrieval: str | Mapping[str, Any] | Retrieval = "once", **changes: Any) -> Answer:
        """Play a question to its end, and return the answer.

        Strategies are given as functions, names or settings. `changes` are fields of the task, such as `rules="open"`.
        Raises ScriptEnded if no reply is left for a call.
        """
        gather = retrieval if callable(retrieval) else strategy_config.retrieval(retrieval)
        task = Task(**{"id": "q", "question": question, "retrieval": gather, **changes})
        return drive(reasoning if callable(reasoning) else strategy_config.reasoning(reasoning), task,
                     lambda calls: list(map(self._reply, calls)), self._find, self.limits,
                     lambda calls: list(map(self.tools, calls)))

    @property
    def searched(self) -> list[str]:
        """Return the queries of all searches in order."""
        return [query for together in self.rounds for query in together]

    def prompts(self, purpose: str) -> list[str]:
        """Return the last message of each call of this purpose."""
        return [call.messages[-1].content for call in self.calls if call.purpose == purpose]

    def _reply(self, call: Generate) -> Reply | Failure:
        self.calls.append(call)
        lines = self.replies
        line = lines(call) if callable(lines) else lines if isinstance(lines, list) else lines.get(call.purpose, [])
        if isinstance(line, list):
            place = sum(line is lines or one.purpose == call.purpose for one in self.calls)
            if place > len(line):
                raise ScriptEnded(f"the script has no reply left for call {len(self.calls)} (purpose {call.purpose!r})")
            line = line[place - 1]
        if not isinstance(line, str):
            return line
        return Reply(line, parsed=call.schema and parse_object(line, call.schema), usage=Usage(calls=1))

    def _find(self, searches: Sequence[Search]) -> list[Sequence[Chunk]]:
        self.rounds.append([search.query for search in searches])
        if callable(self.library):
            return list(map(self.library, searches))
        library = self.library if isinstance(self.library, Mapping) else {"": self.library}
        found = [library.get(search.query, library.get("", ()))[:search.k] for search in searches]
        return [[Chunk(digest(text)[:12], digest(text)[:12], "plain", 0, len(text), text) for text in texts]
                for texts in found]


def answer_reply(call: Generate, text: str, refused: bool = False) -> Reply:
    """Return a reply with an answer in the form that the call requests: tags, or fields of its schema."""
    if call.schema is None:
        return Reply(f"<Thinking>The documents say so.</Thinking>\n<Answer>{text}</Answer>", usage=Usage(calls=1))
    fields = example_value(call.schema, text, most=True, items=1)
    if "refused" in call.schema.get("properties", {}):
        fields["refused"] = refused
    return Reply(json.dumps(fields), parsed=fields, usage=Usage(calls=1))


_NEVER_CONTENT = """\
What do the documents say of part {number}?
Grade: 0
Sufficiency: 0
Missing: part {number}
Follow-up: What do the documents say of part {number}?
Fault: part {number} is wrong
Search: part {number}
Search: the people of part {number}
Search: the towns of part {number}
part{number} = unknown + 1
complex
1: no
No.
"""
_TOOL_IN_TEXT = re.compile(r'^([\w-]+): \{"(\w+)": "\.\.\."\}$', re.MULTILINE)  # the example of a call in a prompt
_FIRST_SHOWN = re.compile(r"^(?P<number>\[\d+\])\n(?P<line>.{,200})", re.MULTILINE)
_CHARACTERS = 4  # characters per token of English
_LINES, _LONGEST, _TOOL_CALLS = 8, 900, 8


def unsatisfied_reply(call: Generate, tokens: int = 0, lists: bool = False, tools: bool = True) -> Reply:
    """Return a reply that never satisfies a strategy: lowest grades, `no`, more to search for. It differs for each
    prompt. If a strategy ends with these replies, it ends with any others too.

    Args:
        tokens: approximate length of the reply, which is filled with a list of questions.
        lists: return only that list. For a schema, return the longest value instead of the shortest.
        tools: call tools if the call offers any.
    """
    number = crc32(call.messages[-1].content.encode("utf-8", "replace"), call.sample)
    number += sum(message.role == "assistant" for message in call.messages)  # later turns may end with equal words
    prompt = "\n".join(message.content for message in call.messages)
    shown, tool = _FIRST_SHOWN.search(prompt), _TOOL_IN_TEXT.search(prompt)
    text = numbered_questions(tokens)
    if not lists:
        quote = f'{shown["number"]} "{shown["line"]}"\n' if shown else ""
        calls = [f'{tool[1]}: {{"{tool[2]}": "part {number} {place}"}}\n' for place in range(_TOOL_CALLS)
                 ] if tool else ()
        text = "".join(calls) + _NEVER_CONTENT.format(number=number) + quote + text
    if call.tools and call.tool_choice == "auto" and tools:
        function = call.tools[0]["function"]
        given = [example_value(function.get("parameters", {"type": "object"}), f"part {number} {place}", True, _LINES)
                 for place in range(_TOOL_CALLS)]
        return tool_call_reply([(function["name"], one) for one in given], text, f"call_{number}_")
    if call.schema is None:
        return Reply(text, usage=Usage(calls=1))
    fields = example_value(call.schema, f"What do the documents say of part {number}?", lists, _LINES * lists)
    return Reply(json.dumps(fields), parsed=fields, usage=Usage(calls=1))


def tool_call_reply(calls: Sequence[tuple[str, Any]], text: str = "", id: str = "call_") -> Reply:
    """Return a reply that calls tools. `calls` has the name of each tool, and its arguments as an object or text."""
    return Reply(text, finish_reason="tool_calls", usage=Usage(calls=1), tool_calls=tuple(
        {"id": f"{id}{place}", "type": "function", "function": {
            "name": name, "arguments": given if isinstance(given, str) else json.dumps(given)}}
        for place, (name, given) in enumerate(calls)))


@lru_cache(maxsize=16)
def numbered_questions(tokens: int) -> str:
    """Return a numbered list of at least eight questions, with about this many tokens."""
    lines = max(_LINES, tokens * _CHARACTERS // _LONGEST)
    filler = " and what follows from it" * (tokens * _CHARACTERS // lines // 25)
    return "\n".join(f"{number}. What do the documents say of part {number}{filler}?" for number in range(1, lines + 1))


def example_value(schema: Mapping[str, Any], text: str, most: bool, items: int, share: float = 0.0) -> Any:
    """Return a value that fits a JSON Schema, with `text` for strings and, if allowed, `items` array items.

    With `most`, it has the last choices, largest numbers, true, and the longest arrays. Otherwise it has the first
    choices, smallest numbers and false. `share` is the relative position in an array.
    """
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][-1 if most else 0]
    if "anyOf" in schema:
        return example_value(schema["anyOf"][0], text, most, items, share)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {name: example_value(inner, text, most, items, share or number / len(fields) * (
                inner.get("type") == "object")) for number, (name, inner) in enumerate(fields.items())}
        case "array":
            largest = schema.get("maxItems", items)
            count = largest if most else min(max(items, schema.get("minItems", 0)), largest)
            return [example_value(schema.get("items", {}), text, most, items, share or number / count)
                    for number in range(count)]
        case "boolean":
            return most
        case "integer" | "number":
            bound = schema.get("maximum" if most else "minimum", 1)
            return bound - int(share * (bound - schema.get("minimum", bound) + 1)) if most else bound
        case _:
            return f"{text} {share:.3f}" if most and share else text
