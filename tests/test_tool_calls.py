"""Tools as actions of a recipe: called together, numbered, limited, kept and replayed."""


import json

import pytest
from embedders import Words
from langgraph.checkpoint.memory import InMemorySaver

from ragbed.agents import Assistant, AssistantSettings, Limits, Scripted
from ragbed.agents.tools import ToolOutput
from ragbed.documents import Chunk, RecipeMismatch
from ragbed.retrieval import IndexSettings, build_index
from ragbed.strategies import Search, ToolCall, ToolSpec, answer

RECIPE = """
from ragbed.strategies import ToolCall, Tools, answer

def recipe(task, *, tools: Tools):
    evidence = yield from task.gather(task.question)
    results = yield [ToolCall(tool, {name: word}) for tool, name in (("grep", "pattern"), ("count", "word"))
                     for word in ("Town", "Atlantis")]
    assert [spec.name for spec in task.tools] == ["grep", "count"]
    passages = (*evidence, *(passage for one in results for passage in one.passages))
    counted = " ".join(part for one in results for part in one.parts if isinstance(part, str))
    return (yield from answer(task, "direct", tuple(dict.fromkeys(passages)), counted[-20:], thinks=False))
"""
COUNT = """
from pathlib import Path

def count(word: str) -> str:
    \"\"\"Count the letters of a word.\"\"\"
    with Path(__file__).with_name("called").open("a") as file:
        file.write(word + "\\n")
    if word == "Atlantis":
        raise ValueError("it sank")
    return f"{word}: {len(word)} letters"
"""
LOOKUP = ToolSpec("lookup", "Look up a town.", {"type": "object", "properties": {"town": {"type": "string"}}})
OSLO = Chunk("oslo", "atlas", "plain", 0, 25, "Oslo lies on a deep fjord.")
CAPITAL = Chunk("capital", "atlas", "plain", 0, 4, "Oslo")


def config(town, url, **settings):
    """A run of a strategy with two tools: `grep`, and a function that leaves a line for each of its calls."""
    (town.folder / "steps.py").write_text(RECIPE)
    (town.folder / "words.py").write_text(COUNT)
    return town.config(url, reasoning=[{"kind": f"{town.folder / 'steps.py'}:recipe",
                                        "tools": ["grep", f"{town.folder / 'words.py'}:count"]}], **settings)


def called(town):
    """The calls of the function since the last time."""
    path = town.folder / "called"
    words = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return words


def look_up(call: ToolCall) -> ToolOutput:
    if call.arguments.get("town") != "Oslo":
        return ToolOutput(failure="There is no such town.")
    return ToolOutput(("One entry:", OSLO, CAPITAL))


def towns(task):
    """Search, look up two towns together, and answer over everything."""
    evidence = yield Search(task.question)
    one, other = yield [ToolCall("lookup", {"town": town}) for town in ("Oslo", "Atlantis")]
    assert [spec.name for spec in task.tools] == ["lookup"]
    assert other.failure.message == other.text == "There is no such town."
    assert one.text == "One entry:\n[1]\nOslo lies on a deep fjord.\n[2]\nOslo"
    return (yield from answer(task, "chain_of_thought", tuple(dict.fromkeys([*evidence, *one.passages]))))


def test_calls_of_one_turn_are_answered_in_order_and_share_the_numbers_of_searches():
    model = Scripted({"answer": "<Answer>A fjord [1] [2]</Answer>"}, lambda search: [OSLO], tools=look_up)
    ended = model.play(towns, "Where is Oslo?", tools=(LOOKUP,))
    assert (ended.text, ended.cited, ended.failure) == ("A fjord [1] [2]", (1, 2), None)
    steps = [(step.tool, step.arguments["town"], step.parts, step.found) for step in ended.trace[1:3]]
    assert steps == [("lookup", "Oslo", ("One entry:", 1, 2), (1, 2)), ("lookup", "Atlantis", (), ())]
    assert ended.trace[2].failure.message == "There is no such town."


def test_a_question_ends_at_its_limit_of_tool_calls():
    model = Scripted({}, lambda search: [OSLO], limits=Limits(tools=1), tools=look_up)
    ended = model.play(towns, "Where is Oslo?", tools=(LOOKUP,))
    assert (ended.outcome, ended.failure.message) == ("budget", "limit of 1 tool calls per question reached")


