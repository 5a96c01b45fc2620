"""The client of one MCP server, in a process of its own: the server's answers are untrusted, and may not end."""
from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from ragbed.documents.user_code import UserCode, describe_exception
from ragbed.experiments.guests.agent_tools.arguments import ToolFailure

MARGIN = 10.0  # seconds to stop a server that does not answer, before this process is stopped
_MAX_TOOLS, _MAX_PAGES, _MAX_RESULT = 200, 20, 200_000  # of a listing; characters

Json = Mapping[str, Any]


def serve(job: Json, read: Callable[[], Any], say: Callable[[Json], None]) -> None:
    """Connect to the server, answer with its tools, then with the result of each call. After a failure of the
    connection, the process ends, and the next one connects again."""
    logging.disable()  # the client logs each line of the server that is no message, with a traceback
    try:
        with suppress(asyncio.CancelledError), UserCode(ToolFailure, BaseExceptionGroup, asyncio.CancelledError):
            asyncio.run(_serve(job, read, say))
    except BaseExceptionGroup as group:
        first = _first(group)
        say({"failure": str(first) if isinstance(first, ToolFailure) else describe_exception(first), "ends": True})
    except ToolFailure as error:
        say({"failure": str(error), "ends": True})


async def _serve(job: Json, read: Callable[[], Any], say: Callable[[Json], None]) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    if hasattr(loop, "add_signal_handler"):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)  # leaving the block below stops the server
    async with AsyncExitStack() as opened:
        async with _deadline(job["seconds"]):
            client = await opened.enter_async_context(Client(await _transport(job, opened), cache=None))
            tools = await _list_tools(client)
        say({"tools": tools, "server": str(client.server_info)})
        while request := await asyncio.to_thread(read):
            async with _deadline(request["seconds"]):
                result = await client.call_tool(request["tool"], request["arguments"])
            text = "\n".join(map(_text_of, result.content)) or json.dumps(result.structured_content)
            say({"failure" if result.is_error else "value": text[:_MAX_RESULT]})


@asynccontextmanager
async def _deadline(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds - MARGIN):
            yield
    except TimeoutError:
        raise ToolFailure(f"the MCP server did not answer within {seconds - MARGIN:g} seconds") from None


async def _transport(job: Json, opened: AsyncExitStack) -> Any:
    if job["command"]:
        command, *arguments = job["command"]
        environment = {name: os.environ[name] for name in job["env"] if name in os.environ}
        # What the server logs would disturb the output of the run.
        silent = opened.enter_context(os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        return stdio_client(StdioServerParameters(command=command, args=arguments, env=environment), silent)
    http = await opened.enter_async_context(httpx2.AsyncClient(headers=job["headers"], timeout=job["seconds"]))
    return streamable_http_client(job["url"], http_client=http)


async def _list_tools(client: Client) -> list[Json]:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor or len(found) > _MAX_TOOLS:
            break
    return [{"name": one.name, "description": one.description or "", "parameters": one.input_schema}
            for one in found[:_MAX_TOOLS]]


def _text_of(block: Any) -> str:
    """Return the text of a part of a result. Pictures and sounds are only named."""
    text = getattr(block, "text", None) or getattr(getattr(block, "resource", None), "text", None)
    return text if isinstance(text, str) else f"({block.type}, not shown)"


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
