"""Tools that a strategy may call, and the results that they return. The guest in the slot `toolbox` implements them."""
from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakValueDictionary

from pydantic import TypeAdapter, ValidationError

from ragbed.agents.search import FoundHits, SearchFunction, SearchStore, request_key, search_miss
from ragbed.documents.errors import RecipeFailed, RunError
from ragbed.documents.types import Chunk, digest, replace_surrogates
from ragbed.documents.user_code import UserCode
from ragbed.guests import entries, load
from ragbed.strategies.types import ToolCall, Tools, ToolSpec


def make_by_guest(name: str, *given: Any) -> Any:
    """Call a function of the slot `toolbox`."""
    return load(entries("toolbox")[name])(*given)


def open_toolbox(tools: Tools) -> AbstractAsyncContextManager[Toolbox]:
    """Open the tools of a strategy. Raises SettingsError if one cannot be used."""
    opened: AbstractAsyncContextManager[Toolbox] = make_by_guest("open", tools)
    return opened


def describe_tools(tools: Tools) -> tuple[ToolSpec, ...]:
    """Open the tools of a strategy, and return their specifications. Raises SettingsError if one cannot be used."""

    async def describe() -> tuple[ToolSpec, ...]:
        async with open_toolbox(tools) as toolbox:
            return toolbox.specs

    with ThreadPoolExecutor(1) as thread:  # because the caller may be in an event loop
        return thread.submit(asyncio.run, describe()).result() if tools else ()


TOOL_FAILED = "tool"
"""Kind of the failure of a tool that is sent to the recipe. Other failures end the question."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returned: texts and spans of documents in reading order, or why it failed or refused."""

    parts: tuple[str | Chunk, ...] = ()
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the output as JSON for the graph's state, with the place of each span instead of its text."""
        return {"failure": self.failure, "parts": [
            one if isinstance(one, str) else [one.document, one.format, one.start, one.end, one.prefix]
            for one in self.parts]}


class Toolbox(Protocol):
    """The tools of a strategy, open for a run.

    Attributes:
        specs: the tools.
        hashes: by the name of each tool, a hash of all that determines its results, except the call's arguments, the
            documents and the searches: such as the source of a function, or the version of a server.
    """

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    @property
    def hashes(self) -> Mapping[str, str]: ...

    async def call(self, call: ToolCall, corpus: Any, searches: Mapping[str, SearchFunction]) -> ToolOutput:
        """Call a tool. Unknown tools, invalid arguments and exceptions of tools give an output with a `failure`.

        Args:
            corpus: the documents that the question may use, as the guest made them.
            searches: the question's searches by name; `search` is that of the cell's retriever.
        """
        ...


ToolFunction = Callable[[ToolCall], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class QuestionTools:
    """The tools of one question: their specifications, a hash of all that determines their results, how to call them,
    and at most how often. Errors of the question's searches are raised; other failures are outputs."""

    specs: tuple[ToolSpec, ...]
    content: str
    call: ToolFunction
    most: int = 0


QUESTION_TOOLS: ContextVar[QuestionTools | None] = ContextVar("QUESTION_TOOLS", default=None)
"""The tools of the question that the current task plays, for a pipeline that calls them by itself."""


def tools_name(tools: Tools) -> str:
    """Return the name of a strategy's tools in a run. Settings of tools, such as of servers, are only hashed."""
    return ", ".join(one if isinstance(one, str) else digest(repr(one))[:8] for one in tools)


def search_tool(retriever: str) -> str:
    """Return the name of the tool that searches with a retriever of the run other than the cell's."""
    return f"search_{re.sub('[^a-z0-9]+', '_', retriever.lower())}"


def searches_of(tools: Tools) -> set[str]:
    """Return the tools that search with other retrievers than the cell's."""
    return {one for one in tools if isinstance(one, str) and re.fullmatch("search_[a-z0-9_]+", one)}


@dataclass(frozen=True, slots=True)
class _Described:
    specs: tuple[ToolSpec, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)


_DESCRIBED = TypeAdapter(_Described)


class StoredTools:
    """The tools of a strategy in a run, whose results are stored like those of searches: under the hash of the tool,
    its arguments and all that it reads.

    Args:
        toolbox: None in a replay, which only returns stored results.
        content: in a replay, the recorded `content`.

    Attributes:
        content: a hash of the tools' specifications and hashes.
    """

    def __init__(self, tools: Tools, toolbox: Toolbox | None, store: SearchStore, content: str = "") -> None:
        self.tools, self._toolbox, self._store = tools, toolbox, store
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._text = "" if toolbox is None else replace_surrogates(json.dumps(  # in the order of a tool's arguments
            asdict(_Described(toolbox.specs, dict(toolbox.hashes))), ensure_ascii=False))
        self.content = content if toolbox is None else digest(self._text)

    @cached_property
    def _described(self) -> _Described:
        request = {"toolbox": tools_name(self.tools), "of": self.content}
        if self._text:
            self._store.keep(request, FoundHits((), parts=[self._text]))
        known = [self._text] if self._text else (self._store.find(request) or FoundHits(())).parts
        try:
            return _DESCRIBED.validate_json(str(known[0])) if known else _Described()
        except ValidationError as error:
            raise RunError(f"the recorded tools {tools_name(self.tools)} are damaged; record the run again") from error

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specifications of the tools; none if a replay does not find them."""
        return self._described.specs

    def over(self, corpus: Any, content: str, searches: Mapping[str, SearchFunction]) -> QuestionTools:
        """Return the tools for a question. `content` is a hash of its documents and searches. Equal calls are made
        once."""

        async def call(action: ToolCall) -> ToolOutput:
            request = {"tool": action.tool, "arguments": action.arguments, "of": content,
                       "hash": self._described.hashes.get(action.tool, "")}
            async with self._turns.setdefault(request_key(request), asyncio.Lock()):
                found = self._store.find(request)
                if found is None:
                    if self._toolbox is None:
                        raise search_miss(request, f"the tool {action.tool}")
                    found = _to_found(action.tool, await _call(self._toolbox, action, corpus, searches))
                    self._store.keep(request, found)
                    await self._store.durable()  # a call may have effects or a price, so it is not made again
            return _to_output(found)

        return QuestionTools(self.specs, digest(self.content, content), call)


async def _call(toolbox: Toolbox, call: ToolCall, corpus: Any,
                searches: Mapping[str, SearchFunction]) -> ToolOutput:
    try:
        with UserCode(RecipeFailed, asyncio.CancelledError):
            return await toolbox.call(call, corpus, searches)
    except RecipeFailed as error:
        return ToolOutput(failure=f"the tool {call.tool} failed: {error}")


def _to_found(tool: str, output: ToolOutput) -> FoundHits:
    chunks = [one for one in output.parts if isinstance(one, Chunk)]
    places = iter(range(len(chunks)))
    return FoundHits(FoundHits.from_chunks(chunks, tool).hits, (replace_surrogates(output.failure),), {}, [
        replace_surrogates(one) if isinstance(one, str) else next(places) for one in output.parts])


def _to_output(found: FoundHits) -> ToolOutput:
    return ToolOutput(tuple(one if isinstance(one, str) else found.hits[one].chunk for one in found.parts or ()),
                      *found.notes)
