"""Saving a question and going on with it: what is kept, what counts, what is refused, and who may stop it."""
import contextlib
import json
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from ragbed.agents import Assistant, AssistantSettings, Limits
from ragbed.agents.checkpoint import read_state, write_state
from ragbed.documents import RecipeMismatch, SettingsError
from ragbed.retrieval import build_index

QUESTION = "Which country is Oslo the capital of?"
PLAN = ["1. Which country?\n2. Which continent?", "Norway [1].", "Europe [2].", "<Answer>Norway [1] [8]</Answer>"]
RAGBED = [sys.executable, "-m", "ragbed"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "oslo.txt").write_text("Oslo is the capital of Norway. It has 700,000 people.")
    (folder / "rome.txt").write_text("Rome is the capital of Italy, a country in Europe.")
    build_index([folder / "oslo.txt", folder / "rome.txt"], folder / "index")
    build_index([folder / "oslo.txt"], folder / "other")
    return folder / "index"


def settings(index: Path, server, **changes) -> AssistantSettings:
    return AssistantSettings(**{"index": index, "model": f"{server.url}#m", "retriever": "bm25", "k": 2,
                                "reasoning": "least_to_most", **changes})


def options(index: Path, server, *more: object) -> list[str]:
    """Of `ask`, and again of `resume`."""
    return [*map(str, ("--index", index, "--model", f"{server.url}#m", "--retriever", "bm25", "--reasoning",
                       "least_to_most", *more))]


async def stopped(assistant: Assistant, steps: int, path: Path):
    """The state of a question that was stopped after so many steps."""
    played = assistant.play(assistant.begin(QUESTION), keep=partial(write_state, path))
    async with contextlib.aclosing(played) as events:
        async for event in events:
            if event["steps"] == steps:
                break
    return read_state(path)


async def stopped_at(index: Path, serve, tmp_path: Path, steps: int = 2, **changes):
    async with Assistant.open(settings(index, serve(PLAN), **changes)) as assistant:
        return await stopped(assistant, steps, tmp_path / "q.json")


@pytest.mark.parametrize("how", [
    signal.SIGKILL, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGINT, signal.SIGTERM))])
def test_what_ends_the_process_in_the_middle_of_a_call_leaves_a_question_that_goes_on(
        ragbed, serve, index, tmp_path, how):
    hold, file = threading.Event(), tmp_path / "q.json"
    server = serve([*PLAN[:2], {"text": PLAN[2], "hold": hold}, *PLAN[2:]])
    asked = [*RAGBED, "ask", QUESTION, *options(index, server, "--save", file)]
    child = subprocess.Popen(asked, stderr=subprocess.PIPE, text=True)
    while len(server.requests) < 3 and child.poll() is None:
        threading.Event().wait(0.01)
    child.send_signal(how)
    _, said = child.communicate(timeout=20)
    hold.set()
    assert "Traceback" not in said
    assert (f"go on with `ragbed resume {file}`" in said) == (how != signal.SIGKILL)
    assert child.returncode == {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}[how]
    assert len(read_state(file)["results"]) == 3  # a search and two calls
    status, out, _ = ragbed("resume", file, *options(index, server, "--json"))
    answer = json.loads(out)
    assert (status, answer["answer"], answer["usage"]["calls"]) == (0, "Norway [1] [8]", 4)
    assert len(server.requests) == 5  # the call that was under way is made again, and no other
    again = json.loads(ragbed("resume", file, *options(index, server, "--json"))[1])
    assert again == {**answer, "seconds": again["seconds"]}
    assert len(server.requests) == 5


def test_scripts_stop_after_some_steps_and_go_on(ragbed, serve, index, tmp_path):
    server, file = serve(PLAN), tmp_path / "q.json"
    asked = ["ask", QUESTION, *options(index, server, "--save", file, "--stop-after", 2)]
    status, out, err = ragbed(*asked)
    assert (status, out) == (0, "")
    assert err.startswith("stopped after 2 steps; what was found and said so far is in")
    ragbed.refuses(*asked, says=["is there already", f"ragbed resume {file}"])
    ragbed.refuses("ask", "x", "--index", index, "--stop-after", 1, says=["--stop-after needs --save FILE"])
    ragbed.refuses("ask", "x", "--index", index, "--retriever", "bm25", "--model", f"{server.url}#m", "--save",
                   tmp_path / "no" / "q.json", says=["q.json", "make the folder first"])
    status, out, _ = ragbed("resume", file, *options(index, server, "--stop-after", 1, "--json"))
    assert (status, json.loads(out)) == (0, {"event": "stopped", "steps": 3, "saved": str(file)})
    status, out, _ = ragbed("resume", file, *options(index, server, "--trace"))
    assert status == 0
    assert [line for line in out.splitlines() if line.startswith("== ")][1:] == [
        "== step 2: decompose, 2 messages, documents shown [1, 2]",
        "== step 3: solve, 2 messages, documents shown [1, 2]", "== step 4: solve, 4 messages, documents shown [1, 2]",
        "== step 5: answer, 6 messages, documents shown [1, 2]", "== answer"]
    assert len(server.requests) == 4


