"""Resuming a question from the state after any step: what is asked again, what counts, and what is refused."""
import hashlib
import json
from copy import deepcopy
from dataclasses import asdict, replace
from functools import reduce
from operator import getitem
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from ragbed.agents import Answer, Assistant, AssistantSettings, GenerateStep, Limits
from ragbed.agents.checkpoint import check_state
from ragbed.agents.scripted import example_value
from ragbed.documents import RecipeMismatch, SettingsError
from ragbed.documents.errors import UserError
from ragbed.retrieval import build_index
from ragbed.strategies import ANSWERING, RETRIEVAL

QUESTION = "Which country is Oslo the capital of?"
PLAN = ["1. Which country?\n2. Which continent?", "Norway [1].", "Europe [2].", "<Answer>Norway [1] [8]</Answer>"]
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
        return json.dumps(example_value(schema, SAYS[place % len(SAYS)], place % 3 == 0, 2))
    if body.get("tools") and asked < 2:
        name = body["tools"][0]["function"]["name"]
        said = {"name": name, "arguments": json.dumps({"query": f"capital of Italy {asked}"})}
        call = {"id": f"c{asked}", "type": "function", "function": said}
        return {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
    return SAYS[place % len(SAYS)]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "oslo.txt").write_text("Oslo is the capital of Norway. It has 700,000 people.")
    (folder / "rome.txt").write_text("Rome is the capital of Italy, a country in Europe.")
    (folder / "example.jsonl").write_text(json.dumps({"question": "Where is Bonn?", "answer": "Germany [1]",
                                                      "documents": ["Bonn is in Germany."]}) + "\n")
    build_index([folder / "oslo.txt", folder / "rome.txt"], folder / "index")
    build_index([folder / "oslo.txt"], folder / "other")
    return folder / "index"


def settings(place: Path, server, **changes) -> AssistantSettings:
    return AssistantSettings(**{"index": place, "model": f"{server.url}#m", "retriever": "bm25", "k": 2,
                                "reasoning": "least_to_most", **changes})


async def states_of(assistant: Assistant, steps: int = 100):
    """Play a question, stopped after each step, and return its state before the first step and after each."""
    config = {"configurable": {"thread_id": "q"}, "recursion_limit": 100}
    given, states = assistant.begin(QUESTION, thread="q"), []
    while True:
        states.append(given if not states else await assistant.saved("q"))
        if states[-1].get("answer") or len(states) > steps:
            break
        await assistant.graph.ainvoke(given if len(states) == 1 else None, config,
                                      interrupt_after=["search", "generate"])
    return json.loads(json.dumps(states))


async def stopped_at(index: Path, serve, steps: int = 2, **changes):
    async with Assistant.open(settings(index, serve(PLAN), **changes), InMemorySaver()) as assistant:
        return (await states_of(assistant, steps))[-1]


def plain(answer: Answer):
    """Everything that has to be equal: all but the seconds."""
    return json.loads(json.dumps(asdict(replace(answer, cost=replace(answer.cost, seconds=0.0)))))


@pytest.mark.slow
@pytest.mark.parametrize(("reasoning", "retrieval"), [*((name, "once") for name in ANSWERING),
                                                      *(("direct", name) for name in RETRIEVAL)])
async def test_a_question_resumed_after_any_step_ends_like_one_that_never_stopped(serve, index, reasoning, retrieval):
    server = serve(reply)
    named = {"kind": "few_shot", "exemplars": str(index.parent / "example.jsonl")} if reasoning == "few_shot" else \
        reasoning
    given = settings(index, server, rules="open" if retrieval == "none" else "grounded", reasoning=named,
                     retrieval=retrieval)
    async with Assistant.open(given, InMemorySaver()) as assistant:
        states = await states_of(assistant)
        whole = await assistant.resume("q")
    asked = len(server.requests)
    assert asked == sum(isinstance(step, GenerateStep) for step in whole.trace) > 0
    async with Assistant.open(given) as other:
        ends = [plain(await other.resume(state)) for state in states]
    assert ends == [plain(whole)] * len(states)
    left = sum(asked - sum(len(one.get("asked", ())) for one in state["results"]) for state in states)
    assert len(server.requests) == asked + left


