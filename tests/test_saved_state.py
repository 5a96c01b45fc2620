"""A saved question goes on elsewhere as if never stopped, and a stranger's names no code and no server."""
import asyncio
import hashlib
import json
import subprocess
import sys
from dataclasses import asdict, replace
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
from test_resuming import QUESTION, options

from ragbed.agents import Answer, Assistant, AssistantSettings, GenerateStep
from ragbed.agents.checkpoint import read_state, write_state
from ragbed.agents.scripted import instance
from ragbed.documents import SettingsError
from ragbed.retrieval import build_index
from ragbed.strategies import ANSWERING, RETRIEVAL

SAYS = (
    "1. Which country is Oslo in?\n2. Which continent is Norway on?", "Search: capital of Italy",
    "Follow-up: Where is Rome?",
    "Thought: Rome comes next.\nAction: search[capital of Italy]", "Missing: Italy\nSufficiency: 3",
    "Fault: it cites nothing.",
    "Question: Where is Rome?\nGrade: 1", "| city | country |\n| Oslo | Norway |",
    "[1] \"Oslo is the capital of Norway.\"",
    "first = 1900 + 26\nlast = first + 10", "<Answer>Norway [1]</Answer>", "1: no\n2: yes\nBest: 2",
    "<Answer>Rome is the capital of Italy [2], and Oslo has 700,000 people [1].</Answer>")


