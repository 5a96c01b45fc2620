"""openai-agents: an agent whose model is a configuration, by chat completions and by responses.

Its package is called `agents`, as one of ours is, so it has an environment of its own: RAGBED_OPENAI_AGENTS names the
Python of that."""
import json
import os
import subprocess
from pathlib import Path

import pytest
from patience import SECONDS
from streamed import streamed

PYTHON = os.environ.get("RAGBED_OPENAI_AGENTS")
REPLY, RECAST = "It is Norway [1].", "Which country is Rome the capital of?"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    not PYTHON, reason="no openai-agents: install it in an environment of its own, and name its Python in "
                       "RAGBED_OPENAI_AGENTS")]


def rewrites(body):
    """Whether it asks to make one question of a conversation."""
    return "It is Norway." in body["messages"][-1]["content"].partition("<conversation>")[2]


def says(body):
    last = body["messages"][-1]["content"]
    if rewrites(body):
        return RECAST
    text = "It is Italy [1]." if RECAST in last else REPLY
    return streamed(text) if body.get("stream") else text


def test_an_agent_answers_with_what_is_served(answering, tmp_path):
    url, model = answering(says, history="rewrite")
    script = Path(__file__).parent / "clients" / "agents_sdk.py"
    done = subprocess.run([PYTHON, "-I", str(script), f"{url}/v1", "direct"], cwd=tmp_path, timeout=SECONDS,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == ["OpenAIChatCompletionsModel", "OpenAIResponsesModel"]
    for name, one in found.items():
        assert (one["whole"], one["streamed"], "".join(one["deltas"])) == (REPLY, REPLY, REPLY), name
        assert (one["further"], one["titles"], one["tokens"]) == ("It is Italy [1].", ["oslo.txt"], 712), name
    assert found["OpenAIResponsesModel"]["kept"] == "It is Italy [1]."
    assert len([body for body, _ in model.requests if rewrites(body)]) == 3
