"""A question that is stopped after any step goes on in another process as if it had never been stopped."""
import asyncio
import hashlib
import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from agents import Answer, Assistant, AssistantSettings, GenerateStep
from agents.checkpoint import write_state
from agents.scripted import instance
from retrieval import build_index
from strategies import ANSWERING, RETRIEVAL

QUESTION = "Which country is Oslo the capital of?"
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
from agents.assistant import Assistant, AssistantSettings
from agents.checkpoint import read_state

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
