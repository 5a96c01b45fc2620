"""Vercel's AI SDK in Node: `@ai-sdk/openai` by chat completions and by responses, and `@ai-sdk/openai-compatible`."""
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from patience import SECONDS
from streamed import streamed

CLIENTS = Path(__file__).parent / "clients"
REPLY, RECAST = "It is Norway [1].", "Which country is Rome the capital of?"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("npm"), reason="Node and npm are not installed")]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the SDK, of the versions of the lock file."""
    folder = tmp_path_factory.mktemp("node")
    for name in ("package.json", "package-lock.json", "ai_sdk.js"):
        shutil.copy(CLIENTS / name, folder)
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm cannot install the SDK: {done.stderr.strip()[-200:]}")
    return folder


def rewrites(body):
    """Whether it asks to make one question of a conversation."""
    return "It is Norway." in body["messages"][-1]["content"].partition("<conversation>")[2]


def says(body):
    last = body["messages"][-1]["content"]
    if "Fail." in last:
        return {"status": 400, "error": {"message": "no such model"}}
    if rewrites(body):
        return RECAST
    text = "It is Italy [2]." if RECAST in last else REPLY
    return streamed(text) if body.get("stream") else text


def test_answers_and_their_sources_arrive_by_every_provider(answering, installed):
    url, model = answering(says, history="rewrite", options={"citations": "both"})
    done = subprocess.run(["node", "ai_sdk.js", f"{url}/v1", "direct"], cwd=installed, capture_output=True, text=True,
                          timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == ["chat", "responses", "compatible", "failed"]
    for name in ("chat", "responses", "compatible"):
        one = found[name]
        for answer in (one["whole"], one["streamed"]):
            assert answer["text"].startswith(f"{REPLY}\n\nSources:\n- [1] [oslo.txt](<{url}/documents/"), name
            assert (answer["finish"], answer["tokens"]) == ("stop", 712), name
            titles = [source["title"] for source in answer["sources"]]
            assert titles == ([] if name == "compatible" else ["oslo.txt"]), name  # which reads no annotations
            assert all(source["url"].startswith(f"{url}/documents/") for source in answer["sources"])
        assert "".join(one["pieces"]) == one["streamed"]["text"]
        assert len(one["pieces"]) >= 2, name  # pieces that arrive together are sent together
        assert one["errors"] == []
        assert one["further"].startswith("It is Italy [2].")
    rewritten = [body for body, _ in model.requests if rewrites(body)]
    assert len(rewritten) == 3  # also where the answer before is only named, as the SDK does in responses
    assert found["failed"] is True


def plays(body):
    """A model that calls tools in text, then answers."""
    text = "\n".join(str(message["content"]) for message in body["messages"])
    said = 'grep: {"pattern": "Oslo is"}\ngrep: (' if "oslo.txt, line 1" not in text else \
        "<Answer>It is Norway [1].</Answer>" if "finish" in str(body["messages"][-2]["content"])[:20] else "finish"
    return streamed(said) if body.get("stream") else said


def test_the_calls_of_an_agent_disturb_no_provider(answering, installed):
    url, _ = answering(plays, reasoning={"kind": "agent", "tools": ["grep"], "protocol": "text"})
    done = subprocess.run(["node", "ai_sdk.js", f"{url}/v1", "direct"], cwd=installed, capture_output=True, text=True,
                          timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in ("chat", "responses", "compatible"):
        one = found[name]
        assert (one["whole"]["text"], one["streamed"]["text"], one["further"]) == (REPLY, REPLY, REPLY), name
        assert one["errors"] == []
