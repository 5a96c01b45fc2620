"""One run with three providers that speak three protocols: keys, prices, a refused parameter, a kill, and a replay."""
import gzip
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
import yaml
from patience import SECONDS
from protocol_servers import ProtocolServer

for package in ("langchain", "langchain_anthropic", "langchain_google_genai"):
    pytest.importorskip(package, reason=f"needs {package}: pip install 'ragbed[langchain]'")

KEYS = {name: f"canary-{name.lower()}-7f3e9d21" for name in ("OPEN_KEY", "CLAUDE_KEY", "GOOGLE_KEY")}
PRICES = {"gpt": {"prompt": 1, "cached": 0.5, "completion": 10}, "claude": {"prompt": 3, "completion": 15},
          "gemini": {"prompt": 2, "cached": 0, "completion": 4}}
PAID = {"gpt": 4 * (500 * 1 + 200 * 0.5 + 12 * 10) / 1e6, "claude": 4 * (700 * 3 + 12 * 15) / 1e6,
        "gemini": 4 * (500 * 2 + 12 * 4) / 1e6}  # 4 questions of 700 prompt tokens, 200 of them cached, and 12 more
QUESTIONS = 4


def refuse_temperature(body):
    refused = {"status": 400, "error": "`temperature` is deprecated for this model."}
    return refused if "temperature" in body else "Ada [1]"


@pytest.fixture
def servers(monkeypatch):
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "RAGBED_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    started = {name: ProtocolServer([line] * 50) for name, line in (
        ("gpt", "Ada [1]"), ("claude", refuse_temperature), ("gemini", "Ada [1]"))}
    yield started
    for server in started.values():
        server.close()


def settings(folder, servers, **more):
    path = folder / "three.yaml"
    path.write_text(yaml.safe_dump({
        "out": str(folder / "runs"), "benchmark": {"kind": "demo", "limit": QUESTIONS}, "conditions": "closed-book",
        "models": [
            {"name": "gpt", "model": f"{servers['gpt'].url}/v1#gpt-5-mini", "key_env": "OPEN_KEY",
             "headers": {"X-Team": {"env": "OPEN_KEY"}}, "prices": PRICES["gpt"], "requests_per_minute": 6000},
            {"name": "claude", "model": "anthropic:claude-sonnet-5", "base_url": servers["claude"].url,
             "key_env": "CLAUDE_KEY", "prices": PRICES["claude"], "concurrency": 1},
            {"name": "gemini", "model": "langchain:google_genai:gemini-3-flash", "base_url": servers["gemini"].url,
             "key_env": "GOOGLE_KEY", "prices": PRICES["gemini"], "extra_body": {"top_p": 0.9}}], **more}))
    return path


def asked(servers):
    return {name: len(server.requests) for name, server in servers.items()}


def test_keys_stay_apart_prices_are_each_models_and_a_refusal_is_noted(servers, ragbed, tmp_path, monkeypatch):
    path = settings(tmp_path, servers)
    assert ragbed("run", path)[0] == 0
    assert asked(servers) == {"gpt": QUESTIONS, "claude": QUESTIONS + 1, "gemini": QUESTIONS}
    for server, key in zip(servers.values(), KEYS, strict=True):
        for _, headers, body in server.requests:
            sent = json.dumps([headers, body])
            assert KEYS[key] in sent
            assert not any(KEYS[other] in sent for other in KEYS if other != key)
    run = tmp_path / "runs" / "three"
    summary = json.loads((run / "summary.json").read_text())
    assert {cell["model"]: round(cell["usage"]["price"], 9) for cell in summary["cells"]} == {
        name: round(price, 9) for name, price in PAID.items()}
    assert [note for note in summary["notes"] if "refused" in note] == [
        "The server of claude-sonnet-5 refused temperature, so ragbed left it out of the calls."]
    assert ragbed("cassette", "export", run, "--out", tmp_path / "three.jsonl.gz")[0] == 0
    written = [gzip.decompress((tmp_path / "three.jsonl.gz").read_bytes()), *(
        file.read_bytes() for file in run.rglob("*") if file.is_file())]
    assert not any(key.encode() in content for key in KEYS.values() for content in written)

    for name in KEYS:  # a replay needs no key, no server and no package
        monkeypatch.delenv(name)
    monkeypatch.setattr("ragbed.documents.errors.find_spec", lambda name: None)
    before, written = asked(servers), (run / "summary.json").read_bytes()
    status, _, err = ragbed("run", path, "--fresh", "--replay", tmp_path / "three.jsonl.gz")
    assert (status, asked(servers), (run / "summary.json").read_bytes() == written) == (0, before, True), err


def test_a_killed_run_asks_each_call_once(servers, tmp_path):
    reached, go = threading.Event(), threading.Event()

    def stall(body):
        reached.set()
        go.wait(SECONDS)
        return "Ada [1]"

    servers["gemini"].script[2:3] = [stall]
    path = settings(tmp_path, servers, concurrency=1)
    command = [sys.executable, "-m", "ragbed", "run", str(path)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
    assert reached.wait(SECONDS)
    child.send_signal(signal.SIGKILL)
    child.wait()
    go.set()
    before = asked(servers)
    subprocess.run(command, check=True, capture_output=True, env=os.environ)
    after = asked(servers)
    assert after["gemini"] == QUESTIONS + 1  # the one that was under way is asked again
    assert after["gpt"] - before["gpt"] in (QUESTIONS - before["gpt"], QUESTIONS - before["gpt"] + 1)
    summary = json.loads((tmp_path / "runs" / "three" / "summary.json").read_text())
    assert {cell["model"]: round(cell["usage"]["price"], 9) for cell in summary["cells"]} == {
        name: round(price, 9) for name, price in PAID.items()}
    assert sum("claude-sonnet-5 refused temperature" in note for note in summary["notes"]) == 1
