"""A server behind a reverse proxy: under a path, with forwarded addresses, for other sites, with keys that change."""
import asyncio
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import mcp
import pytest
from patience import SECONDS, until
from reverse_proxy import proxied
from serving import direct, index_of, served

from ragbed.documents import SettingsError
from ragbed.experiments.guests.operations.edge import EdgeSettings
from ragbed.experiments.guests.serving.api_keys import Keys
from ragbed.experiments.guests.serving.app import create_app
from ragbed.experiments.guests.serving.middleware import GateSettings

ROOT = Path(__file__).parents[3]
ANN, BOB = "ann-key-0123456789", "bob-key-0123456789"
QUESTION = {"model": "direct", "messages": [{"role": "user", "content": "Which country is Oslo the capital of?"}]}
APP, EVIL = "https://app.example", "https://evil.example"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return index_of(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def edge(serve, index, tmp_path):
    """Serves a scripted model with these options; returns the URL."""
    with contextlib.ExitStack() as stack:
        def start(keys=(f"ann {ANN}",), names=("rag.example",), **options):
            settings = EdgeSettings.read("off", **{"root_path": "", "proxies": (), "origins": (), **options})
            gate = GateSettings(Keys(keys), frozenset(names), origins=settings.origins)
            url, folder = serve(lambda body: "Norway [1].").url, tmp_path / f"t{len([*tmp_path.iterdir()])}"
            return stack.enter_context(served(
                [direct(index, f"{url}#m")], folder,
                lambda serving: create_app(serving, gate, settings)))

        yield start


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.slow
@pytest.mark.parametrize("strip", [True, False])
def test_everything_is_found_under_a_path(edge, strip):
    with (proxied(edge(root_path="/rag"), "/rag", strip) as front,
          httpx.Client(base_url=f"{front}/rag", timeout=SECONDS) as client):
        page = client.get("/").text
        links = re.findall(r'(?:href|src)="(assets/[^"]+)"', page)
        assert len(links) == 3
        assert [client.get(f"/{link}").status_code for link in links] == [200] * 3
        assert client.get("/api/threads").status_code == 401
        opened = client.post("/api/session", json={"key": ANN})
        assert "Path=/rag;" in opened.headers["Set-Cookie"]
        answer = client.post("/v1/chat/completions", json=QUESTION, headers=bearer(ANN)).json()
        cited = answer["choices"][0]["message"]["annotations"][0]["url_citation"]["url"]
        assert cited.startswith(f"{front}/rag/documents/")
        document = client.get(cited)  # with the cookie
        assert "Oslo is the capital of Norway.</mark>" in document.text
        style = re.search(r'href="([^"]+document\.css)"', document.text)[1]
        assert client.get(httpx.URL(cited).join(style)).status_code == 200
        assert client.get("/openapi.json", headers=bearer(ANN)).json()["servers"] == [{"url": "/rag"}]

        async def ask():
            async with httpx.AsyncClient(headers=bearer(ANN)) as http:
                transport = mcp.client.streamable_http.streamable_http_client(f"{front}/rag/mcp", http_client=http)
                async with mcp.Client(transport) as tools:
                    return await tools.call_tool("search", {"query": "Oslo"})

        found = asyncio.run(ask()).structured_content["passages"][0]["url"]
        assert found.startswith(f"{front}/rag/documents/")


def test_a_path_without_its_slash_leads_to_the_page(edge):
    url = edge(root_path="/rag/")
    moved = httpx.get(f"{url}/rag")
    assert (moved.status_code, moved.headers["Location"]) == (308, "/rag/")
    assert httpx.get(f"{url}/rag/").status_code == 200
    for path in ("/ragged/health", "/rag/rag/health", "/rag//health", "/RAG/health", "/rag/../v1/models"):
        assert httpx.get(f"{url}{path}").status_code in (401, 404), path


def test_only_named_proxies_forward_addresses(edge):
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "rag.example", "X-Forwarded-For": "192.0.2.7"}
    for proxies, base, secure in ((["127.0.0.0/8"], "https://rag.example", True), (["10.0.0.0/8"], None, False),
                                  ([], None, False)):
        url = edge(proxies=proxies)
        answer = httpx.post(f"{url}/v1/chat/completions", json=QUESTION, headers={**bearer(ANN), **forwarded}).json()
        cited = answer["choices"][0]["message"]["annotations"][0]["url_citation"]["url"]
        assert cited.startswith(f"{base or url}/documents/")
        opened = httpx.post(f"{url}/api/session", json={"key": ANN}, headers=forwarded)
        assert ("Secure" in opened.headers["Set-Cookie"]) == secure


