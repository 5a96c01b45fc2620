"""react: how its calls and lines are read, and that a saved question goes on as it would have."""
import json

import pytest
from calling import FINISH, reply_of, searching
from each_case import each
from gathering import QUESTION, chunk
from growth import grows_linearly

from ragbed.agents import CallOutcome, Limits
from ragbed.agents.checkpoint import restore
from ragbed.agents.journal import call_key
from ragbed.agents.session import Runtime, Session
from ragbed.experiments.guests.agent.agent_messages import refuses_tools
from ragbed.experiments.guests.agent.react import read_action as action
from ragbed.experiments.guests.agent.reading import read_written
from ragbed.strategies import Failure, Reply, Task, ToolSpec
from ragbed.strategies.settings.strategy_config import reasoning as chosen
from ragbed.strategies.settings.strategy_config import retrieval

LIBRARY = {QUESTION: "jaws", "director of Jaws": "spielberg jaws", "Spielberg born": "ohio spielberg", "sharks": "fish"}
SEARCH = ToolSpec("search", "", {"properties": {"query": {"type": "string"}}})
ANSWER = "<Answer>Cincinnati [3]</Answer>"


def resumed(replies, steps):
    """The trace of a question that was saved as JSON after so many steps and went on from there, and its steps."""
    replies = [Failure("http_400", "no tools") if one is None else one for one in replies]
    runtime = Runtime(None, None, lambda call: call_key("m", call.messages, {"tools": len(call.tools)}, 0, 0), chunk,
                  Limits())
    saved = []
    while True:
        play = Session(Task("q", QUESTION, retrieval("once")), chosen("react"), runtime)
        restore(play, json.loads(json.dumps(saved)))
        while play.node != "finish":
            if play.node == "search":
                entry = play.add_found([[chunk(name) for name in LIBRARY[one.query].split()]
                                         for one in play.pending_searches()])
            else:
                made = sum("asked" in one for one in saved)
                entry = play.add_replies([CallOutcome(runtime.key(play.pending_calls()[0]), replies[made])])
            saved.append(entry)
            if len(saved) == steps:
                break
        if play.node == "finish" or steps > len(saved):
            return play.answer().trace, len(saved)
        steps = 0


@pytest.mark.parametrize("replies", [
    [reply_of(searching("director of Jaws", "sharks")), reply_of(searching("Spielberg born")), reply_of(FINISH),
     Reply(ANSWER)],
    [None, Reply("Search: director of Jaws"), Reply("Search: Spielberg born"), Reply("Finish"), Reply(ANSWER)]])
def test_saved_after_any_step_and_resumed_it_goes_the_same_way(replies):
    whole, steps = resumed(replies, 99)
    assert steps == len(replies) + 3
    assert [resumed(replies, step) for step in range(1, steps)] == [(whole, steps)] * (steps - 1)


def test_an_error_about_something_else_is_no_refusal_of_tools():
    assert not refuses_tools(Failure("timeout_call", "no tool in time"))
    assert not refuses_tools(Failure("http_400", "m: HTTP 400"))


@each(("text", "query"), [
    ("Thought: x\nSearch: Ada", "Ada"), ("Thought: x\nAction: search[Ada]\nResult: y", "Ada"),
    ("**Search:** Ada Lovelace", "Ada Lovelace"), ("Action 1: Search(\"Ada\")", "Ada"), ("Thought: x\nFinish", ""),
    ("Action: finish[Ada]", ""), ("I search: no", ""), ("<think>Search: no</think>\nSearch: Ada", "Ada"),
    ("Search:", ""), ("Finishing touches: none\nSearch: Ada", "Ada"), ("", "")])
def test_the_first_action_of_a_text_is_read(text, query):
    assert action(text).query == query


def test_what_a_model_makes_up_after_its_action_does_not_stay():
    assert action("Thought: x\nSearch: Ada\nResult: made up\nFinish").kept == "Thought: x\nSearch: Ada\n"


@pytest.mark.parametrize("piece", ["search: ", "Action: ", "*", '{"name": "search"', '"query": "\\', "finish", "\n> "])
def test_a_monstrous_reply_takes_no_time(piece):
    grows_linearly(lambda n: (action(piece * n), read_written(piece * n, [SEARCH], "")), 20_000)