def reply(body):
    """A line for the scripted server that gives every strategy something to go on with."""
    place = int(hashlib.sha256(json.dumps([body["messages"], body.get("seed")]).encode()).hexdigest(), 16)
    asked = sum(message["role"] == "tool" for message in body["messages"])
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]
        return json.dumps(instance(schema, SAYS[place % len(SAYS)], place % 3 == 0, 2))
    if body.get("tools") and asked < 2:
        name = body["tools"][0]["function"]["name"]
        said = {"name": name, "arguments": json.dumps({"query": f"capital of Italy {asked}"})}
        call = {"id": f"c{asked}", "type": "function", "function": said}
        return {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
    return SAYS[place % len(SAYS)]


# Each line of input is settings and saved questions, which a process of its own goes on with; each line of output is
# their ends.
RESUMING = """
import asyncio, json, os, sys
from dataclasses import asdict
from pathlib import Path
from ragbed.agents.assistant import Assistant, AssistantSettings
from ragbed.agents.checkpoint import read_state

async def all_ended(settings, paths):
    async with Assistant.open(AssistantSettings(**settings)) as assistant:
        return [asdict(await assistant.resume(read_state(Path(path)))) for path in paths]

async def load():  # once, what each process needs
    settings = AssistantSettings(index=Path(sys.argv[1]), retriever="bm25", model="http://127.0.0.1:9/v1#m",
                                 calls={"calls": {"attempts": 1}})
    async with Assistant.open(settings) as assistant:
        assert (await assistant.ask("Where?")).outcome == "error"
        assert not assistant.model.client.priced

asyncio.run(load())
for line in sys.stdin:
    if not os.fork():
        print(json.dumps(asyncio.run(all_ended(*json.loads(line)))), flush=True)
        os._exit(0)
    if os.wait()[1]:
        print("null", flush=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "oslo.txt").write_text("Oslo is the capital of Norway. It has 700,000 people.")
    (folder / "rome.txt").write_text("Rome is the capital of Italy, a country in Europe.")
    (folder / "example.jsonl").write_text(json.dumps({"question": "Where is Bonn?", "answer": "Germany [1]",
                                                      "documents": ["Bonn is in Germany."]}) + "\n")
    build_index([folder / "oslo.txt", folder / "rome.txt"], folder / "index")
    return folder


@pytest.fixture(scope="module")
def other_process(folder):
    """Goes on with questions in a process of its own; their ends as plain JSON."""
    child = subprocess.Popen([sys.executable, "-c", RESUMING, folder / "index"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)

    def resumed(settings, paths):
        child.stdin.write(f"{json.dumps([settings.model_dump(mode='json'), [str(path) for path in paths]])}\n")
        child.stdin.flush()
        return json.loads(child.stdout.readline())

    yield resumed
    child.stdin.close()
    child.stdout.close()
    assert child.wait(20) == 0


def plain(answer: Answer):
    """What has to be equal: all but the seconds."""
    return json.loads(json.dumps(asdict(replace(answer, cost=replace(answer.cost, seconds=0.0)))))


@pytest.mark.slow
@pytest.mark.parametrize(("reasoning", "retrieval"), [*((name, "once") for name in ANSWERING),
                                                      *(("direct", name) for name in RETRIEVAL)])
async def test_a_question_stopped_after_any_step_ends_in_a_new_process_as_one_never_stopped(
        serve, folder, tmp_path, other_process, reasoning, retrieval):
    server, kept = serve(reply), []
    said = {"kind": "few_shot", "exemplars": str(folder / "example.jsonl")} if reasoning == "few_shot" else reasoning
    rules = "open" if retrieval == "none" else "grounded"
    settings = AssistantSettings(index=folder / "index", model=f"{server.url}#m", retriever="bm25", k=2, rules=rules,
                                 reasoning=said, retrieval=retrieval)
    async with Assistant.open(settings) as assistant:
        keep = lambda state: kept.append(json.loads(json.dumps(state)))  # noqa: E731
        *_, whole = [event async for event in assistant.play(assistant.begin(QUESTION), keep=keep)]
    asked = len(server.requests)
    assert asked == sum(isinstance(step, GenerateStep) for step in whole.trace) > 0
    states = {len(state["results"]): state for state in reversed(kept)}
    for steps, state in states.items():
        write_state(tmp_path / f"{steps}.json", state)
    ends = await asyncio.to_thread(other_process, settings, [tmp_path / f"{steps}.json" for steps in states])
    for ended in ends:
        ended["cost"]["seconds"] = 0.0
    assert ends == [plain(whole)] * len(states)
    left = sum(asked - sum(len(one.get("asked", ())) for one in state["results"]) for state in states.values())
    assert len(server.requests) == asked + left


ANSWER = "<Answer>Norway [1]</Answer>"
MISSING = object()


@pytest.fixture
def index(folder) -> Path:
    return folder / "index"


@pytest.fixture
def saved(index, serve, ragbed, tmp_path):
    """A question that was saved after its search and its first call, the command that goes on, and the server."""
    server, file = serve(["1. Which country?", "Norway [1].", ANSWER]), tmp_path / "q.json"
    assert ragbed("ask", QUESTION, *options(index, server), "--save", file, "--stop-after", 2)[0] == 0
    return read_state(file), ("resume", file, *options(index, server)), server


@pytest.mark.parametrize("name", ["reasoning", "retrieval", "retriever"])
def test_code_that_a_file_names_is_not_executed(ragbed, saved, tmp_path, name):
    state, resume, server = saved
    (tmp_path / "evil.py").write_text("open('ran', 'w')\ndef make(): ...\n")
    code = f"{tmp_path / 'evil.py'}:make"
    state["made"][name] = {"kind": "external", "factory": code} if name == "retriever" else code
    write_state(resume[1], state)
    ragbed.refuses(*resume, says=[f"{name} was "])
    assert not Path("ran").exists()
    assert len(server.requests) == 1


def test_a_server_that_a_file_names_gets_nothing(ragbed, saved, serve, index, monkeypatch):
    monkeypatch.setenv("RAGBED_API_KEY", "canary-7f3e9d21c0ffee")
    state, resume, server = saved
    theirs = serve([ANSWER])
    state["made"] |= {"model": f"{theirs.url}#m", "url": theirs.url, "index": theirs.url}
    write_state(resume[1], state)
    ragbed.refuses(*resume, says=["model was", 'and is "m"'])
    ragbed.refuses("resume", resume[1], says=["--index"])
    assert (len(server.requests), theirs.requests) == (1, [])


@pytest.mark.parametrize(("path", "value"), [
    (("question",), 5), (("question",), "\ud800"), (("results",), "xx"), (("results",), [{"a": 1}]),
    (("results", 0, "found"), [["no chunk"]]), (("results", 0, "found"), []), (("results", 0, "found"), None),
    (("results", 1, "asked", 0, "reply"), None), (("results", 1, "asked", 0, "reply", "text"), 5),
    (("results", 1, "asked", 0, "reply", "usage"), {}), (("results", 1, "asked", 0, "reply", "parsed"), {"a": [1]}),
    (("results", 1, "seconds"), -1.0), (("options",), [["a"]]), (("made",), None), (("made",), {}),
    (("id",), MISSING), (("made", "model"), MISSING), (("results", 1, "actions"), MISSING),
    (("results", 1, "seconds"), MISSING)])
def test_a_changed_file_whose_hash_fits_is_one_line(ragbed, saved, path, value):
    state, resume, server = saved
    *before, last = path
    place = reduce(getitem, before, state)
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    write_state(resume[1], state)
    if path[-1] in ("usage", "parsed"):  # of no use to anybody, and no harm
        assert ragbed(*resume)[0] == 0
    else:
        ragbed.refuses(*resume, says=[])
        assert len(server.requests) == 1


def test_a_step_too_many_and_an_unknown_passage_are_named(ragbed, saved):
    state, resume, _ = saved
    state["results"].append(state["results"][0])
    write_state(resume[1], state)
    ragbed.refuses(*resume, says=["step 3 of the strategy differs"])
    state["results"] = [{**state["results"][0], "found": [["no chunk"]]}]
    write_state(resume[1], state)
    ragbed.refuses(*resume, says=["names a passage that the index does not have: 'no chunk'"])


@pytest.mark.parametrize("line", [{"status": 418}, {"status": 200, "body": b"{}"}])
def test_a_question_that_a_failed_call_ended_is_tried_again(ragbed, serve, index, tmp_path, line):
    server, file = serve(["1. Which country?", line, line, "Norway [1].", ANSWER]), tmp_path / "q.json"
    asked = options(index, server)
    assert ragbed("ask", QUESTION, *asked, "--save", file)[0] == 1
    assert ragbed("resume", file, *asked)[0] == 1
    status, out, _ = ragbed("resume", file, *asked, "--json")
    answer = json.loads(out)
    assert (status, answer["answer"], answer["usage"]["calls"], len(server.requests)) == (0, "Norway [1]", 3, 5)
    assert ragbed("resume", file, *asked)[0] == 0
    assert len(server.requests) == 5


def test_a_place_for_the_question_that_is_none_is_one_line(ragbed, index, tmp_path):
    (tmp_path / "a.txt").write_text("my notes")
    asked = ("ask", QUESTION, "--index", index, "--save")
    ragbed.refuses(*asked, "x" * 300, says=["File name too long"])
    ragbed.refuses(*asked, tmp_path / "a.txt", says=["a.txt is there already, and keeps no question"])
    ragbed.refuses("resume", tmp_path, "--index", index, says=["is no file"])
    assert (tmp_path / "a.txt").read_text() == "my notes"


def test_after_a_full_disk_what_is_kept_goes_on(saved, tmp_path, monkeypatch):
    state, (_, file, *_), _ = saved

    def full(path, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ragbed.agents.checkpoint.write_atomically", full)
    with pytest.raises(SettingsError, match=f"free space, and `ragbed resume {file}` goes on"):
        write_state(file, state)
    with pytest.raises(SettingsError, match="free space, and the same command begins again"):
        write_state(tmp_path / "new.json", state)