@pytest.mark.parametrize(("host", "status"), [
    ("evil.example", 400), ("rag.example, evil.example", 400), ("evil.example, rag.example", 200), ("", 200),
    ("rag.example/evil", 200), ("rag.example@evil", 200), ("a b", 200), ("RAG.example:443", 200)])
def test_a_forwarded_host_is_a_name_of_the_server(edge, host, status):
    """One that is not a host is ignored; the request's own stays."""
    answer = httpx.get(f"{edge(proxies=['127.0.0.1'])}/health", headers={"X-Forwarded-Host": host})
    assert answer.status_code == status


def test_pages_of_named_origins_may_use_the_api_with_a_key(edge):
    with httpx.Client(base_url=edge(origins=[APP]), timeout=SECONDS) as client:
        ask = {"Origin": APP, "Access-Control-Request-Method": "POST",
               "Access-Control-Request-Headers": "authorization,content-type"}
        allowed = client.options("/v1/chat/completions", headers=ask)
        assert (allowed.status_code, allowed.headers["Access-Control-Allow-Origin"]) == (200, APP)
        answer = client.post("/v1/chat/completions", json=QUESTION, headers={**bearer(ANN), "Origin": APP})
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, APP)
        wrong = client.get("/v1/models", headers={"Origin": APP})
        assert (wrong.status_code, wrong.headers["Access-Control-Allow-Origin"]) == (401, APP)  # scripts see why
        for reply in (allowed, answer, wrong, client.get("/v1/models")):
            assert "Origin" in reply.headers["Vary"]
            assert "Access-Control-Allow-Credentials" not in reply.headers


@pytest.mark.parametrize("origin", [EVIL, "null", "https://app.example.evil.example", "http://app.example",
                                    "https://app.example:8443", "https://APP.example", "https://app.example/", ""])
def test_other_origins_may_not(edge, origin):
    with httpx.Client(base_url=edge(origins=[APP]), timeout=SECONDS) as client:
        asked = client.options("/v1/chat/completions", headers={"Origin": origin,
                                                                "Access-Control-Request-Method": "POST"})
        answer = client.post("/v1/chat/completions", json=QUESTION, headers={**bearer(ANN), "Origin": origin})
        assert (asked.status_code in (400, 401, 405), answer.status_code) == (True, 403)
        assert not any("Access-Control-Allow-Origin" in one.headers for one in (asked, answer))


def test_a_cookie_is_worth_nothing_to_another_origin(edge):
    with httpx.Client(base_url=edge(origins=[APP]), timeout=SECONDS) as client:
        client.post("/api/session", json={"key": ANN})
        assert client.get("/api/threads").status_code == 200
        assert client.get("/api/threads", headers={"Origin": APP}).status_code == 401
        assert client.post("/api/ask", json={"question": "Who?"}, headers={"Origin": APP}).status_code == 401


