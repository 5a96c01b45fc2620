"""Connections have a number, an end to their silence, and few lines in the log."""
import asyncio
import contextlib
import logging
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2 as httpx
import pytest
from patience import SECONDS, until

from ragbed.experiments.guests.serving.connections import Connections, GuardedServer, RepeatFilter

ROOT = Path(__file__).parents[3]
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def app(scope, receive, send):
    """Says hello; at /held only when the client has gone, at /endless without end."""
    if scope["type"] == "lifespan":
        for kind in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{kind}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"transfer-encoding", b"chunked")]})
    left = asyncio.create_task(disconnected(receive))
    if scope["path"] == "/held":
        await left
    while scope["path"] == "/endless" and not left.done():
        await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
        await asyncio.sleep(0)  # `send` waits for nobody once the client has gone
    left.cancel()
    await send({"type": "http.response.body", "body": b"hello"})


def ended(thread):
    thread.join(SECONDS)
    assert not thread.is_alive()


async def disconnected(receive):
    while (await receive())["type"] != "http.disconnect":
        pass


@pytest.fixture
def guarded():
    """Starts servers with limits; returns a function that connects to one, from an address of this machine."""
    with contextlib.ExitStack() as stack:
        def start(**limits):
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            server = GuardedServer(Connections(**limits), app)
            thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
            thread.start()
            stack.callback(ended, thread)
            stack.callback(setattr, server, "should_exit", True)
            at = listening.getsockname()

            def connect(said=b"", source="127.0.0.1"):
                made = stack.enter_context(socket.create_connection(at, 20, (source, 0)))
                made.sendall(said)
                return made

            return connect

        yield start


def answered(connection):
    """Whether the first thing that the server sends is an answer."""
    return connection.recv(1_000).startswith(b"HTTP/1.1 200")


def received(connection, most=10_000):
    """What the server sends until it closes the connection."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while len(said) < most and (more := connection.recv(most)):
            said += more
    return said


def test_silent_connections_make_room_for_one_that_asks(guarded):
    connect = guarded(limit=4, per_address=4)
    silent = [connect() for _ in range(9)]
    assert answered(connect(GET))
    assert [received(one) for one in silent[:6]] == [b""] * 6  # the longest silent ones were closed
    silent[-1].sendall(GET)
    assert answered(silent[-1])


def test_where_all_connections_are_busy_a_new_one_is_told_to_come_back(guarded):
    connect = guarded(limit=2, per_address=2)
    busy = [connect(GET.replace(b"/ ", b"/held ")) for _ in range(2)]
    assert all(answered(one) for one in busy)
    refused = received(connect(GET))
    assert refused.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b'"message": "too many connections; try again in a moment"' in refused
    busy[0].close()
    until(lambda: answered(connect(GET)))


def test_one_address_cannot_take_the_connections_of_others(guarded):
    connect = guarded(limit=4)
    held = [connect(GET.replace(b"/ ", b"/held ")) for _ in range(2)]
    assert all(answered(one) for one in held)
    assert received(connect(GET)).startswith(b"HTTP/1.1 503")
    assert answered(connect(GET, source="127.0.0.2"))


def test_the_connections_of_a_proxy_may_be_more(guarded):
    connect = guarded(limit=4, proxies=("127.0.0.0/30",))
    held = [connect(GET.replace(b"/ ", b"/held ")) for _ in range(3)]
    assert all(answered(one) for one in held)


def test_the_head_of_a_request_must_arrive_in_time_and_a_busy_connection_may_last(guarded):
    connect = guarded(head_seconds=0.5)
    silent, slow, unfinished, good = connect(), connect(), connect(), connect()
    unfinished.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")

    def trickle():
        with contextlib.suppress(OSError):
            for byte in b"GET / HTTP/1.1\r\n" + b"x" * 1_000:
                slow.sendall(bytes([byte]))
                unfinished.sendall(b"x")
                time.sleep(0.02)

    sending = threading.Thread(target=trickle)
    sending.start()
    for _ in range(8):
        good.sendall(GET)
        said = b""
        while not said.endswith(b"0\r\n\r\n"):
            said += (more := good.recv(1_000))
            assert more
        time.sleep(0.1)
    assert (received(silent), received(slow)) == (b"", b"")
    assert received(unfinished).endswith(b"hello\r\n0\r\n\r\n")  # its body never ended
    sending.join(SECONDS)
    assert not sending.is_alive()


def test_a_head_has_a_length_also_if_it_arrives_at_once(guarded):
    connect = guarded()
    for head in (b"".join(b"x%d: y\r\n" % number for number in range(10_000)), b"x: " + b"y" * 100_000 + b"\r\n"):
        assert received(connect(GET[:-2] + head + b"\r\n")).startswith(b"HTTP/1.1 400")


@pytest.mark.slow
def test_a_client_that_does_not_read_is_cut_off(guarded):
    connect = guarded(write_seconds=0.5)
    unread = connect(GET.replace(b"/ ", b"/endless "))
    time.sleep(3)
    assert len(received(unread, 1 << 30)) < 1 << 27  # what the buffers of the system held


def test_a_message_is_logged_once_a_minute_with_a_count(caplog):
    now = [0.0]
    log = logging.getLogger("flooded")
    log.addFilter(RepeatFilter(clock=lambda: now[0]))
    for _ in range(1_000):
        log.warning("socket %d is bad", 7)
        try:
            raise OSError(24, "Too many open files")
        except OSError:
            log.exception("socket.accept() out of system resource\nsocket: <socket>")
    now[0] = 61.0
    log.warning("socket %d is bad", 7)
    assert caplog.messages == [
        "socket 7 is bad", "socket.accept() out of system resource: [Errno 24] Too many open files",
        "socket 7 is bad (999 more since the last such line)"]
    assert not any(one.exc_info for one in caplog.records)


@contextlib.contextmanager
def command(capitals, folder, files, *options):
    """Start `ragbed serve` with a limit on open files; yield its URL (None if it did not start) and its log."""
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ragbed", "serve", str(capitals), "--model", "http://127.0.0.1:9/v1#m", "--port",
             "0", "--retriever", "bm25", "--traffic", str(folder / "traffic"), *options], stdout=log, stderr=log,
            cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:\d+(?=/ )", (folder / "log").read_text())):
            if process.poll() is not None:
                break
            time.sleep(0.1)
        yield found and found[0], folder / "log"
    finally:
        process.terminate()
        process.wait(SECONDS)


@pytest.mark.slow
def test_1100_silent_connections_deny_nobody_the_server_and_leave_no_tracebacks(capitals, tmp_path):
    with command(capitals, tmp_path, 1_024) as (url, log), contextlib.ExitStack() as stack:
        at = httpx.URL(url).host, httpx.URL(url).port
        for _ in range(1_100):
            stack.enter_context(socket.create_connection(at, 20))
        for _ in range(20):
            assert httpx.get(f"{url}/health", timeout=SECONDS).status_code == 200
        assert log.stat().st_size < 2_000


@pytest.mark.slow
def test_more_connections_than_files_are_refused_in_a_line(capitals, tmp_path):
    with command(capitals, tmp_path, 1_024, "--connections", "900") as (url, log):
        assert url is None
        assert "--connections 900: this process may open 1024 files, and 256 are reserved" in log.read_text()
