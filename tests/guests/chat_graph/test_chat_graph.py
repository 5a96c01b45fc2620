"""An assistant in other programs: further turns, messages, passages that a person edits, agents of LangChain."""
import contextlib

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import ToolException, create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver

from ragbed.agents import Assistant, AssistantSettings
from ragbed.agents.checkpoint import open_checkpointer
from ragbed.documents import RecipeMismatch, SettingsError
from ragbed.experiments.guests.chat_graph import as_runnable, as_tool, chat_graph
from ragbed.experiments.guests.external_retrievers import as_langchain
from ragbed.retrieval import Bm25, RerankerDeps

OSLO, ROME = "Where is Oslo?", "Where is Rome?"
MINE = {"configurable": {"thread_id": "mine"}}


def says(body):
    asked = body["messages"][-1]["content"]
    if "<query>" in asked:
        return ROME if "Rome" in asked.rpartition("Question: ")[2] else OSLO
    return f"<Answer>{'Italy' if 'Rome is' in asked else 'Norway'} [1]</Answer>"


@pytest.fixture
def opened(serve, capitals):
    """Opens an assistant over two pages; further arguments are its settings. Its `server` is the model's."""
    @contextlib.asynccontextmanager
    async def start(script=says, checkpointer=None, **changes):
        server = serve(script)
        settings = AssistantSettings(**{"index": capitals, "model": f"{server.url}#m", "retriever": "bm25", "k": 1,
                                        "reasoning": "direct", **changes})
        async with Assistant.open(settings, checkpointer) as assistant:
            assistant.server = server
            yield assistant

    return start


async def test_a_thread_of_ones_own_checkpointer_goes_on_with_its_next_question(opened):
    async with opened(checkpointer=InMemorySaver()) as assistant:
        for question, answer in ((OSLO, "Norway [1]"), (ROME, "Italy [1]"), (ROME, "Italy [1]")):
            state = await assistant.graph.ainvoke({"question": question}, MINE)
            assert state["answer"]["text"] == answer
        assert state["turns"] == [{"question": OSLO, "answer": "Norway [1]"}, {"question": ROME, "answer": "Italy [1]"}]
        assert f"Question: {OSLO}\nAnswer: Norway\n" in assistant.server.requests[1][0]["messages"][-1]["content"]


async def test_a_question_that_stopped_goes_on_and_another_one_leaves_it_without_an_answer(opened):
    async with opened(checkpointer=InMemorySaver(), history="none") as assistant:
        await assistant.graph.ainvoke({"question": OSLO}, MINE, interrupt_after=["search"])
        state = await assistant.graph.ainvoke({"question": OSLO}, MINE)
        assert (state["answer"]["text"], len(state["results"]), state["turns"]) == ("Norway [1]", 2, [])
        await assistant.graph.ainvoke({"question": OSLO}, MINE, interrupt_after=["search"])
        state = await assistant.graph.ainvoke({"question": ROME}, MINE)
        assert state["answer"]["text"] == "Italy [1]"
        assert state["turns"][1] == {"question": OSLO, "answer": ""}
        for nothing in ({"question": " "}, {"question": 5}):
            with pytest.raises(SettingsError, match="there is no question"):
                await assistant.graph.ainvoke(nothing, MINE)


async def test_other_settings_answer_the_next_question_of_a_thread(opened):
    saver = InMemorySaver()
    async with opened(checkpointer=saver) as assistant:
        await assistant.graph.ainvoke({"question": OSLO}, MINE)
    async with opened(checkpointer=saver, k=2) as assistant:
        state = await assistant.graph.ainvoke({"question": ROME}, MINE)
        assert (state["answer"]["outcome"], state["made"]["k"]) == ("answered", 2)


@pytest.mark.parametrize("whole", [False, True])
async def test_passages_that_a_person_edits_are_answered_over(opened, whole):
    async with opened(checkpointer=InMemorySaver(), history="none") as assistant:
        graph = chat_graph(assistant, InMemorySaver())
        stop = {} if whole else {"interrupt_after": ["search"]}
        await graph.ainvoke({"question": OSLO}, MINE, **stop)
        found = (await graph.aget_state(MINE)).values["results"]
        rome, = (chunk.id for chunk in assistant.index.chunks if "Rome" in chunk.content)
        edited = [{**found[0], "found": [[rome]]}]
        later = await graph.aupdate_state(MINE, {"results": edited, "answer": {}}, as_node="search")
        assert (await graph.aget_state(later)).next == ("generate",)
        state = await graph.ainvoke(None, MINE)
        assert (state["answer"]["text"], state["messages"][-1].text) == ("Italy [1]", "Italy [1]")
        assert state["messages"][-1].response_metadata["citations"][0]["source"] == "rome.txt"
        with pytest.raises(RecipeMismatch, match="a step was edited without removing those after it"):
            await graph.aupdate_state(MINE, {"results": [found[0], state["results"][1]]}, as_node="search")
        with pytest.raises(RecipeMismatch, match="uses a passage that the index does not have: 'none'"):
            await graph.aupdate_state(MINE, {"results": [{**found[0], "found": [["none"]]}]}, as_node="search")


