"""Who may ask a server, from where, how often, how much, and how many at once; what is refused has OpenAI's form."""
import asyncio
import hashlib
import json
import os
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx2 as httpx
import openai
import pytest
from fastapi import HTTPException
from patience import SECONDS, until
from serving import client_that_leaves, direct, index_of, served

from ragbed.documents import SettingsError
from ragbed.experiments.guests.serving.api_keys import Keys, LoginLimit
from ragbed.experiments.guests.serving.app import create_app
from ragbed.experiments.guests.serving.middleware import GateSettings, Queue, Rate

ANN, BOB = "ann-key-0123456789", "bob-key-0123456789"
KEYS = [f"ann {ANN}", "# a hash is as good", f"bob sha256:{hashlib.sha256(BOB.encode()).hexdigest()}"]
QUESTION = {"model": "direct", "messages": [{"role": "user", "content": "Which country is Oslo the capital of?"}]}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def gated(serve, index, tmp_path):
    """Serves over a scripted model behind a gate; returns a client."""
    opened = []

    def start(script, keys=(), **settings):
        gate = GateSettings(Keys(keys), frozenset({"ragbed.example"}), **settings)
        server = served([direct(index, f"{serve(script).url}#m")], tmp_path / "traffic",
                        lambda serving: create_app(serving, gate))
        client = httpx.Client(base_url=server.__enter__(), timeout=SECONDS)
        opened.append((server, client))
        return client

    yield start
    for server, client in opened:
        client.close()
        server.__exit__(None, None, None)


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def ask(client, key=None, **more):
    return client.post("/v1/chat/completions", json=QUESTION, headers=bearer(key) if key else {}, **more)


def test_a_key_opens_what_is_not_public(gated):
    client = gated(lambda body: "Norway [1].", KEYS)
    assert [client.get(path).status_code for path in ("/health", "/", "/v1/models", "/metrics", "/openapi.json")] == [
        200, 200, 401, 401, 401]
    none, wrong = ask(client), ask(client, "ann-key-9876543210")
    assert (none.status_code, wrong.status_code) == (401, 401)
    assert none.headers["WWW-Authenticate"] == "Bearer"
    assert wrong.json() == {"error": {"message": "unknown key", "type": "invalid_request_error", "param": None,
                                      "code": "invalid_api_key"}}
    assert [ask(client, key).status_code for key in (ANN, BOB)] == [200, 200]
    with pytest.raises(openai.AuthenticationError, match="unknown key"):
        openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="none", max_retries=0).models.list()


def test_nobody_sees_the_thread_of_another(gated):
    client = gated(lambda body: "Norway [1].", KEYS)
    asked = client.post("/api/ask", json={"question": "Where is Oslo?"}, headers=bearer(ANN)).text
    begun = json.loads(asked.split("\n")[1].removeprefix("data: "))
    thread, record = begun["thread"], begun["record"]
    assert [client.get(f"/api/threads/{thread}", headers=bearer(key)).status_code for key in (ANN, BOB)] == [200, 404]
    assert client.get("/api/threads", headers=bearer(BOB)).json() == {"threads": []}
    on = client.post("/api/ask", json={"question": "And Rome?", "thread": thread}, headers=bearer(BOB))
    rated = client.post("/api/feedback", json={"record": record, "thumb": "up"}, headers=bearer(BOB))
    assert (on.status_code, rated.status_code) == (404, 404)


def test_a_session_is_a_cookie_that_no_script_reads(gated):
    client = gated([], KEYS)
    assert client.post("/api/session", json={"key": "nobodys-key-0123"}).status_code == 401
    opened = client.post("/api/session", json={"key": ANN})
    assert opened.json() == {"owner": "ann"}
    cookie = opened.headers["Set-Cookie"]
    assert all(said in cookie for said in ("HttpOnly", "SameSite=strict", "Max-Age=43200"))
    assert ANN not in cookie
    assert client.get("/api/threads").status_code == 200  # the client sends it from now on
    assert client.get("/api/threads", headers=bearer("another-key-0123")).status_code == 401
    client.cookies.clear()
    forged = opened.cookies["ragbed_session"].partition(".")[2]
    for value in (f"Ym9iIDk5OTk5OTk5OTk.{forged}", "x", "a.b", "a.b.c"):  # the first says bob, until 2286
        assert client.get("/api/threads", headers={"Cookie": f"ragbed_session={value}"}).status_code == 401