@pytest.mark.parametrize(("options", "said"), [
    ({"origins": ["*"]}, "--origin"), ({"origins": ["null"]}, "--origin"), ({"origins": ["app.example"]}, "--origin"),
    ({"origins": ["https://app.example/path"]}, "--origin"), ({"origins": ["https://u:p@app.example"]}, "--origin"),
    ({"origins": ["https://*.example"]}, "--origin"), ({"proxies": ["*"]}, "--proxy"),
    ({"proxies": ["proxy.example"]}, "--proxy"), ({"proxies": ["10.0.0.1/8"]}, "--proxy"),
    ({"root_path": "rag"}, "--root-path"), ({"root_path": "/a/../b"}, "--root-path"),
    ({"root_path": "//evil.example"}, "--root-path"), ({"root_path": "/a?b"}, "--root-path")])
def test_options_that_would_be_unsafe_are_refused(options, said):
    with pytest.raises(SettingsError, match=said):
        EdgeSettings.read("off", **{"root_path": "", "proxies": (), "origins": (), **options})


@contextlib.contextmanager
def process(index, model, keys, folder, *options):
    """`ragbed serve` in a process of its own, its URL and its output so far."""
    with open(folder / "log", "w+") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", "ragbed", "serve", str(index), "--model", f"{model}#m", "--reasoning", "direct",
             "--retriever", "bm25", "--port", "0", "--traffic", str(folder / "t"), "--keys", str(keys), *options],
            stdout=log, stderr=log, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})

        def wait_for(pattern):
            return until(lambda: re.search(pattern, (folder / "log").read_text()), (folder / "log").read_text)

        try:
            yield running, wait_for(r"chat page: (http://127\.0\.0\.1:\d+)/")[1], wait_for
        finally:
            running.kill()
            running.wait()


@pytest.mark.slow
def test_keys_are_read_again_and_cookies_of_revoked_keys_end(serve, index, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text(f"ann {ANN}\nbob {BOB}\n")
    with (process(index, serve(lambda body: "Norway [1].").url, keys, tmp_path) as (server, url, wait_for),
          httpx.Client(base_url=url) as ann, httpx.Client(base_url=url) as bob):
        for client, key in ((ann, ANN), (bob, BOB)):
            client.post("/api/session", json={"key": key})
        for content in (b"", b"ann\n", b"\xff\xfe", b"ann short", b"ann sha256:0\n"):
            keys.write_bytes(content)
            server.send_signal(signal.SIGHUP)
            wait_for(r"SIGHUP: the old keys stay: .*")
            (tmp_path / "log").write_text("")
            assert [client.get("/api/threads").status_code for client in (ann, bob)] == [200, 200], content
        keys.unlink()
        os.mkfifo(keys)  # which nobody writes
        server.send_signal(signal.SIGHUP)
        wait_for(r"SIGHUP: the old keys stay: .*a pipe or a device")
        keys.unlink()
        keys.write_text(f"ann {ANN}\nbob sha256:{hashlib.sha256(b'another-key-0123').hexdigest()}\n")
        server.send_signal(signal.SIGHUP)
        wait_for(r"SIGHUP: .* was reloaded")
        assert [client.get("/api/threads").status_code for client in (ann, bob)] == [200, 401]
        assert bob.get("/api/threads", headers=bearer(BOB)).status_code == 401
        assert bob.get("/api/threads", headers=bearer("another-key-0123")).status_code == 200
        asked = ann.post("/api/ask", json={"question": "Where is Oslo?"}).text
        assert json.loads(asked.split("data: ")[-1])["outcome"] == "answered"
        server.terminate()
        assert server.wait(SECONDS) == 0


@pytest.mark.slow
def test_people_can_sign_in_at_the_address_that_the_start_prints(serve, index, tmp_path):
    (keys := tmp_path / "keys").write_text(f"ann {ANN}\n")
    with process(index, serve(lambda body: "Norway [1].").url, keys, tmp_path, "--root-path", "/rag") as (*_, wait_for):
        page, base = wait_for(r"chat page: (\S+)/   base URL for clients: (\S+)/v1").groups()
        with httpx.Client(base_url=page) as client:
            client.post("/api/session", json={"key": ANN})
            assert client.get("/api/threads").status_code == 200
    assert page == base
    assert page.endswith("/rag")
