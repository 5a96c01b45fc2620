"""The harnesses of docs/harnesses.md, as the page shows them, over a scripted model server and ragbed's tools.

`RAGBED_HARNESSES` names a folder with the environments `langchain`, `openai` and `pydantic`."""
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "harnesses.md"
FOLDER = Path(os.environ.get("RAGBED_HARNESSES") or "/nowhere")
NAMES = ("langchain", "openai", "pydantic")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    not all((FOLDER / name).is_dir() for name in NAMES), reason="no harnesses: RAGBED_HARNESSES names a folder with "
    "the environments langchain, openai and pydantic of docs/harnesses.md")]


def reply(body):
    """A model that greps for the town of the question, then cites the line with its people."""
    results = [one for one in body["messages"] if one["role"] == "tool"]
    question = next(one for one in body["messages"] if "many people" in str(one["content"]))
    town = re.search(r"town \d+", str(question["content"]))[0]
    if not results and body.get("tools"):
        call = {"name": "grep", "arguments": json.dumps({"pattern": town})}
        return {"message": {"role": "assistant", "content": None, "tool_calls": [
            {"id": f"call_{town[-1]}", "type": "function", "function": call}]}, "finish_reason": "tool_calls"}
    text = str(results[-1]["content"]).replace("\\n", "\n")
    number, people = re.search(r"\[(\d+)\]\n?[^\[]*?(\d+ people)", text).groups()
    return f"{people} [{number}]"


@pytest.fixture
def matrix(town, serve, monkeypatch):
    """Writes settings of a run of ragbed's agent and the three harnesses."""
    monkeypatch.chdir(town.folder)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        (town.folder / name).write_text(code)
    server = serve(reply)

    def write(file="town", **settings):
        benchmark = {"kind": "crest", "path": str(town.crest), "limit": 3}
        agent = {"kind": "agent", "tools": ["grep", "open"]}
        return town.config(server.url, file, benchmark=benchmark, reasoning=agent, pipelines=[
            {"kind": "command", "name": name, "tools": ["grep", "open"],
             "argv": [str(FOLDER / name / "bin" / "python"), "-E", f"{name}_agent.py", server.url, "m"],
             "request": {"question": "{question}", "tools": "{tools}"}} for name in NAMES], **settings)

    write.requests = server.requests
    return write


def test_three_harnesses_and_ragbed_s_agent_are_compared_over_the_same_tools(matrix, town, ragbed):
    path = matrix()
    assert ragbed("run", path)[0] == 0
    cells = json.loads((town.run / "summary.json").read_text())["cells"]
    assert [cell["model"] for cell in cells if cell["model"].startswith("pipeline:")] == [
        f"pipeline:{name}" for name in NAMES]
    results = [one["result"] for one in town.records() if one["result"]["question"] == "non_refusal-2"]
    assert [(one["text"], one["cited"], one["scores"]["gold_cited"]) for one in results] == [
        ("222 people [1]", (1,), 1)] * 4
    calls = [[(step["purpose"], step["arguments"]) for step in one["trace"] if step["kind"] == "tool"]
             for one in results]
    assert calls == [[("grep", {"pattern": "town 2"})]] * 4
    summary = (town.run / "summary.json").read_bytes()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert (town.run / "summary.json").read_bytes() == summary


def test_a_matrix_of_harnesses_that_is_killed_continues_to_the_same_bytes(matrix, town, ragbed):
    path = matrix(concurrency=1)
    child = subprocess.Popen([sys.executable, "-m", "ragbed", "run", str(path)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    while len(matrix.requests) < 10 and child.poll() is None:
        time.sleep(0.05)
    child.kill()
    child.wait()
    assert ragbed("run", path)[0] == 0
    summary, hashes = (town.run / "summary.json").read_bytes(), town.hashes()
    town.run = town.folder / "runs" / "undisturbed"
    assert ragbed("run", matrix("undisturbed"))[0] == 0
    assert (town.hashes(), (town.run / "summary.json").read_bytes()) == (
        hashes, summary.replace(b'"town"', b'"undisturbed"'))
