"""Servers of one index for tests: real processes, and one address in front of several."""
import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import httpx
from patience import SECONDS

ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def server(index, model, *options, log=None):
    """`ragbed serve` in a process: it, and its address. Without a model, the index is a target with its own."""
    of_index = ("--model", f"{model}#m", "--reasoning", "direct", "--retriever", "bm25") if model else ()
    with (log or Path(os.devnull)).open("w") as errors:
        running = subprocess.Popen(
            [sys.executable, "-m", "ragbed", "serve", str(index), *of_index, "--port", "0", *map(str, options)],
            stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        said, found = "", None
        for line in running.stdout:
            said += line
            if found := re.search(r"chat page: (http://127\.0\.0\.1:\d+)/", said):
                break
        assert found, said
        yield running, found[1]
    finally:
        running.terminate()
        try:
            running.wait(SECONDS)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        running.stdout.close()


@contextlib.contextmanager
def round_robin(*urls):
    """An address whose connections go to each of the servers in turn."""
    ports, turn, ready, holder = [httpx.URL(url).port for url in urls], [0], threading.Event(), {}

    async def copy(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def connect(reader, writer):
        turn[0] += 1
        there, back = await asyncio.open_connection("127.0.0.1", ports[turn[0] % len(ports)])
        await asyncio.gather(copy(reader, back), copy(there, writer))

    async def run():
        listening = await asyncio.start_server(connect, "127.0.0.1", 0)
        holder.update(port=listening.sockets[0].getsockname()[1], loop=asyncio.get_running_loop(),
                      stop=asyncio.Event())
        ready.set()
        await holder["stop"].wait()
        listening.close()
        if left := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(left, timeout=SECONDS)

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    assert ready.wait(SECONDS)
    try:
        yield f"http://127.0.0.1:{holder['port']}"
    finally:
        holder["loop"].call_soon_threadsafe(holder["stop"].set)
        thread.join(SECONDS)


def events(response):
    """The events of a stream of the chat page."""
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
