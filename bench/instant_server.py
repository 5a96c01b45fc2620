"""An OpenAI-compatible chat server on loopback that answers at once, always the same.

    python bench/instant_server.py

Prints its base URL, and serves until its standard input closes, so that it never outlives who started it.
"""
from __future__ import annotations

import asyncio
import json
import sys

from aiohttp import web

CITY = "Lyon"
_REPLY = f"<Thinking>The first document names the city.</Thinking><Answer>{CITY} [1]</Answer>"
_BODY = json.dumps({
    "id": "chatcmpl-0", "object": "chat.completion", "created": 0, "model": "instant",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": _REPLY}}],
    "usage": {"prompt_tokens": 700, "completion_tokens": 12, "total_tokens": 712}}).encode()


async def chat(request: web.Request) -> web.Response:
    """The one reply, after the request was read to its end."""
    await request.read()
    return web.Response(body=_BODY, content_type="application/json")


async def serve() -> None:
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve())
