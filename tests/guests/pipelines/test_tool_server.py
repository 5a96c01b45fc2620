"""Pipelines that call ragbed's tools: each question has an MCP server, whose calls are the trajectory."""
import json
import subprocess
import sys

import pytest
import yaml
from patience import until

PROGRAM = '''
"""A harness: it greps for the town with the MCP client, opens its document, and cites the passage that it read."""
import asyncio, json, pathlib, re, sys
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def answer(question, tools):
    folder = pathlib.Path(__file__).parent
    town = re.search(r"town \\\\d+", question)[0]
    async with Client(streamable_http_client(tools), cache=None) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("grep", {"pattern": town})
        bad = await client.call_tool("grep", {"patern": town})
        with (folder / "asked").open("a") as file:
            file.write(json.dumps([question, names, bad.is_error, tools]) + "\\n")
        if (folder / "hold").exists() and "town 3" in question:
            (folder / "held").touch()
            await asyncio.sleep(60)
    text = found.content[0].text
    people = re.search(r"(\\\\d+) people", text)
    number = re.search(r"\\\\[(\\\\d+)\\\\]", text)
    return f"{people[0]} [{number[1]}]" if people else "I do not know."

if __name__ == "__main__":
    print(json.dumps({"answer": asyncio.run(answer(**json.loads(sys.stdin.readline())))}))
'''.replace("\\\\", "\\")
COMMAND = {"kind": "command", "name": "harness", "tools": ["grep", "open"], "refusals": ["I do not know"],
           "argv": [sys.executable, "harness.py"], "request": {"question": "{question}", "tools": "{tools}"}}

PYTHON = {"kind": "python", "name": "mine", "factory": "harness.py:answer", "tools": "mcp",
          "refusals": ["I do not know"]}


@pytest.fixture
def harness(town, monkeypatch):
    """Writes settings of a run of this pipeline alone."""
    monkeypatch.chdir(town.folder)
    (town.folder / "harness.py").write_text(PROGRAM)

    def write(pipeline, file="town", **settings):
        path = town.config("http://127.0.0.1:9", file, pipelines=[pipeline], **settings)
        content = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({key: content[key] for key in content if key not in ("models", "reasoning")}))
        return path

    return write


def asked(town):
    return [json.loads(line) for line in (town.folder / "asked").read_text().splitlines()]


@pytest.mark.slow
def test_a_program_calls_the_tools_of_its_question_and_its_calls_are_the_trajectory(harness, town, ragbed):
    path = harness(COMMAND)
    code, _, err = ragbed("run", path)
    results = {one["result"]["question"]: one["result"] for one in town.records()}
    assert code == 0, (err, [one["failure"] for one in results.values()])
    assert len(results) == 6
    two = results["non_refusal-2"]
    assert (two["outcome"], two["text"], two["cited"]) == ("answered", "222 people [1]", (1,))
    assert two["scores"]["citation_precision"] == two["scores"]["citation_recall"] == 1
    steps = [(step["kind"], step["purpose"], step["arguments"], step["found"], step["failure"] is None)
             for step in two["trace"][:-1]]
    assert steps == [("tool", "grep", {"pattern": "town 2"}, (1,), True),
                     ("tool", "grep", {"patern": "town 2"}, (), False)]
    assert two["trace"][-1]["kind"] == "generate"  # the calls come before the answer, as they were made
    assert two["scores"]["gold_seen"] == 1
    assert {(tuple(names), failed) for _, names, failed, _ in asked(town)} == {(("grep", "open"), True)}
    assert len({url for *_, url in asked(town)}) == 6
    for file in town.run.rglob("*"):  # a question's address is not stored
        if file.is_file():
            content = file.read_bytes()
            assert not any(url.rsplit("/", 2)[1].encode() in content for *_, url in asked(town))


def test_a_run_with_tools_replays_without_the_pipeline(harness, town, ragbed):
    path = harness(PYTHON)
    assert ragbed("run", path)[0] == 0
    summary, hashes = (town.run / "summary.json").read_bytes(), town.hashes()
    (town.folder / "asked").unlink()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert ((town.run / "summary.json").read_bytes(), town.hashes()) == (summary, hashes)
    assert not (town.folder / "asked").exists()


def test_a_python_function_gets_the_address_by_its_parameter(harness, town, ragbed):
    path = harness(PYTHON)
    assert ragbed("run", path)[0] == 0
    assert {tuple(names) for _, names, _, _ in asked(town)} == {("search", "list", "grep", "open")}
    assert {one["result"]["question"]: one["result"]["text"] for one in town.records()}["non_refusal-4"] == (
        "444 people [1]")


