"""Serve an OpenAI-compatible chat API on loopback that sends the same answer at once, or after a delay.

    python bench/instant_server.py [SECONDS [JITTER [REFUSED]]]

A reply takes SECONDS, give or take a random share of up to JITTER. A share REFUSED of the requests gets status 429. The
script prints its base URL, and serves until its standard input closes, so that it never outlives its parent process.
"""
from __future__ import annotations

import asyncio
import json
import random
import sys
from functools import partial

from aiohttp import web
from chat_server import completion, serve

CITY = "Lyon"
_REPLY = f"<Thinking>The first document names the city.</Thinking><Answer>{CITY} [1]</Answer>"
_BODY = json.dumps(completion("instant", {"role": "assistant", "content": _REPLY}, 700, 12)).encode()
_GRADE = json.dumps(completion("judge", {"role": "assistant", "content": "Grade: Correct\nError type: None"}, 300, 8)
                    ).encode()
_WORDS = [CITY, *(" is where both rivers meet, says the document [1]." * 4).split(" ")[1:]]  # of a reply in pieces


def _pieces() -> list[bytes]:
    chunks = [*({"choices": [{"index": 0, "delta": {"content": f"{' ' * bool(at)}{word}"}, "finish_reason": None}]}
                for at, word in enumerate(_WORDS)),
              {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
              {"choices": [], "usage": {"prompt_tokens": 700, "completion_tokens": 37, "total_tokens": 737}}]
    common = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 0, "model": "instant"}
    return [*(f"data: {json.dumps({**common, **chunk})}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n"]


_PIECES = _pieces()
_RANDOM = random.Random(1)


async def chat(request: web.Request, seconds: float = 0.0, jitter: float = 0.0, refused: float = 0.0,
               ) -> web.StreamResponse:
    """The one reply, after the request was read to its end; in pieces where it asks for that."""
    body = await request.json()
    if _RANDOM.random() < refused:
        return web.json_response({"error": {"message": "rate limit"}}, status=429, headers={"Retry-After": "0.2"})
    if seconds:
        await asyncio.sleep(seconds * (1 + jitter * (2 * _RANDOM.random() - 1)))
    if not body.get("stream"):
        return web.Response(body=_GRADE if body.get("model") == "judge" else _BODY, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for piece in _PIECES:
        await response.write(piece)
    return response


if __name__ == "__main__":
    given = dict(zip(("seconds", "jitter", "refused"), map(float, sys.argv[1:]), strict=False))
    asyncio.run(serve(partial(chat, **given)))