def test_a_recipe_may_not_mix_tools_and_searches_nor_send_what_is_not_json():
    def mixes(task):
        yield [Search("a"), ToolCall("lookup", {})]

    def sends(task):
        yield ToolCall("lookup", {"town": {1, 2}})

    model = Scripted({}, lambda search: [OSLO], tools=look_up)
    assert "do not mix them" in model.play(mixes).failure.message
    assert model.play(sends).failure.message == (
        "the strategy makes a tool call whose arguments are not a JSON object")


def test_an_unknown_tool_fails_and_the_recipe_goes_on():
    def calls(task):
        yield ToolCall("lookup", {})

    assert Scripted({}).play(calls).trace[0].failure.message == "there is no tool lookup"


@pytest.mark.slow
def test_a_run_calls_tools_over_each_question_s_documents_and_replays_without_them(town, serve, ragbed):
    server = serve(town.reply)
    path = config(town, server.url)
    assert ragbed("run", path)[0] == 0
    assert sorted(called(town)) == ["Atlantis"] * 6 + ["Town"] * 6
    first = town.records()[0]["result"]
    steps = [step for step in first["trace"] if step["kind"] == "tool"]
    assert [(step["purpose"], [*step["arguments"].values()], step["found"]) for step in steps] == [
        ("grep", ["Town"], (1,)), ("grep", ["Atlantis"], ()), ("count", ["Town"], ()), ("count", ["Atlantis"], ())]
    assert (steps[3]["failure"]["kind"], "it sank" in steps[3]["failure"]["message"]) == ("tool", True)
    summary, hashes = (town.run / "summary.json").read_bytes(), town.hashes()
    server.requests.clear()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert ((town.run / "summary.json").read_bytes(), town.hashes()) == (summary, hashes)
    assert (called(town), server.requests) == ([], [])


@pytest.mark.slow
def test_a_changed_function_is_called_again_and_other_replies_are_not_asked_again(town, serve, ragbed):
    server = serve(town.reply)
    path = config(town, server.url)
    assert ragbed("run", path)[0] == 0
    called(town)
    words = town.folder / "words.py"
    words.write_text(words.read_text().replace("it sank", "it is gone"))
    status, _, err = ragbed("run", path)
    assert (status, sorted(called(town))) == (0, ["Atlantis"] * 6 + ["Town"] * 6)
    assert "words.py" in err
    assert "0 calls sent" in err
    assert "it is gone" in town.records()[0]["result"]["trace"][4]["failure"]["message"]


def test_closed_book_shows_tools_nothing(town, serve, ragbed):
    path = config(town, serve(town.reply).url, conditions="closed-book")
    assert ragbed("run", path)[0] == 0
    steps = [step for step in town.records()[0]["result"]["trace"] if step["kind"] == "tool"]
    assert [step["found"] for step in steps] == [(), (), (), ()]


def test_a_tool_searches_with_a_retriever_of_the_run_by_its_name(town, serve, ragbed):
    recipe = """
from ragbed.strategies import ToolCall, Tools, answer

def recipe(task, *, tools: Tools):
    found = yield [ToolCall(spec.name, {"query": "mayor Ada", "k": 1}) for spec in task.tools]
    return (yield from answer(task, "direct", (*found[0].passages, *found[1].passages), thinks=False))
"""
    (town.folder / "twice.py").write_text(recipe)
    strategy = {"kind": f"{town.folder / 'twice.py'}:recipe", "tools": ["search", "search_words"]}
    retrievers = [{"kind": "bm25", "name": "words"}, {"kind": "bm25", "name": "other", "over": "all"}]
    path = town.config(serve(town.reply).url, reasoning=[strategy], retriever=retrievers, conditions="retrieved")
    assert ragbed("run", path)[0] == 0
    found = {tuple(one["source"] for one in record["result"]["evidence"]) for record in town.records()
             if record["result"]["question"] == "non_refusal-2"}
    assert found == {("town/2-1",), ("town/1-1", "town/2-1")}  # over all documents, an equal one comes first
    strategy["tools"][1] = "search_wrods"
    path = town.config(serve(town.reply).url, reasoning=[strategy], retriever=retrievers, conditions="retrieved")
    ragbed.refuses("run", path, says=["search_wrods searches no retriever of the run; did you mean 'search_words'?"])


GREP = """
from ragbed.strategies import ToolCall, Tools, answer

def recipe(task, *, tools: Tools):
    one = yield ToolCall("grep", {"pattern": "capital of \\\\w+"})
    return (yield from answer(task, "direct", one.passages, thinks=False))
"""