def test_a_session_has_an_end(monkeypatch):
    keys = Keys(KEYS)
    cookie = keys.create_session("ann")
    assert keys.session_owner(cookie) == "ann"
    later = time.time() + 12 * 3600 + 2
    monkeypatch.setattr(time, "time", lambda: later)
    assert keys.session_owner(cookie) is None
    assert Keys(KEYS).session_owner(cookie) is None  # nor does it outlive the process


def test_guesses_of_a_key_are_few_counted_and_logged_and_lock_nobody_out(gated, caplog):
    client = gated(lambda body: "Norway [1].", KEYS)
    assert client.get("/v1/models", headers=bearer(ANN)).status_code == 200
    guesses = [client.post("/api/session", json={"key": f"guess-{number:016}"}) for number in range(100)]
    guesses += [client.get("/v1/models", headers=bearer(f"guess-{number:016}")) for number in range(100)]
    statuses = [one.status_code for one in guesses]
    assert statuses[:10] == [401] * 10
    assert statuses.count(429) >= 180  # after ten, the next is checked in 1, 2, 4 and 8 seconds
    refused = client.post("/api/session", json={"key": BOB})  # nor does the right key tell
    assert (refused.status_code, refused.json()["error"]["message"]) == (429, "too many unknown keys from this address")
    assert 1 <= int(refused.headers["Retry-After"]) <= 300
    assert client.get("/v1/models", headers=bearer(ANN)).status_code == 200
    assert client.post("/api/session", json={"key": ANN}).status_code == 200
    assert figure(client, "ragbed_unknown_keys_total") == statuses.count(401)
    lines = [line for line in caplog.messages if "unknown keys" in line]
    assert lines[0] == "10 unknown keys came from 127.0.0.1; the next is checked in 1 s"
    assert len(lines) == statuses.count(401) - 9


def test_the_wait_for_the_next_guess_doubles_and_an_address_is_forgiven():
    now = [0.0]
    limit = LoginLimit(clock=lambda: now[0])

    def guess(host, known=False):
        """Seconds to wait; 0 if the key was compared."""
        try:
            limit.check(host, b"key", known)
        except HTTPException as refused:
            return int(refused.headers["Retry-After"])
        return 0

    assert guess("192.0.2.7", known=True) == 0
    assert [guess("192.0.2.1") for _ in range(12)] == [0] * 10 + [1, 1]
    waits = []
    for _ in range(11):
        waits.append(guess("192.0.2.1"))
        now[0] += waits[-1]
        assert guess("192.0.2.1") == 0
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert (guess("192.0.2.1", known=True), guess("192.0.2.2")) == (300, 0)
    assert [guess(f"2001:db8::{number}") for number in range(12)] == [0] * 10 + [1, 1]  # of one network
    assert [guess("192.0.2.7") for _ in range(11)] == [0] * 10 + [1]
    assert guess("192.0.2.7", known=True) == 0  # it was right from there before
    now[0] += 601
    assert [guess("192.0.2.1") for _ in range(11)] == [0] * 10 + [1]


@pytest.mark.slow
def test_a_guesser_from_many_networks_forgets_no_key_that_was_right():
    now = [0.0]
    limit = LoginLimit(clock=lambda: now[0])
    limit.check("192.0.2.1", b"key", True)
    for number in range(20_000):
        now[0] += 0.001
        limit.check(f"2001:db8:{number:x}::1", b"guess", False)
    for _ in range(10):
        limit.check("192.0.2.1", b"guess", False)
    limit.check("192.0.2.1", b"key", True)
    with pytest.raises(HTTPException):
        limit.check("192.0.2.1", b"other", True)