@pytest.mark.slow
def test_a_killed_run_continues_to_the_same_bytes(harness, town, ragbed):
    path = harness(COMMAND, concurrency=1)
    (town.folder / "hold").touch()
    child = subprocess.Popen([sys.executable, "-m", "ragbed", "run", str(path)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    until((town.folder / "held").exists)
    child.kill()
    child.wait()
    (town.folder / "hold").unlink()
    before = len(asked(town))
    assert ragbed("run", path)[0] == 0
    assert len(asked(town)) == 7  # the question that was under way is asked again
    assert 1 <= before <= 6
    summary, hashes = (town.run / "summary.json").read_bytes(), town.hashes()
    town.run = town.folder / "runs" / "undisturbed"
    assert ragbed("run", harness(COMMAND, "undisturbed"))[0] == 0
    assert (town.hashes(), (town.run / "summary.json").read_bytes()) == (
        hashes, summary.replace(b'"town"', b'"undisturbed"'))


FAILING = """
import asyncio, sys
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def call(tools):
    async with Client(streamable_http_client(tools), cache=None) as client:
        await client.call_tool("grep", {"pattern": "town 2"})

async def raises(question, tools):
    await call(tools)
    raise KeyError(f"no such town at {tools}")

async def hangs(question, tools):
    await call(tools)
    await asyncio.sleep(60)

if __name__ == "__main__":
    import json
    asyncio.run(call(json.loads(sys.stdin.readline())["tools"]))
    sys.exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("pipeline", "limits", "outcome", "says"), [
    ({**COMMAND, "argv": [sys.executable, "failing.py"]}, {}, "error", "harness: exit status 3"),
    ({**PYTHON, "factory": "failing.py:raises"}, {}, "error", "/[key]/mcp"),
    ({**PYTHON, "factory": "failing.py:hangs"}, {"calls": {"calls": {"seconds": 5, "attempts": 1}}}, "timeout", "5 s"),
    ({**PYTHON, "factory": "failing.py:hangs"}, {"limits": {"seconds": 6}}, "timeout", "deadline passed")])
def test_the_calls_of_a_pipeline_that_fails_are_in_its_record(harness, town, ragbed, pipeline, limits, outcome, says):
    (town.folder / "failing.py").write_text(FAILING)
    path = harness(pipeline, benchmark={"kind": "crest", "path": str(town.crest), "limit": 3}, **limits)
    ragbed("run", path)
    two = next(one["result"] for one in town.records() if one["result"]["question"] == "non_refusal-2")
    assert (two["outcome"], says in two["failure"]["message"], {*two["failure"]}) == (
        outcome, True, {"kind", "message"}), two["failure"]
    assert [(step["kind"], step["found"]) for step in two["trace"]] == [("tool", (1,)), ("generate", ())]
    assert (two["scores"]["tool_calls"], two["scores"]["gold_seen"]) == (1, 1)
    code, said, _ = ragbed("show", town.run, "non_refusal-2")
    assert (code, said.index("step 1: calls grep") < said.index("step 2: answer")) == (0, True)
    summary = (town.run / "summary.json").read_bytes()
    ragbed("run", path, "--journal", "replay")
    assert (town.run / "summary.json").read_bytes() == summary


HOSTILE = '''
import asyncio, httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

before = []

async def answer(question, tools):
    token = tools.rsplit("/", 2)[1]
    said = []
    async with httpx2.AsyncClient() as client:
        for url in (tools.replace(token, "x" * len(token)), tools.replace("/mcp", ""), tools + "/more", *before):
            said.append((await client.post(url, json={})).status_code)
        said.append((await client.post(tools, content=b"x" * 3_000_000)).status_code)
        said.append((await client.post(tools, content=b"{")).status_code)
    async with Client(streamable_http_client(tools), cache=None) as client:
        flood = await asyncio.gather(*[client.call_tool("grep", {"pattern": f"town {n}"}) for n in range(8)])
        said += [sum(one.is_error for one in flood), [one.content[0].text for one in flood if one.is_error][:1]]
    before.append(tools)
    return {"answer": str(said)}
'''


def test_a_question_s_address_serves_it_alone_and_not_after_its_end(harness, town, ragbed):
    (town.folder / "hostile.py").write_text(HOSTILE)
    path = harness({"kind": "python", "name": "mine", "factory": "hostile.py:answer", "tools": ["grep"]},
                   concurrency=1, limits={"tools": 5}, benchmark={
                       "kind": "crest", "path": str(town.crest), "limit": 2})
    assert ragbed("run", path)[0] == 0
    first, second = sorted((one["result"]["text"] for one in town.records()), key=len)
    limit = "['limit of 5 tool calls per question reached; answer with what was found']"
    assert first == f"[404, 404, 404, 413, 400, 3, {limit}]"
    assert second == f"[404, 404, 404, 404, 413, 400, 3, {limit}]"  # the address of the first question is gone
    tools = [step for step in town.records()[0]["result"]["trace"] if step["kind"] == "tool"]
    assert len(tools) == 5


@pytest.mark.parametrize(("changes", "says"), [
    ({"request": {"question": "{question}"}}, "write {tools} in its `request`"),
    ({"tools": []}, "there are none; add tools: mcp"),
    ({"tools": ["grpe"]}, "did you mean 'grep'?"),
    ({"request": {"q": "{question}", "d": "{documents}", "t": "{tools}"}}, "cannot be combined"),
])
def test_tools_that_cannot_be_called_are_refused(harness, ragbed, changes, says):
    ragbed.refuses("run", harness({**COMMAND, **changes}), says=[says])