def test_what_differs_is_one_line_and_where_things_are_makes_no_difference(ragbed, serve, index, tmp_path):
    server, file = serve(PLAN[:2]), tmp_path / "q.json"
    ragbed("ask", QUESTION, *options(index, server, "--save", file, "--stop-after", 2))
    elsewhere = serve(PLAN[1:])
    resume = ("resume", file, *options(index, elsewhere))
    ragbed.refuses(*resume, "--model", f"{elsewhere.url}#n", says=['model was "m" and is "n"', "begun otherwise"])
    ragbed.refuses(*resume, "--index", index.parent / "other", says=["the index holds something else"])
    ragbed.refuses(*resume, "--retriever", "dense", "-k", 9, says=["retriever was", "k was 5 and is 9"])
    ragbed.refuses("resume", tmp_path / "none.json", *resume[2:], says=["none.json", "cannot be read"])
    moved = index.rename(index.parent / "moved")
    try:
        ragbed.refuses(*resume, says=["index", "does not exist"])
        status, out, _ = ragbed("resume", file, *options(moved, elsewhere, "--json"))
        assert (status, json.loads(out)["answer"]) == (0, "Norway [1] [8]")
    finally:
        moved.rename(index)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"format": "ragbed question 1"}', "{" * 9999, "\x00\xff",
                                     '{"format": "ragbed question 1", "state": {}}', None, [1, 2], {}])
def test_a_file_that_is_no_saved_question_or_was_changed_is_refused(ragbed, tmp_path, content):
    if isinstance(content, str):
        (tmp_path / "q.json").write_text(content)
    else:
        write_state(tmp_path / "q.json", content)  # its hash fits, and it is no state
    ragbed.refuses("resume", tmp_path / "q.json", "--index", tmp_path, says=["q.json: "])


async def test_a_file_that_was_changed_or_is_of_another_version_is_refused(serve, index, tmp_path):
    state = await stopped_at(index, serve, tmp_path)
    file = tmp_path / "q.json"
    file.write_text(file.read_text().replace("Which continent?", "Which planet?"))
    with pytest.raises(SettingsError, match="was changed since it was written"):
        read_state(file)
    write_state(file, state)
    file.write_text(file.read_text().replace("ragbed question 3", "ragbed question 1"))
    with pytest.raises(SettingsError, match="made by another version of ragbed; ask the question again"):
        read_state(file)


@pytest.mark.parametrize(("changes", "says"), [
    ({"reasoning": "direct"}, 'reasoning was "least_to_most" and is "direct"'), ({"k": 1}, "k was 2 and is 1"),
    ({"limits": Limits(calls=3)}, 'limits was {"calls": 40'), ({"framing": "none"}, 'framing was "marked"')])
async def test_a_question_does_not_go_on_with_other_settings(serve, index, tmp_path, changes, says):
    state = await stopped_at(index, serve, tmp_path)
    server = serve([])
    async with Assistant.open(settings(index, server, **changes)) as assistant:
        with pytest.raises(RecipeMismatch) as caught:
            await assistant.resume(state)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert server.requests == []


async def test_a_question_does_not_go_on_where_its_strategy_would_have_asked_for_something_else(
        serve, index, tmp_path):
    examples = tmp_path / "examples.jsonl"
    examples.write_text('{"question": "Where is Bonn?", "answer": "Germany"}')
    changes = {"reasoning": {"kind": "few_shot", "exemplars": str(examples)}}
    state = await stopped_at(index, serve, tmp_path, **changes)
    examples.write_text('{"question": "Where is Rome?", "answer": "Italy"}')
    server = serve([])
    async with Assistant.open(settings(index, server, **changes)) as assistant:
        with pytest.raises(RecipeMismatch, match="step 2 of the strategy differs from what was recorded"):
            await assistant.resume(state)
    assert server.requests == []


@pytest.mark.parametrize(("limits", "outcome", "requests"), [
    ({"calls": 3}, "budget", 2), ({"tokens": 1400}, "budget", 1), ({"seconds": 5}, "timeout", 0)])
async def test_what_was_used_before_counts_after(serve, index, tmp_path, limits, outcome, requests):
    changes = {"limits": Limits(**limits)}
    state = await stopped_at(index, serve, tmp_path, **changes)
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
        with pytest.raises(SettingsError, match="a question of the thread 'mine' has not ended"):
            await assistant.ask("Where is Rome?", thread="mine")
        with pytest.raises(SettingsError, match="no question is kept under the thread 'yours'"):
            await assistant.resume("yours")
        answer = await assistant.resume("mine")
        assert (answer.text, len(answer.trace), answer.usage.calls) == ("Norway [1] [8]", 5, 4)
        again = await assistant.resume("mine")
        assert (again.text, again.trace) == (answer.text, answer.trace)
    assert len(server.requests) == 5
    async with Assistant.open(settings(index, server, k=1), saver) as other:
        with pytest.raises(RecipeMismatch, match="k was 2 and is 1"):
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
