"""agent: delivery of results, and what happens when the context is full."""
import pytest
from agent_scene import ANSWER, FINISH, Agent, calls
from gathering import chunk, decisions

from ragbed.agents.tools import ToolOutput
from ragbed.documents import Chunk
from ragbed.documents.errors import SettingsError
from ragbed.strategies.settings.strategy_config import reasoning


def long(name, size):
    """A document of this many characters."""
    return Chunk(name, name, "plain", 0, size, (name * size)[:size])


SEARCHED = calls(("search", {"query": "q"}))
FOUND = {"search": ToolOutput(("Two documents:", chunk("jaws"), long("o", 2_000), long("z", 2_000)))}


def read(page=None, result="r1"):
    return calls(("read_result", {"result": result, **({} if page is None else {"page": page})}))


def test_a_file_shows_a_handle_and_its_pages_only_when_they_are_opened():
    agent = Agent([SEARCHED, read(), read(2), FINISH, ANSWER], FOUND, delivery="file")
    answer = agent.ask()
    assert agent.calls[1].messages[-1].content == (
        'The whole result is in r1: 4027 characters on 2 pages. Read it with `read_result: {"result": "r1"}`.')
    assert agent.calls[2].messages[-1].content == (
        f"Page 1 of 2 of r1:\n<documents>\nTwo documents:\n\n[1]\nText of jaws.\n\n[2]\n{'o' * 2_000}\n</documents>")
    assert agent.shown == [(), (), (1, 2), (1, 2, 3), (1, 2, 3)]
    assert agent.called == [("search", {"query": "q"})]
    assert decisions(answer)[2:4] == [("opens a result", "r1, page 1 of 2"), (
        "goes on", "turn 2 of 12 called read_result")]


def test_a_digest_shows_the_first_lines_and_numbers_only_what_is_whole():
    agent = Agent([SEARCHED, FINISH, ANSWER], FOUND, delivery="digest")
    answer = agent.ask()
    # 14 and 13 of 400 characters are used before the second document
    assert agent.calls[1].messages[-1].content == (
        f"<documents>\nTwo documents:\n\n[1]\nText of jaws.\n\n{'o' * 373}...\n</documents>\n"
        'The whole result is in r1: 4027 characters on 2 pages. Read it with `read_result: {"result": "r1"}`.')
    assert agent.shown == [(), (1,), (1,)]
    assert answer.invalid_citations == (2,)


@pytest.mark.parametrize("delivery", ["digest", "file"])
def test_short_results_and_errors_are_shown_in_full(delivery):
    agent = Agent([calls(("search", {"query": "Jaws"})), FINISH, ANSWER], delivery=delivery)
    agent.ask()
    assert agent.calls[1].messages[-1].content == "<documents>\n[1]\nText of jaws.\n</documents>"


@pytest.mark.parametrize("asked", [read(3), read(0), read("x"), read(10**30), read(1, "r7"), read("1 to 2")])
def test_a_page_that_does_not_exist_is_told(asked):
    agent = Agent([SEARCHED, asked, FINISH, ANSWER], FOUND, delivery="file")
    agent.ask()
    assert agent.calls[2].messages[-1].content == "Error: there is no such page. There are: r1, pages 1 to 2."


def test_the_page_that_is_not_named_is_the_first_and_inline_has_no_such_tool():
    agent = Agent([SEARCHED, read(), FINISH, ANSWER], FOUND)
    assert agent.ask().figures == {"unread_calls": 1}


WORDS = {"search": ToolOutput((long("o", 4_000),)), "open": ToolOutput((long("z", 4_000),))}
TURNS = [calls(("search", {"query": "q"})), calls(("open", {"document": "d"})), FINISH, ANSWER]


def test_a_full_context_loses_its_oldest_results_and_says_so():
    # the first prompt has about 500 tokens, each result 1,000
    agent = Agent(TURNS, WORDS, context={"tokens": 2_000})
    answer = agent.ask()
    assert agent.shown == [(), (1,), (2,), (2,)]
    assert [m.content[:35] for m in agent.calls[2].messages if m.role == "tool"] == [
        "(This result was removed to save sp", "<documents>\n[2]\nzzzzzzzzzzzzzzzzzzz"]
    assert ("makes room", "old results are removed") in decisions(answer)
    assert (answer.cited, answer.shown) == ((2,), (2, 1))


def test_notes_replace_a_full_context():
    agent = Agent([*TURNS[:2], "The film is Jaws [1].", FINISH, ANSWER], WORDS,
                  context={"tokens": 2_000, "when_full": "summarise"})
    answer = agent.ask()
    assert [call.purpose for call in agent.calls] == ["agent", "agent", "summarise", "agent", "answer"]
    assert agent.shown == [(), (1,), (1, 2), (), ()]
    assert [m.role for m in agent.calls[3].messages] == ["system", "user", "assistant", "user"]
    assert agent.calls[3].messages[2].content == "The film is Jaws [1]."
    assert answer.cited == (2,)  # an earlier prompt showed it


@pytest.mark.parametrize("context", [{"tokens": 2_000, "when_full": "stop"}, {"tokens": 1_000}])
def test_a_context_that_stays_full_ends_it(context):
    agent = Agent({"agent": TURNS, "answer": ANSWER}, WORDS, context=context)
    answer = agent.ask()
    assert decisions(answer)[-1] == ("stops", "the context is full")
    assert answer.outcome == "answered"


def test_a_context_is_checked_before_a_run():
    with pytest.raises(SettingsError, match=r"strategy agent: context.tokens: Input should be greater than or equal"):
        reasoning({"kind": "agent", "context": {"tokens": 10}})


def test_in_text_finish_is_offered_only_once_a_result_could_hold_the_answer():
    agent = Agent(['Thought: look.\nsearch: {"query": "q"}', 'Thought: read.\nread_result: {"result": "r1"}', "finish",
                   ANSWER], FOUND, protocol="text", delivery="file")
    agent.ask()
    asked = [call.messages[-1].content for call in agent.calls]
    assert ["write `finish`" in one for one in asked] == [False, False, True, False]
    assert "No text of the documents that could answer it is shown yet." in asked[1]


@pytest.mark.parametrize(("output", "offered"), [
    (ToolOutput(("No line matches.",)), False), (ToolOutput((), "it failed"), False), (ToolOutput(()), False),
    (ToolOutput(("1 matching line.", chunk("jaws"))), True)])
def test_in_text_finish_is_not_offered_after_a_tool_found_nothing(output, offered):
    agent = Agent(['open: {"document": "d"}', "finish", ANSWER], {"open": output}, protocol="text")
    agent.ask()
    assert ("write `finish`" in agent.calls[1].messages[-1].content) is offered