@pytest.fixture
async def saved(index, serve):
    """The state of a question after its search and its first call, and an assistant that can resume it."""
    server = serve(PLAN)
    async with Assistant.open(settings(index, server), InMemorySaver()) as assistant:
        states = await states_of(assistant, 2)
    async with Assistant.open(settings(index, server)) as assistant:
        yield deepcopy(states[-1]), assistant, server


async def refuse(assistant, state, match="[a-z]"):
    with pytest.raises(UserError, match=match) as caught:
        await assistant.resume(check_state(state, "the thread 'q'"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["reasoning", "retrieval", "retriever"])
async def test_code_that_a_state_names_is_not_executed(saved, tmp_path, name):
    state, assistant, server = saved
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef make(): ...\n")
    code = f"{tmp_path / 'evil.py'}:make"
    state["made"][name] = {"kind": "external", "factory": code} if name == "retriever" else code
    await refuse(assistant, state, f"{name} was ")
    assert not (tmp_path / "ran").exists()
    assert len(server.requests) == 1


async def test_a_server_that_a_state_names_gets_nothing(saved, serve, monkeypatch):
    monkeypatch.setenv("RAGBED_API_KEY", "canary-7f3e9d21c0ffee")
    state, assistant, server = saved
    theirs = serve(PLAN)
    state["made"] |= {"model": f"{theirs.url}#m", "url": theirs.url, "index": theirs.url}
    await refuse(assistant, state, 'model was .* and is now "m"')
    assert (len(server.requests), theirs.requests) == (1, [])


MISSING = object()


@pytest.mark.parametrize(("path", "value"), [
    (("question",), 5), (("results",), "xx"), (("results",), [{"a": 1}]),
    (("results", 0, "found"), [["no chunk"]]), (("results", 0, "found"), []), (("results", 0, "found"), None),
    (("results", 1, "asked", 0, "reply"), None), (("results", 1, "asked", 0, "reply", "text"), 5),
    (("results", 1, "asked", 0, "reply", "usage"), {}), (("results", 1, "asked", 0, "reply", "parsed"), {"a": [1]}),
    (("results", 1, "seconds"), -1.0), (("options",), [["a"]]), (("made",), None), (("made",), {}),
    (("id",), MISSING), (("made", "model"), MISSING), (("results", 1, "actions"), MISSING),
    (("results", 1, "seconds"), MISSING)])
async def test_a_changed_state_is_refused_in_one_line(saved, path, value):
    state, assistant, server = saved
    *before, last = path
    place = reduce(getitem, before, state)
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    if path[-1] in ("usage", "parsed"):  # of no use to anybody, and no harm
        assert (await assistant.resume(check_state(state, "q"))).text == "Norway [1] [8]"
    else:
        await refuse(assistant, state)
        assert len(server.requests) == 1


async def test_a_step_too_many_and_an_unknown_passage_are_named(saved):
    state, assistant, _ = saved
    first = state["results"][0]
    await refuse(assistant, {**state, "results": [*state["results"], first]}, "step 3 of the strategy differs")
    await refuse(assistant, {**state, "results": [{**first, "found": [["no chunk"]]}]},
                 "uses a passage that the index does not have: 'no chunk'")


async def test_what_differs_is_one_line_and_where_things_are_makes_no_difference(saved, serve, index):
    state, _, _ = saved
    server = serve(PLAN[1:])
    for changes, says in (
            ({"model": f"{server.url}#n"}, 'model was "m" and is now "n"'), ({"k": 1}, "k was 2 and is now 1"),
            ({"index": index.parent / "other"}, "the index has different content"),
            ({"reasoning": "direct"}, 'reasoning was "least_to_most" and is now "direct"'),
            ({"limits": Limits(calls=3)}, 'limits was {"calls": 40'), ({"framing": "none"}, "framing was ")):
        async with Assistant.open(settings(index, server, **changes)) as assistant:
            await refuse(assistant, state, says)
    assert server.requests == []
    moved = index.rename(index.parent / "moved")
    try:
        async with Assistant.open(settings(moved, server)) as assistant:
            assert (await assistant.resume(state)).text == "Norway [1] [8]"
    finally:
        moved.rename(index)


async def test_a_question_does_not_go_on_where_its_strategy_would_have_asked_for_something_else(
        serve, index, tmp_path):
    examples = tmp_path / "examples.jsonl"
    examples.write_text('{"question": "Where is Bonn?", "answer": "Germany"}')
    changes = {"reasoning": {"kind": "few_shot", "exemplars": str(examples)}}
    state = await stopped_at(index, serve, **changes)
    examples.write_text('{"question": "Where is Rome?", "answer": "Italy"}')
    server = serve([])
    async with Assistant.open(settings(index, server, **changes)) as assistant:
        with pytest.raises(RecipeMismatch, match="step 2 of the strategy differs from what was recorded"):
            await assistant.resume(state)
    assert server.requests == []


@pytest.mark.parametrize(("limits", "outcome", "requests"), [
    ({"calls": 3}, "budget", 2), ({"tokens": 1400}, "budget", 1), ({"seconds": 5}, "timeout", 0)])
async def test_what_was_used_before_counts_after(serve, index, limits, outcome, requests):
    changes = {"limits": Limits(**limits)}
    state = await stopped_at(index, serve, **changes)
    if "seconds" in limits:
        state["results"][1]["seconds"] = 4.999
    server = serve(PLAN[1:])
    async with Assistant.open(settings(index, server, **changes)) as assistant:
        answer = await assistant.resume(state)
    assert (answer.outcome, len(server.requests)) == (outcome, requests)
    assert answer.cost.seconds > (4.999 if "seconds" in limits else 0)
    assert answer.usage.calls == answer.cost.attempts == 1 + requests


async def test_a_question_of_a_thread_that_was_stopped_goes_on(serve, index):
    saver, lines = InMemorySaver(), [*PLAN[:2], {"status": 401}, *PLAN[2:]]
    server = serve(lines)
    async with Assistant.open(settings(index, server), saver) as assistant:
        with pytest.raises(Exception, match="HTTP 401"):
            await assistant.ask(QUESTION, thread="mine")
        assert await assistant.saved("yours") is None
    async with Assistant.open(settings(index, server), saver) as assistant:
        state = await assistant.saved("mine")
        assert [list(entry)[1] for entry in state["results"]] == ["found", "asked", "asked"]
        with pytest.raises(SettingsError, match="the thread 'mine' has an unfinished question"):
            await assistant.ask("Where is Rome?", thread="mine")
        with pytest.raises(SettingsError, match="no thread 'yours'"):
            await assistant.resume("yours")
        answer = await assistant.resume("mine")
        assert (answer.text, len(answer.trace), answer.usage.calls) == ("Norway [1] [8]", 5, 4)
        again = await assistant.resume("mine")
        assert (again.text, again.trace) == (answer.text, answer.trace)
    assert len(server.requests) == 5
    async with Assistant.open(settings(index, server, k=1), saver) as other:
        with pytest.raises(RecipeMismatch, match="k was 2 and is now 1"):
            await other.resume("mine")


async def test_a_person_may_look_at_each_step_before_the_next(serve, index):
    server, config = serve(PLAN), {"configurable": {"thread_id": "t"}, "recursion_limit": 100}
    async with Assistant.open(settings(index, server), InMemorySaver()) as assistant:
        seen, given = [], {"question": QUESTION}
        for _ in range(9):
            await assistant.graph.ainvoke(given, config, interrupt_after=["search", "generate"])
            snapshot, given = await assistant.graph.aget_state(config), None
            seen.append((snapshot.next, len(snapshot.values["results"]), len(server.requests)))
            if not snapshot.next:
                break
        assert seen == [(("generate",), 1, 0), (("generate",), 2, 1), (("generate",), 3, 2), (("generate",), 4, 3),
                        (("finish",), 5, 4), ((), 5, 4)]
        assert snapshot.values["answer"]["text"] == "Norway [1] [8]"
        assert snapshot.values["made"] == assistant.made