async def test_an_assistant_tells_tool_calls_and_continues_after_one_in_another_process(tmp_path, serve, monkeypatch):
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "oslo.txt").write_text("A note.\nOslo is the capital of Norway.\nIt is large.")
    (tmp_path / "grep.py").write_text(GREP)
    build_index([tmp_path / "oslo.txt"], tmp_path / "index", IndexSettings(titled=False), embedder=Words(10_000))
    server = serve(lambda body: "Norway [1]")
    strategy = {"kind": f"{tmp_path / 'grep.py'}:recipe", "tools": ["grep"]}
    settings = AssistantSettings(index=tmp_path / "index", model=f"{server.url}#m", retriever="bm25",
                                 reasoning=strategy)
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "mine"}}
    async with Assistant.open(settings, saver) as assistant:
        events = [event async for event in assistant.stream("Whose capital is Oslo?")]
        assert events[0] == {"event": "calling", "tool": "grep", "arguments": {"pattern": "capital of \\w+"}}
        assert (events[1]["tool"], events[1]["found"], events[1]["failure"]) == ("grep", [1], None)
        await assistant.graph.ainvoke(assistant.begin("Whose?", thread="mine"), config, interrupt_after=["call_tools"])
    async with Assistant.open(settings, saver) as other:
        answer = await other.resume("mine")
        assert (answer.text, answer.evidence[0].chunk.content) == ("Norway [1]", "Oslo is the capital of Norway.")
        assert answer.trace[0].found == (1,)
        saved = await other.saved("mine")
    entry = saved["results"][0]
    assert entry["called"][0]["parts"][-1] == [answer.evidence[0].chunk.document, "plain", 8, 38, ""]
    entry["called"][0]["parts"][-1][0] = "no such document"
    async with Assistant.open(settings) as third:
        with pytest.raises(RecipeMismatch, match="uses a passage that the index does not have"):
            await third.resume({**saved, "results": [entry], "answer": {}, "id": "forged"})


def test_a_dry_run_counts_the_calls_of_an_agent_and_says_which_limit_it_reaches(town, ragbed):
    strategy = {"kind": "agent", "tools": ["grep", "list"], "turns": 3, "protocol": "native"}
    most = []
    for limits in ({}, {"tools": 10}):
        path = town.config("http://127.0.0.1:1/v1", reasoning=[strategy], limits=limits)
        status, out, _ = ragbed("run", path, "--dry-run", "--json")
        most.append(json.loads(out)["cells"][0]["calls"]["most"])
    assert (status, most) == (0, [6 * 4, 6 * 3])  # three turns and the answer; a turn may make several calls of tools
    assert any("limit of 10 tool calls per question" in note for note in json.loads(out)["notes"])


def test_a_cassette_replays_the_tools_of_an_agent_without_its_server_or_documents(town, serve, ragbed):
    def reply(body):
        asked = "\n".join(message["content"] or "" for message in body["messages"])
        return "<Answer>555 people [1]</Answer>" if "[1]" in asked else 'grep: {"pattern": "Town"}'

    strategy = {"kind": "agent", "tools": ["grep"], "turns": 2, "protocol": "text"}
    path = town.config(serve(reply).url, reasoning=[strategy])
    assert ragbed("run", path)[0] == 0
    calls = [step["purpose"] for step in town.records()[0]["result"]["trace"] if step["kind"] == "tool"]
    assert calls[0] == "grep"
    results = json.loads((town.run / "summary.json").read_bytes())["results"]
    assert ragbed("cassette", "export", town.run, "--out", town.folder / "c.gz")[0] == 0
    assert ragbed("run", "--replay", town.folder / "c.gz", "--name", "again", "--set",
                  f"out={town.folder / 'runs'}")[0] == 0
    again = json.loads((town.folder / "runs" / "again" / "summary.json").read_bytes())
    assert again["results"] == results
    status, out, _ = ragbed("rescore", town.run, "--json")
    assert (status, json.loads(out)["read"]) == (0, {"same": 6, "changed": 0, "skipped": 0})


def test_a_call_with_characters_that_no_store_can_hold_is_kept_and_replayed(town, serve, ragbed):
    (town.folder / "odd.py").write_text("""
from ragbed.strategies import ToolCall, Tools, answer

def recipe(task, *, tools: Tools):
    yield ToolCall("grep", {"pattern": "\\ud800"})
    return (yield from answer(task, "direct", (), thinks=False))
""")
    strategy = {"kind": f"{town.folder / 'odd.py'}:recipe", "tools": ["grep"]}
    path = town.config(serve(town.reply).url, reasoning=[strategy])
    assert ragbed("run", path)[0] == 0
    hashes = town.hashes()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert town.hashes() == hashes
