"""Serve scripted models on loopback through an OpenAI-compatible chat API, for the other scripts."""
from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

Chat = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def serve(chat: Chat) -> None:
    """Print the base URL, and serve until the standard input closes, so that it never outlives who started it."""
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


def completion(model: str, message: dict[str, Any], prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """A completion with one choice."""
    return {
        "id": "chatcmpl-0", "object": "chat.completion", "created": 0, "model": model,
        "choices": [{"index": 0, "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                     "message": message}],
        "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens,
                  "total_tokens": prompt_tokens + completion_tokens}}
