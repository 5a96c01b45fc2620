"""Tools as actions of a recipe: called together, numbered, limited, kept and replayed."""
import contextlib

import pytest

from ragbed.agents import Limits, Scripted
from ragbed.agents.tools import ToolOutput
from ragbed.documents import Chunk
from ragbed.strategies import Search, ToolCall, ToolSpec, answer

RECIPE = """
from ragbed.strategies import ToolCall, Tools, answer

def recipe(task, *, tools: Tools = Tools(["lookup"])):
    evidence = yield from task.gather(task.question)
    results = yield [ToolCall(tool, {"word": word}) for tool in ("lookup", "raises") for word in ("Town", "mayor")]
    assert [spec.name for spec in task.tools] == ["lookup", "raises"]
    assert [bool(one.failure) for one in results] == [False, False, True, True], results
    passages = (*evidence, *(passage for one in results for passage in one.passages))
    return (yield from answer(task, "direct", tuple(dict.fromkeys(passages)), thinks=False))
"""
LOOKUP = ToolSpec("lookup", "Look up a town.", {"type": "object", "properties": {"town": {"type": "string"}}})
OSLO = Chunk("oslo", "atlas", "plain", 0, 25, "Oslo lies on a deep fjord.")
CAPITAL = Chunk("capital", "atlas", "plain", 0, 4, "Oslo")


class Box:
    """Two tools: one finds a word in the documents, one raises."""

    specs = (LOOKUP, ToolSpec("raises", "Raise an error.", {"type": "object"}))

    def __init__(self) -> None:
        self.hashes, self.called = {"lookup": "1", "raises": "1"}, []

    async def call(self, call, corpus, searches):
        self.called.append(call.tool)
        if call.tool == "raises":
            raise ValueError(f"no {call.arguments['word']}")
        found = []
        for id in corpus.ids:
            at = corpus.document(id).text(corpus.format).find(call.arguments["word"])
            found += corpus.spans(id, at, at + 6) if at >= 0 else ()
        return ToolOutput((f"{len(found)} of {len(corpus.ids)} documents:", *found))


@pytest.fixture
def box(monkeypatch):
    """The tools that settings name `lookup`."""
    box = Box()

    @contextlib.asynccontextmanager
    async def opened(tools):
        assert tuple(tools) == ("lookup",)
        yield box

    for name in ("ragbed.agents.tools", "ragbed.strategies.settings.strategy_config"):
        monkeypatch.setattr(f"{name}.entries", lambda slot: {"open": "opened", "check": "check"})
        monkeypatch.setattr(f"{name}.load", {"opened": opened, "check": lambda tools: tools}.__getitem__)
    return box


def config(town, url, **settings):
    (town.folder / "own.py").write_text(RECIPE)
    return town.config(url, reasoning=[f"{town.folder / 'own.py'}:recipe"], **settings)


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


def test_a_run_calls_tools_over_each_question_s_documents_and_replays_without_them(box, town, serve, ragbed):
    server = serve(town.reply)
    path = config(town, server.url)
    assert ragbed("run", path)[0] == 0
    assert len(box.called) == 6 * 4
    first = town.records()[0]["result"]
    steps = [step for step in first["trace"] if step["kind"] == "tool"]
    assert [(step["purpose"], step["arguments"], len(step["found"])) for step in steps] == [
        ("lookup", {"word": "Town"}, 1), ("lookup", {"word": "mayor"}, 1), ("raises", {"word": "Town"}, 0),
        ("raises", {"word": "mayor"}, 0)]
    assert steps[2]["failure"]["kind"] == "tool"
    assert steps[2]["failure"]["message"].endswith("ValueError: no Town")
    spans = [(one["start"], one["end"]) for one in first["evidence"][2:]]
    assert spans == [(15, 21), (4, 10)]
    summary = (town.run / "summary.json").read_bytes()
    box.called.clear()
    server.requests.clear()
    assert ragbed("run", path, "--journal", "replay")[0] == 0
    assert (town.run / "summary.json").read_bytes() == summary
    assert (box.called, server.requests) == ([], [])