def test_a_request_without_a_key_is_short(gated):
    client = gated([], KEYS)
    long = client.post("/api/session", json={"key": "x" * 20_000})
    assert (long.status_code, long.json()["error"]["message"]) == (413, "a request may have at most 10000 bytes")


@pytest.mark.parametrize(("line", "said"), [
    ("ann", "expected a unique name and a key"), ("ann short", "at least 16 characters"),
    ("ann sha256:00", "64 hexadecimal digits"), ("a/b 0123456789abcdef", "expected a unique name"),
    (f"ann {ANN}\nann {BOB}", "line 2: expected a unique name")])
def test_keys_that_are_none_are_refused_with_their_line(line, said, tmp_path):
    path = tmp_path / "keys"
    path.write_text(line)
    with pytest.raises(SettingsError, match=said) as error:
        Keys.read(path, None)
    assert "short" not in str(error.value)
    assert Keys.read(None, f"ann {ANN},bob {BOB}").owner(BOB) == "bob"


def test_a_file_of_keys_that_would_fill_the_memory_is_refused_unread(tmp_path):
    (path := tmp_path / "keys").write_text(f"ann {ANN}\n")
    os.truncate(path, 10_000_000_000)  # its end takes no room on the disk
    with pytest.raises(SettingsError, match="larger than 16,000,000 bytes"):
        Keys.read(path, None)


def test_a_key_that_asks_too_often_is_told_when_to_come_back(gated):
    client = gated(lambda body: "Norway [1].", KEYS, rate=Rate("2/hour"))
    assert [ask(client, ANN).status_code for _ in range(3)] == [200, 200, 429]
    late = ask(client, ANN)
    assert late.json()["error"]["code"] == "rate_limit_exceeded"
    assert 1790 <= int(late.headers["Retry-After"]) <= 1800
    assert client.get("/v1/models", headers=bearer(ANN)).status_code == 200
    assert ask(client, BOB).status_code == 200


def test_the_queue_is_bounded_and_says_when_to_come_back(gated):
    hold = threading.Event()
    client = gated(lambda body: {"text": "Norway [1].", "hold": hold}, concurrency=1, queue=1)
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(ask(client).status_code)) for _ in range(2)]
    for number, thread in enumerate(threads):
        thread.start()
        until(lambda number=number: figure(client, "ragbed_running") + figure(client, "ragbed_waiting")
                 == number + 1)
    full = ask(client)
    assert (full.status_code, full.headers["Retry-After"], full.json()["error"]["code"]) == (429, "5", "busy")
    hold.set()
    for thread in threads:
        thread.join()
    assert statuses == [200, 200]


def test_who_leaves_the_queue_frees_their_place(gated):
    hold = threading.Event()
    client = gated(lambda body: {"text": "Norway [1].", "hold": hold}, concurrency=1, queue=1)
    first = threading.Thread(target=ask, args=(client,))
    first.start()
    until(lambda: figure(client, "ragbed_running") == 1)
    for _ in range(2):
        with client_that_leaves(client, "/v1/chat/completions", QUESTION):
            until(lambda: figure(client, "ragbed_waiting") == 1)
        until(lambda: figure(client, "ragbed_waiting") == 0, seconds=60)  # the call ahead ends by itself after 120
    hold.set()
    first.join()
    assert ask(client).status_code == 200
    until(lambda: figure(client, "ragbed_running") == 0)


def test_a_body_of_ten_megabytes_is_refused_before_it_is_read(gated):
    client = gated([])
    long = {**QUESTION, "messages": [{"role": "user", "content": "x" * 10_000_000}]}
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=SECONDS) as plain:
        plain.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                      b"Content-Length: 10000000\r\n\r\n{")  # the rest is never sent
        assert plain.recv(1000).startswith(b"HTTP/1.1 413")
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=SECONDS) as plain:
        plain.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                      + b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        plain.sendall(15 * (b"10000\r\n" + b"x" * 0x10000 + b"\r\n"))
        assert plain.recv(1000).startswith(b"HTTP/1.1 413")
    whole = httpx.post(f"{client.base_url}/v1/chat/completions", json=long)
    assert (whole.status_code, whole.json()["error"]["code"]) == (413, "request_too_large")


