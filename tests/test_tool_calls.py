"""Tools as actions of a recipe: called together, numbered, limited, kept and replayed."""
from ragbed.agents import Limits, Scripted
from ragbed.agents.tools import ToolOutput
from ragbed.documents import Chunk
from ragbed.strategies import Search, ToolCall, ToolSpec, answer

LOOKUP = ToolSpec("lookup", "Look up a town.", {"type": "object", "properties": {"town": {"type": "string"}}})
OSLO = Chunk("oslo", "atlas", "plain", 0, 25, "Oslo lies on a deep fjord.")
CAPITAL = Chunk("capital", "atlas", "plain", 0, 4, "Oslo")


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