@pytest.mark.parametrize("kept", ["memory", "file"])
async def test_a_chat_of_messages_knows_the_turns_before(opened, kept, tmp_path):
    async with contextlib.AsyncExitStack() as stack:
        saver = InMemorySaver() if kept == "memory" else await stack.enter_async_context(
            open_checkpointer(tmp_path / "threads.sqlite"))
        assistant = await stack.enter_async_context(opened())
        graph = chat_graph(assistant, saver)
        await graph.ainvoke({"messages": [{"role": "user", "content": OSLO}]}, MINE)
        await graph.ainvoke({"question": ROME}, MINE)
        state = await graph.ainvoke({"messages": [HumanMessage([{"type": "text", "text": "And Rome?"}])]}, MINE)
        assert [one.text for one in state["messages"]] == [
            OSLO, "Norway [1]", ROME, "Italy [1]", "And Rome?", "Italy [1]"]
        assert state["turns"] == [{"question": OSLO, "answer": "Norway [1]"}, {"question": ROME, "answer": "Italy [1]"}]
        with pytest.raises(SettingsError, match="the last message has no text"):
            await graph.ainvoke({"messages": [HumanMessage([{"type": "image", "url": "x"}])]}, MINE)


async def test_messages_of_others_are_ignored_and_a_failure_is_no_answer(opened):
    async with opened([{"status": 400}, "<Answer>Norway [1]</Answer>"], history="none") as assistant:
        graph = chat_graph(assistant)
        state = await graph.ainvoke({"messages": [SystemMessage("Shout."), HumanMessage("Hello"), AIMessage("Hi."),
                                                  ToolMessage("4", tool_call_id="1"), HumanMessage(OSLO)]})
        last = state["messages"][-1]
        assert (last.text, last.response_metadata["outcome"]) == ("", "error")
        assert last.response_metadata["failure"] == state["answer"]["failure"]
        state = await graph.ainvoke({"messages": [*state["messages"], HumanMessage(OSLO)]})
        assert state["turns"] == [{"question": "Hello", "answer": "Hi."}, {"question": OSLO, "answer": ""}]
        assert state["messages"][-1].text == "Norway [1]"


class Calls(GenericFakeChatModel):
    """A model that makes the calls it is given."""

    def bind_tools(self, tools, **options):
        return self


async def test_an_agent_of_langchain_asks_the_assistant_and_searches(opened):
    async with opened([{"text": "<Answer>Norway [1]</Answer>"}, {"status": 400}]) as assistant:
        search = create_retriever_tool(as_langchain(Bm25().open(assistant.index, RerankerDeps()), 1), "search", "...")
        reports = as_tool(assistant, "reports", "Answers questions about capitals.")
        calls = [{"name": "reports", "args": {"question": OSLO}, "id": "1"},
                 {"name": "search", "args": {"query": "Rome"}, "id": "2"}]
        model = Calls(messages=iter([AIMessage("", tool_calls=calls), AIMessage("", tool_calls=calls[:1]),
                                     AIMessage("Norway.")]))
        state = await create_agent(model, [search, reports]).ainvoke({"messages": [("user", OSLO)]})
        asked, found, failed = (one for one in state["messages"] if one.type == "tool")
        assert (asked.content, asked.artifact.text) == ("Norway [1]\n[1] oslo.txt", "Norway [1]")
        assert "Rome is the capital of Italy" in found.content
        assert (failed.status, "400" in failed.content) == ("error", True)


async def test_a_runnable_is_a_step_of_a_chain_and_raises_if_the_question_fails(opened):
    async with opened(["<Answer>Norway [1]</Answer>", {"status": 400}]) as assistant:
        chain = as_runnable(assistant) | (lambda message: message.text.upper())
        assert await chain.ainvoke(OSLO) == "NORWAY [1]"
        with pytest.raises(ToolException, match="400"):
            await chain.ainvoke(OSLO)
