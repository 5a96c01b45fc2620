"""Connections of the client for model servers: kept, replaced and freed; and the limit on open files."""
import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest

from ragbed.documents.http_client import bounded_client

resource = pytest.importorskip("resource")
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Counted:
    """A server that counts its connections, and waits with each reply until it may send."""

    def __init__(self, closing=False):
        self.connections, self.may_send, self.closing = 0, asyncio.Event(), closing
        self.serving = set()
        self.may_send.set()

    async def serve(self, reader, writer):
        self.connections += 1
        self.serving.add(asyncio.current_task())
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await self.may_send.wait()
                writer.write(REPLY)
                await writer.drain()
                if self.closing:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def opened(closing=False):
    counted = Counted(closing)
    server = await asyncio.start_server(counted.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with bounded_client(url, 8) as client:
        yield counted, client, url
    await asyncio.gather(*counted.serving)
    server.close()


def test_a_connection_is_used_again_and_concurrent_requests_have_one_each():
    async def run():
        async with opened() as (server, client, url):
            for _ in range(3):
                assert (await client.get(url)).text == "ok"
            first = server.connections
            server.may_send.clear()
            asked = [asyncio.ensure_future(client.get(url)) for _ in range(5)]
            while server.connections < 5:
                await asyncio.sleep(0.01)
            server.may_send.set()
            assert [one.text for one in await asyncio.gather(*asked)] == ["ok"] * 5
            await asyncio.gather(*(client.get(url) for _ in range(5)))
            return first, server.connections

    assert asyncio.run(run()) == (1, 5)


def test_a_connection_that_the_server_has_closed_is_replaced():
    async def run():
        async with opened(closing=True) as (server, client, url):
            for _ in range(3):
                assert (await client.get(url)).text == "ok"
                await asyncio.sleep(0.05)  # until the end of the connection has arrived
            return server.connections

    assert asyncio.run(run()) == 3


def test_a_cancelled_request_frees_its_place():
    async def run():
        async with opened() as (server, client, url):
            server.may_send.clear()
            asked = asyncio.ensure_future(client.get(url))
            while not server.connections:
                await asyncio.sleep(0.01)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            server.may_send.set()
            for _ in range(3):
                assert (await client.get(url)).text == "ok"
            return server.connections

    assert asyncio.run(run()) == 2


def test_closing_the_client_ends_requests_that_wait():
    async def run():
        async with opened() as (server, client, url):
            server.may_send.clear()
            asked = [asyncio.ensure_future(client.get(url)) for _ in range(5)]
            while server.connections < 5:
                await asyncio.sleep(0.01)
            await client.aclose()
            ended = await asyncio.gather(*asked, return_exceptions=True)
            server.may_send.set()
            return [isinstance(one, httpx2.TransportError) for one in ended]

    assert asyncio.run(run()) == [True] * 5


@pytest.mark.parametrize(("hard", "raised"), [(2000, 1512), (1200, 1200)])
def test_the_limit_on_open_files_is_raised_for_many_connections(hard, raised):
    script = ("import resource\n"
              f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))\n"
              "from ragbed.documents.http_client import bounded_client\n"
              "bounded_client('http://127.0.0.1:9/', 1000)\n"
              "print(*resource.getrlimit(resource.RLIMIT_NOFILE))\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(raised), str(hard)]
