"""Functions of users as tools, and the tools of MCP servers. Each runs in processes of its own (`processes`)."""
from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from ragbed.agents.tools import ToolOutput
from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.documents.keys import HeaderValue, check_header, fill_header
from ragbed.documents.types import Chunk, digest
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure
from ragbed.experiments.guests.agent_tools.corpora import Corpus
from ragbed.experiments.guests.agent_tools.corpus_text import clean, read_corpus, show_span
from ragbed.experiments.guests.agent_tools.processes import ToolPool
from ragbed.experiments.guests.agent_tools.reading import WINDOW, ToolContext
from ragbed.strategies.settings.plugins import parse_file_kind
from ragbed.strategies.settings.source import resolve_file
from ragbed.strategies.types import ToolSpec

SECONDS = 30.0  # of a call
_MARGIN = 10.0  # see `mcp_child`
_PROCESSES = 4  # per function or server, for calls at the same time
_MAX_TEXT, _MAX_PASSAGES, _MAX_DESCRIPTION, _MAX_SCHEMA = 8_000, 10, 1_000, 20_000

Json = Mapping[str, Any]


class UserFunction:
    """A function of a user, `FILE.py:FUNCTION`: its annotations are the arguments, its docstring the description.

    Opening it executes the file, in another process. `hash` is the hash of the file.
    """

    def __init__(self, kind: str) -> None:
        place = parse_file_kind(kind)
        assert place is not None
        self._job = {"job": "function", "file": str(resolve_file(place[0])), "named": str(place[0]),
                     "function": place[1]}
        self._pool = ToolPool(_PROCESSES, secrets=True)
        try:
            said = self._pool.start(self._job)
        except ToolFailure as error:
            raise SettingsError(f"tool {kind}: {error}") from None
        self.spec = ToolSpec(place[1], said["description"], said["parameters"])
        self.hash: str = said["hash"]

    async def call(self, within: ToolContext, arguments: Json) -> ToolOutput:
        """Call the function. It returns text, anything that can be written as JSON, or an object with `text` and
        `passages`: places of documents, each with `document`, `start` and `end`."""
        value = (await self._pool.ask(self._job, {"arguments": dict(arguments)}, SECONDS))["value"]
        passages: tuple[str | Chunk, ...] = ()
        if isinstance(value, dict) and isinstance(value.get("passages"), list) and value.keys() <= {"text", "passages"}:
            passages = _passages(within.corpus, value["passages"])
            value = value.get("text", "")
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return ToolOutput((*([clean(text, _MAX_TEXT)] if text else []), *passages))

    def close(self) -> None:
        self._pool.close()


def _passages(corpus: Corpus, places: Sequence[Any]) -> tuple[str | Chunk, ...]:
    text = read_corpus(corpus)
    parts: list[str | Chunk] = []
    for one in places[:_MAX_PASSAGES]:
        place = one if isinstance(one, dict) else {}
        document, start, end = (place.get(name) for name in ("document", "start", "end"))
        if not (isinstance(document, str) and type(start) is int and type(end) is int):
            raise ToolFailure("it returned a passage without `document`, `start` and `end`")
        entry = text.entries[text.find(document)]
        if not 0 <= start < end <= entry.size:
            raise ToolFailure(f"it returned a passage from {start} to {end} of {entry.size:,} characters")
        parts += show_span(corpus, entry.id, start, min(end, start + WINDOW))
    return tuple(parts)


class McpServer(BaseModel):
    """How to reach an MCP server: a command that starts it, or its address.

    Attributes:
        command: program and arguments.
        url: address of a server over streamable HTTP.
        env: names of environment variables that the command gets, in addition to a few such as PATH and HOME.
        headers: for a `url`; secrets as `{env: NAME}` or `${NAME}`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    headers: Mapping[str, HeaderValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> McpServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("an MCP server needs either `command` or `url`")
        if (self.env and not self.command) or (self.headers and not self.url):
            raise ValueError("`env` belongs to `command`, and `headers` to `url`")
        if self.url and not re.match(r"https?://[^/\\s@]+", self.url):
            raise ValueError("expected an address such as http://localhost:8080/mcp, without a password")
        for name, value in self.headers.items():
            check_header(name, value, "content" not in name.lower() and "accept" not in name.lower())
        return self


class McpTools:
    """The tools of an MCP server. Opening them starts the server, or connects to it.

    Args:
        only: names of the tools to use; by default all.
    """

    def __init__(self, server: McpServer, only: Sequence[str]) -> None:
        self._job = {"job": "mcp", "command": server.command, "url": server.url, "env": server.env,
                     "headers": {name: fill_header(value) for name, value in server.headers.items()}}
        self._pool = ToolPool(_PROCESSES, secrets=True)
        self._place = server.url or " ".join(server.command)
        try:
            self._listing = self._pool.start(self._job)
        except ToolFailure as error:
            raise SettingsError(f"tools: MCP server {self._place!r:.200}: {error}") from None
        listed = {one["name"]: one for one in self._listing["tools"]}
        if unknown := next((name for name in only if name not in listed), None):
            raise SettingsError(f"tools: MCP server {self._place!r:.200} has no tool {unknown!r:.60}; "
                                f"{did_you_mean(unknown, listed)}it has: {clean(', '.join(listed), 500)}")
        self.hash = digest(server.url, *server.command, json.dumps(self._listing, sort_keys=True))
        self._names = {_tool_name(name): name for name in only or listed}
        self.specs = tuple(ToolSpec(name, clean(" ".join(listed[theirs]["description"].split()), _MAX_DESCRIPTION),
                                    _schema(listed[theirs]["parameters"])) for name, theirs in self._names.items())

    async def call(self, tool: str, within: ToolContext, arguments: Json) -> ToolOutput:
        """Call a tool of the server. Raises ToolFailure if it fails, or if the server's tools have changed."""
        answer = await self._pool.ask(self._job, {"tool": self._names[tool], "arguments": dict(arguments)},
                                      SECONDS + _MARGIN, self._listing)
        return ToolOutput((clean(answer["value"], _MAX_TEXT) or "(no text)",))

    def close(self) -> None:
        self._pool.close()


def _tool_name(name: str) -> str:
    """Return the name under which models call a tool: model servers accept only some characters."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "tool"


def _schema(parameters: Any) -> Json:
    """Return the JSON Schema of a tool's arguments. One that is too large, or not an object, is replaced."""
    fits = isinstance(parameters, dict) and len(json.dumps(parameters)) <= _MAX_SCHEMA
    return {**parameters, "type": "object"} if fits else {"type": "object"}