def test_bodies_that_arrive_at_once_have_a_size_together(gated):
    client = gated(lambda body: "Norway [1].", bodies=20_000)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    at = client.base_url.host, client.base_url.port
    with socket.create_connection(at, 30) as slow, socket.create_connection(at, 30) as second:
        slow.sendall(head + b"Content-Length: 15000\r\n\r\n" + b" " * 14_999)
        second.sendall(head + b"Content-Length: 15000\r\n\r\n" + b" " * 14_999)
        assert second.recv(1_000).startswith(b"HTTP/1.1 429")
    until(lambda: ask(client).status_code == 200)


def test_pages_of_other_sites_can_not_ask(gated):
    client = gated(lambda body: "Norway [1].")
    for name, values, status in (
            ("Host", ("ragbed.example", "192.0.2.7:8700", "LOCALHOST:80"), 200),
            ("Host", ("evil.example", "127.0.0.1.evil.example", "["), 400),
            ("Origin", ("https://evil.example", "null"), 403), ("Sec-Fetch-Site", ("same-site", "cross-site"), 403),
            ("Sec-Fetch-Site", ("same-origin",), 200)):
        for value in values:
            answer = client.post("/v1/chat/completions", json=QUESTION, headers={name: value})
            assert answer.status_code == status, value
            assert not [header for header in answer.headers if header.lower().startswith("access-control")]


def test_the_own_page_may_ask_by_its_origin(gated):
    client = gated(lambda body: "Norway [1].")
    host = urlsplit(str(client.base_url)).netloc
    assert client.post("/v1/chat/completions", json=QUESTION, headers={"Origin": f"http://{host}"}).status_code == 200


def test_every_answer_says_what_a_browser_may_do_with_it(gated):
    for answer in ((client := gated([])).get("/"), client.get("/nothing"), client.get("/v1/models")):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.slow
def test_a_request_has_a_time_limit_that_ends_its_answer(gated):
    client = gated(lambda body: {"text": "Norway", "delay": 20}, seconds=0.5)
    whole = ask(client)
    assert (whole.status_code, whole.json()["error"]["code"]) == (504, "timeout")
    stream = client.post("/v1/chat/completions", json={**QUESTION, "stream": True})
    assert json.loads(stream.text.strip().split("data: ")[-1])["error"]["code"] == "timeout"
    until(lambda: 'outcome="error"} 2.0' in client.get("/metrics").text)


def figure(client, name):
    return float(next(line.split()[1] for line in client.get("/metrics").text.splitlines() if line.startswith(name)))


def test_every_refusal_has_the_form_of_openais_errors(answering):
    url, _ = answering()
    said = [httpx.get(f"{url}/nowhere"), httpx.post(f"{url}/v1/chat/completions", content=b"\xff",
                                                        headers={"content-type": "application/json"})]
    assert [one.status_code for one in said] == [404, 400]
    assert all(one.json()["error"]["type"] == "invalid_request_error" for one in said)


async def test_who_leaves_the_queue_keeps_no_place_in_it():
    queue, stay, leave = Queue(1, 2), asyncio.Event(), asyncio.Event()

    async def asked(gone, done):
        async with queue.place(gone.wait) as here:
            done.append(here)

    seen = []
    async with queue.place(stay.wait):
        waiting = [asyncio.ensure_future(asked(leave, seen)), asyncio.ensure_future(asked(stay, seen))]
        await asyncio.sleep(0)
        assert (queue.running, queue.waiting) == (1, 2)
        leave.set()
        await waiting[0]
        assert (queue.running, queue.waiting) == (1, 1)
    await waiting[1]
    assert (seen, queue.running, queue.waiting) == ([False, True], 0, 0)
