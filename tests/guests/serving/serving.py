"""A served index for tests: the real application on loopback, in a thread of its own."""
import asyncio
import contextlib
import socket
import threading

import openai
import uvicorn
from patience import SECONDS

from ragbed.agents import AssistantSettings
from ragbed.experiments.guests.operations.server_settings import ServerSettings
from ragbed.experiments.guests.serving.app import create_app, open_server
from ragbed.experiments.guests.serving.configurations import ConfigurationSettings
from ragbed.retrieval import build_index

PAGES = {"oslo.txt": "Oslo is the capital of Norway.", "rome.txt": "Rome is the capital of Italy."}


def index_of(folder, pages=None):
    """An index over pages by name."""
    for name, text in (pages or PAGES).items():
        (folder / name).write_text(text)
    build_index([folder / name for name in pages or PAGES], folder / "index")
    return folder / "index"


def direct(index, model, name="direct", **changes):
    """A configuration over an index, searched by words."""
    return ConfigurationSettings(name, AssistantSettings(**{"index": index, "model": model, "retriever": "bm25", "k": 2,
                                                "reasoning": "direct", "history": "none", **changes}))


@contextlib.contextmanager
def served(described, folder, make=create_app, access=None, worker=None, **options):
    """The URL of a server of these configurations, whose traffic is kept in a folder."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    started = threading.Event()
    holder = {}

    async def run():
        async with open_server(described, ServerSettings(folder, **options), access, worker) as serving:
            holder["server"] = uvicorn.Server(uvicorn.Config(
                make(serving), log_level="warning", lifespan="on", proxy_headers=False))
            holder["serving"] = serving
            started.set()
            await holder["server"].serve(sockets=[listening])

    def main():
        try:
            asyncio.run(run())
        finally:
            started.set()

    thread = threading.Thread(target=main, daemon=True)
    thread.start()
    started.wait(SECONDS)
    try:
        assert "server" in holder, "the server did not start"
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        if "server" in holder:
            holder["server"].should_exit = True
        thread.join(SECONDS)
        listening.close()
        assert not thread.is_alive()


@contextlib.contextmanager
def client_that_leaves(client, path, body):
    """Posts a body as a client does, with its headers, and closes the connection at the end of the block."""
    request = client.build_request("POST", path, json=body)
    with socket.create_connection((client.base_url.host, client.base_url.port)) as plain:
        head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        plain.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + request.read())
        yield


@contextlib.contextmanager
def answering(serve, index, folder):
    """What serves an index over a model that says these lines, or what a function of the request does: its URL, and the
    model's server. Further arguments are of the configuration; `options`, of the server."""
    with contextlib.ExitStack() as stack:
        def start(*lines, options=None, **changes):
            model = serve(lines[0] if callable(next(iter(lines), None)) else list(lines))
            described = direct(index, f"{model.url}#m", **changes)
            return stack.enter_context(served([described], folder / "traffic", **options or {})), model

        yield start


@contextlib.contextmanager
def openai_clients(answering, **options):
    """As `answering`, but gives OpenAI's client, made with these options, with the model's server as `model_server`."""
    with contextlib.ExitStack() as stack:
        def start(*lines, **changes):
            url, model = answering(*lines, **changes)
            client = stack.enter_context(openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, **options))
            client.model_server = model
            return client

        yield start
