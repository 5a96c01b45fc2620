"""The tools of agents over the served indexes, for clients of the MCP endpoint.

Any client may send an expensive call, so calls are few at a time. Those beyond that wait, or are refused.
"""
from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ragbed.agents.tools import Toolbox, ToolOutput, make_by_guest, open_toolbox
from ragbed.documents.errors import MissingExtra
from ragbed.strategies.types import ToolCall, Tools, ToolSpec

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant

_NAMES = ("search", "list", "grep", "open", "sql")
_AT_ONCE = {"search": 64, "sql": 2}  # calls of a tool that run at a time; of other tools one
_WAITING = 8  # further calls of a tool that wait
_PER_KEY = 4  # calls that one key may have running and waiting, of all tools except `search`


@asynccontextmanager
async def open_served_tools() -> AsyncIterator[ServedTools]:
    """Open the tools, and end their processes at the end. One whose package is missing is left out."""
    toolboxes: dict[str, Toolbox] = {}
    async with AsyncExitStack() as stack:
        for name in _NAMES:
            try:
                toolboxes[name] = await stack.enter_async_context(open_toolbox(Tools((name,))))
            except MissingExtra as error:
                logging.getLogger("ragbed").warning("MCP clients do not get the tool %s: %s", name, error)
        yield ServedTools(toolboxes)


class ServedTools:
    """Open tools by name.

    Attributes:
        specs: the tools.
    """

    def __init__(self, toolboxes: Mapping[str, Toolbox]) -> None:
        self.specs: Mapping[str, ToolSpec] = {name: one.specs[0] for name, one in toolboxes.items()}
        self._toolboxes = toolboxes
        self._turns = {name: asyncio.Semaphore(_AT_ONCE.get(name, 1)) for name in toolboxes}
        self._calls = dict.fromkeys(toolboxes, 0)
        self._owners: Counter[str] = Counter()  # calls by owner
        self._corpora: WeakKeyDictionary[Assistant, Any] = WeakKeyDictionary()

    async def call(self, call: ToolCall, assistant: Assistant, owner: str = "") -> ToolOutput:
        """Call a tool over the documents that an assistant searches. `owner` is the name of the client's key; empty if
        the server needs no key. Raises the errors of a search."""
        name = call.tool
        if owner and name != "search" and self._owners[owner] >= _PER_KEY:
            return ToolOutput((), f"{name}: this key has {_PER_KEY} calls of tools; try again when one has ended")
        if self._calls[name] >= _AT_ONCE.get(name, 1) + _WAITING:
            return ToolOutput((), f"{name}: too many calls of this tool are waiting; try again in a few seconds")
        self._calls[name] += 1
        self._owners[owner] += name != "search"
        try:
            async with self._turns[name]:
                if (corpus := self._corpora.get(assistant)) is None:
                    corpus = self._corpora[assistant] = await asyncio.to_thread(_open_corpus, assistant)
                return await self._toolboxes[name].call(call, corpus, {"search": assistant.searcher})
        finally:
            self._calls[name] -= 1
            self._owners[owner] -= name != "search"


def _open_corpus(assistant: Assistant) -> Any:
    index = assistant.index
    corpus = make_by_guest("index", index, index.manifest.settings.formats[0], assistant.settings.where)
    len(corpus.ids)  # reads all chunks once, in this thread
    return corpus
