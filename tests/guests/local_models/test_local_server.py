"""The local model server: reachable with its key only, started when needed, never left behind."""
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from patience import SECONDS

from ragbed.agents import LocalSettings, ModelSettings, open_model
from ragbed.documents import ModelError
from ragbed.experiments.guests.agent.protocols import Native
from ragbed.experiments.guests.agent.searching import search_tool
from ragbed.experiments.guests.local_models import model_catalogue
from ragbed.experiments.guests.local_models.llama_server import LocalServer
from ragbed.strategies import Generate, Message

DOCUMENT = "Paris is the capital of France. " * 40
SETTINGS = ModelSettings(local=LocalSettings(context=1024))
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def weights():
    found = model_catalogue.find_model_files(model_catalogue.ENTRIES[0])
    if found is None:
        pytest.skip("the local model is not here; run: ragbed models pull smollm2-135m")
    return found


def asking(text, **fields):
    return Generate((Message("system", ("Be brief.",)), Message("user", (DOCUMENT, text))), "answer", **fields)


def status(url, method="GET"):
    request = urllib.request.Request(url, method=method, data=b"{}" if method == "POST" else None,
                                     headers={"Origin": "http://elsewhere.example"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(pid):
    end = time.monotonic() + SECONDS
    while alive(pid) and time.monotonic() < end:
        await asyncio.sleep(0.05)
    return not alive(pid)


@pytest.mark.slow
async def test_the_local_model_answers_from_a_warm_prefix_at_no_price(weights):
    async with open_model(f"gguf:{weights}", SETTINGS) as model:
        assert model.identity == f"sha256:{model_catalogue.ENTRIES[0].weights.sha256}"
        first = (await model.complete(asking("Which city?"), max_tokens=16)).reply
        again = (await model.complete(asking("Which country?"), max_tokens=16)).reply
        assert first.text
        assert first.usage.price == 0.0
        assert again.usage.cached_tokens > 0.8 * again.usage.prompt_tokens
        schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}},
                  "required": ["city"], "additionalProperties": False}
        fitted = (await model.complete(asking("Which city?", schema=schema), max_tokens=40)).reply
        assert list(fitted.parsed) == ["city"]
        # Its template knows no tools: they are taken and not shown, so what it says is text.
        tools = Native((search_tool(),), lambda name, given: given).tools
        said = (await model.complete(asking("Which city?", tools=tools), max_tokens=16)).reply
        assert (said.tool_calls, said.usage.prompt_tokens) == ((), first.usage.prompt_tokens)


@pytest.mark.slow
@LINUX
async def test_nothing_is_reachable_without_the_key_and_the_key_is_nowhere_to_be_seen(weights):
    server = LocalServer(weights, SETTINGS.local)
    try:
        at = await server.address()
        base = at.url.removesuffix("/v1")
        for path in ("/v1/models", "/models", "/props", "/slots", "/metrics", "/lora-adapters", "/tools"):
            assert status(base + path)[0] in {401, 404}, path
        for path in ("/completion", "/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/infill", "/tokenize",
                     "/apply-template", "/props", "/slots/0?action=erase", "/v1/messages", "/v1/responses"):
            assert status(base + path, "POST")[0] in {401, 404}, path
        assert status(base + "/")[0] == 404
        code, body, headers = status(base + "/health")
        assert (code, json.loads(body)) == (200, {"status": "ok"})
        assert headers["Access-Control-Allow-Origin"] in {None, ""}
        for name in ("cmdline", "environ"):
            with open(f"/proc/{server.pid}/{name}", "rb") as file:
                assert at.key.encode() not in file.read()
        pid = server.pid
    finally:
        await server.aclose()
    assert await gone(pid)


@pytest.mark.slow
@LINUX
async def test_a_server_that_dies_is_started_again_and_the_call_repeated(weights):
    async with open_model(f"gguf:{weights}", SETTINGS) as model:
        await model.ready()
        server = model._endpoint
        first = server.pid
        task = asyncio.create_task(model.complete(asking("Write a long story."), max_tokens=200))
        await asyncio.sleep(0.4)
        os.kill(first, signal.SIGKILL)
        done = await task
        assert (done.attempts, done.reply.text != "") == (2, True)
        assert server.pid != first
        last = server.pid
    assert await gone(last)


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_server_ends_with_its_parent_however_that_ends(weights, how):
    code = ("import asyncio, sys\n"
            "from pathlib import Path\n"
            "from ragbed.experiments.guests.local_models.llama_server import LocalServer\n"
            "from ragbed.agents.model_settings import LocalSettings\n"
            "async def main():\n"
            "    server = LocalServer(Path(sys.argv[1]), LocalSettings(context=512))\n"
            "    await server.address()\n"
            "    print(server.pid, flush=True)\n"
            "    await asyncio.sleep(60)\n"
            "asyncio.run(main())")
    with subprocess.Popen([sys.executable, "-c", code, str(weights)], stdout=subprocess.PIPE) as parent:
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.send_signal(how)
        parent.wait()
    assert await gone(pid)


@pytest.mark.slow
async def test_a_file_that_is_no_model_is_one_line_with_the_log_s_end(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(64))
    async with open_model(f"gguf:{tmp_path}/broken.gguf", SETTINGS) as model:
        with pytest.raises(ModelError, match=r"the local server for broken\.gguf does not start: .+") as caught:
            await model.complete(asking("?"), max_tokens=5)
    assert str(caught.value).isprintable()


@pytest.mark.slow
@LINUX
async def test_a_start_that_takes_too_long_or_is_cancelled_leaves_nothing(weights):
    server = LocalServer(weights, LocalSettings(context=512, start_seconds=0.05))
    with pytest.raises(ModelError, match=r"did not start within 0\.05 s"):
        await server.address()
    assert server.pid is None
    for steps in (1, 2, 3, None):  # of the event loop, or until the child is there
        slow = LocalServer(weights, LocalSettings(context=512))
        task = asyncio.create_task(slow.address())
        for _ in range(steps or 0):
            await asyncio.sleep(0)
        while steps is None and slow.pid is None:
            await asyncio.sleep(0)
        pid = slow.pid
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (slow.pid, slow._log) == (None, None)
        assert await gone(pid)
