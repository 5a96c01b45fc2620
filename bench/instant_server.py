"""An OpenAI-compatible chat server on loopback that answers at once, always the same.

    python bench/instant_server.py

Prints its base URL, and serves until its standard input closes, so that it never outlives who started it.
"""
from __future__ import annotations

import asyncio
import json

from aiohttp import web
from chat_server import completion, serve

CITY = "Lyon"
_REPLY = f"<Thinking>The first document names the city.</Thinking><Answer>{CITY} [1]</Answer>"
_BODY = json.dumps(completion("instant", {"role": "assistant", "content": _REPLY}, 700, 12)).encode()


async def chat(request: web.Request) -> web.Response:
    """The one reply, after the request was read to its end."""
    await request.read()
    return web.Response(body=_BODY, content_type="application/json")


if __name__ == "__main__":
    asyncio.run(serve(chat))
