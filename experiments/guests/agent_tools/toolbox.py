"""The tools of a strategy: what its setting `tools` may hold, and the open tools."""
from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ragbed.agents.search import SearchFunction
from ragbed.agents.tools import ToolOutput
from ragbed.documents.errors import MissingExtra, SettingsError, did_you_mean
from ragbed.documents.types import Chunk, digest
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure, describe_tool, read_arguments
from ragbed.experiments.guests.agent_tools.corpora import Corpus
from ragbed.experiments.guests.agent_tools.functions import McpServer, McpTools, UserFunction
from ragbed.experiments.guests.agent_tools.grep import grep
from ragbed.experiments.guests.agent_tools.reading import (
    ToolContext,
    calculate,
    list_documents,
    open_document,
    search_tool,
)
from ragbed.experiments.guests.agent_tools.sql import TableDatabase
from ragbed.experiments.settings.validation import explain
from ragbed.strategies.settings.plugins import parse_file_kind
from ragbed.strategies.types import ToolCall, ToolSpec

_VERSION = "3"  # of the built-in tools; change it with their results, so that stored results are not used again
_MAX_RESULT, _MAX_ARGUMENTS = 20_000, 20_000  # characters of a result, and of a call's arguments as JSON
_SEARCH = re.compile(r"search(_[A-Za-z0-9_-]{1,50})?")
_BUILT_IN: Mapping[str, Callable[..., Any]] = {
    "list": list_documents, "grep": grep, "open": open_document, "calculate": calculate}
_EXTRAS = {"grep": "re2", "sql": "duckdb"}
_RESERVED = ("finish", "read_result")  # tools that agents add by themselves
_threads = ThreadPoolExecutor(2, "documents")

Call = Callable[[ToolContext, Mapping[str, Any]], Awaitable[ToolOutput]]


class McpSetting(BaseModel):
    """An MCP server whose tools a strategy may call.

    Attributes:
        only: names of the tools to use; by default all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mcp: McpServer
    only: tuple[str, ...] = ()


def check_tools(tools: Sequence[Any]) -> list[Any]:
    """Return the value of a setting `tools`: names of tools, FILE.py:FUNCTION, and MCP servers. Nothing is started.
    Raises SettingsError if it is not valid."""
    if not tools:
        raise SettingsError("tools: the list is empty; name a tool, as in [search]")
    for tool in tools:
        _read_tool(tool)
    return list(tools)


def _read_tool(tool: Any) -> str | McpSetting:
    if isinstance(tool, dict):
        try:
            return McpSetting.model_validate(tool)
        except ValidationError as error:
            raise SettingsError(f"tools: {explain(error, McpSetting)}") from None
    if isinstance(tool, list):
        raise SettingsError(f"tools: {tool!r:.80} is a list; to compare tools, write one strategy for each list")
    known = sorted((*_BUILT_IN, "sql", "search"))
    if not isinstance(tool, str) or not (tool in known or _SEARCH.fullmatch(tool) or parse_file_kind(tool)):
        raise SettingsError(f"tools: unknown tool {tool!r:.80}; {did_you_mean(str(tool), known)}choose from: "
                            f"{', '.join(known)}; write your own as FILE.py:FUNCTION, or {{mcp: {{command: [...]}}}}")
    return tool


@asynccontextmanager
async def open_toolbox(tools: Sequence[Any]) -> AsyncIterator[AgentToolbox]:
    """Open the tools of a setting: execute the files of functions, and start or reach MCP servers. Raises SettingsError
    if one cannot be used, or if two have the same name."""
    toolbox = AgentToolbox()
    try:
        for tool in tools:
            await asyncio.to_thread(toolbox.add, _read_tool(tool))
        yield toolbox
    finally:
        await asyncio.to_thread(toolbox.close)


class AgentToolbox:
    """The open tools of a strategy; see `ragbed.agents.tools.Toolbox`."""

    def __init__(self) -> None:
        self.specs: tuple[ToolSpec, ...] = ()
        self.hashes: dict[str, str] = {}
        self._calls: dict[str, Call] = {}
        self._opened = ExitStack()

    def add(self, tool: str | McpSetting) -> None:
        """Open a tool, or the tools of a server."""
        if isinstance(tool, McpSetting):
            MissingExtra.check("mcp", "mcp")
            server = self._opened.enter_context(closing(McpTools(tool.mcp, tool.only)))
            for spec in server.specs:
                self._add(spec, server.hash, partial(server.call, spec.name))
        elif parse_file_kind(tool):
            function = self._opened.enter_context(closing(UserFunction(tool)))
            self._add(function.spec, function.hash, function.call)
        else:
            if tool in _EXTRAS:
                MissingExtra.check("tools", _EXTRAS[tool])
            built_in = (search_tool(tool) if _SEARCH.fullmatch(tool) else _BUILT_IN.get(tool) or
                        self._opened.enter_context(closing(TableDatabase())).sql)
            spec, model = describe_tool(built_in, tool, hidden=1)
            self._add(spec, "", partial(_call_built_in, built_in, model))

    def close(self) -> None:
        """End the processes of the tools."""
        self._opened.close()

    def _add(self, spec: ToolSpec, hash: str, call: Call) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", spec.name):
            raise SettingsError(f"tools: model servers do not accept the name {spec.name!r:.80}; rename your function")
        if spec.name in (*self._calls, *_RESERVED):
            raise SettingsError(f"tools: two tools have the name {spec.name!r}; leave one out, or rename your function")
        self.specs = (*self.specs, spec)
        self.hashes[spec.name], self._calls[spec.name] = digest(_VERSION, hash), call

    async def call(self, call: ToolCall, corpus: Corpus, searches: Mapping[str, SearchFunction]) -> ToolOutput:
        """Call a tool. Whatever it does wrong becomes the output's `failure`."""
        try:
            if (made := self._calls.get(call.tool)) is None:
                raise ToolFailure(f"there is no tool {call.tool!r:.60}; {did_you_mean(call.tool, self._calls)}"
                                  f"the tools are {', '.join(self._calls)}")
            if len(json.dumps(call.arguments, default=str)) > _MAX_ARGUMENTS:
                raise ToolFailure(f"the arguments are too long; at most {_MAX_ARGUMENTS:,} characters are read")
            return _bound(await made(ToolContext(corpus, searches), call.arguments))
        except RecursionError:
            return ToolOutput((), f"{call.tool}: the arguments are nested too deeply")
        except ToolFailure as error:
            return ToolOutput((), f"{call.tool}: {error}"[:1_000])


async def _call_built_in(function: Callable[..., Any], model: type[BaseModel], within: ToolContext,
                         arguments: Mapping[str, Any]) -> ToolOutput:
    made = partial(function, within, **read_arguments(model, arguments))
    output: ToolOutput = await (made() if inspect.iscoroutinefunction(function) else
                                asyncio.get_running_loop().run_in_executor(_threads, made))
    return output


def _bound(output: ToolOutput) -> ToolOutput:
    """Return the output without the parts that exceed the largest result, and a line that says so."""
    left = _MAX_RESULT
    parts: list[str | Chunk] = []
    for part in output.parts:
        left -= len(part if isinstance(part, str) else part.content)
        if left < 0 and parts:
            return ToolOutput((*parts, "(The result was too long; its rest is left out.)"), output.failure)
        parts.append(part)
    return output
