"""The served form of the graph: asks, streams, and keeps its states where a checkpointer is given."""
import asyncio
from pathlib import Path

import pytest
from embedders import Words
from langgraph.checkpoint.memory import InMemorySaver

from ragbed.agents import Assistant, AssistantSettings, Limits, ModelSettings, open_model
from ragbed.documents import CrestSizes, SettingsError
from ragbed.retrieval import Index, IndexSettings, build_index

PLAN = "1. Which country?\n2. Which continent?"
LINES = [PLAN, "Norway [1].", "Europe [2].", "<Answer>Norway [1] [8]</Answer>"]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    monkeypatch.setenv("RAGBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "oslo.txt").write_text("Oslo is the capital of Norway.")
    (tmp_path / "rome.txt").write_text("Rome is the capital of Italy.")
    build_index([tmp_path / "oslo.txt", tmp_path / "rome.txt"], tmp_path / "index",
                IndexSettings(chunker=CrestSizes(smallest=500, largest=500), titled=False), embedder=Words(10_000))
    return Index.open(tmp_path / "index", Words(10_000))


def settings(index: Index, **changes) -> AssistantSettings:
    return AssistantSettings(index=index.folder, reasoning="least_to_most", **changes)


async def test_events_come_in_the_order_of_the_steps_and_the_answer_is_last(serve, index):
    server = serve(LINES)
    async with open_model(f"{server.url}#m", ModelSettings()) as client:
        assistant = Assistant(settings(index), index, client)
        events = [event async for event in assistant.stream("Oslo: where is it?")]
        assistant.searcher.close()
    assert [event["event"] for event in events] == ["searching", "search", *["asking", "token", "reply"] * 4, "answer"]
    assert [event["purpose"] for event in events[2:14:3]] == ["decompose", "solve", "solve", "answer"]
    assert [event["call"] for event in events[2:14]] == [call for call in (1, 2, 3, 4) for _ in range(3)]
    assert events[1]["found"] == [1, 2]
    last = events[-1]
    assert (last["outcome"], last["text"], last["invalid_citations"]) == ("answered", "Norway [1] [8]", [8])
    assert [one["number"] for one in last["citations"]] == [1]


async def test_a_consumer_that_leaves_early_leaves_nothing_behind(serve, index):
    server = serve(LINES + LINES)
    async with open_model(f"{server.url}#m", ModelSettings()) as client:
        assistant = Assistant(settings(index), index, client)
        stream = assistant.stream("Where is Oslo?")
        assert (await anext(stream))["event"] == "searching"
        await stream.aclose()
        assert assistant._live == {}
        assistant.searcher.close()


async def test_the_same_question_twice_shares_nothing_of_its_state_under_a_checkpointer(serve, index):
    server = serve(LINES + LINES)
    saver = InMemorySaver()
    async with open_model(f"{server.url}#m", ModelSettings()) as client:
        for _ in range(2):  # as two processes over one store: each counts its questions from one
            assistant = Assistant(settings(index), index, client, saver)
            answer = await assistant.ask("Where is Oslo?")
            assistant.searcher.close()
            assert (answer.outcome, answer.cited, answer.invalid_citations) == ("answered", (1,), (8,))
            assert len(answer.trace) == 5
    states = [saved.checkpoint["channel_values"] for saved in saver.list(None)]
    assert max(len(state.get("results", ())) for state in states) == 5


class Waits(InMemorySaver):
    """A store that is slow to say what it keeps, the first time that it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def aget_tuple(self, config):
        if not self.asked.is_set():
            self.asked.set()
            await self.go_on.wait()
        return await super().aget_tuple(config)


async def test_a_question_is_taken_up_by_one_alone_also_while_the_store_is_read(serve, index):
    server, saver = serve(LINES), Waits()
    async with open_model(f"{server.url}#m", ModelSettings()) as client:
        assistant = Assistant(settings(index), index, client, saver)
        first = asyncio.create_task(assistant.ask("Where is Oslo?", thread="mine"))
        await saver.asked.wait()
        with pytest.raises(SettingsError, match="'mine' is already answering a question"):
            await assistant.ask("Where is Oslo?", thread="mine")
        saver.go_on.set()
        assert (await first).outcome == "answered"
        assistant.searcher.close()
    assert len(server.requests) == 4


async def test_the_graph_plays_a_state_that_nobody_began_as_the_studio_does(serve, index):
    server = serve([*LINES, "<Answer>Norway</Answer>"])
    async with open_model(f"{server.url}#m", ModelSettings()) as client:
        assistant = Assistant(settings(index), index, client)
        state = await assistant.graph.ainvoke({"question": "Where is Oslo?"})
        assert state["answer"]["text"] == "Norway [1] [8]"
        short = Assistant(settings(index, limits=Limits(calls=1)), index, client)
        assert (await short.graph.ainvoke({"question": "Where is Oslo?"}))["answer"]["outcome"] == "budget"
        assistant.searcher.close()
        short.searcher.close()


async def test_an_unknown_strategy_is_named_before_anything_is_opened(index):
    with pytest.raises(SettingsError, match="choose from: direct"):
        async with Assistant.open(AssistantSettings(index=index.folder, reasoning="guess")):
            pass


async def test_search_only_answers_nothing_however_it_is_named(index):
    for named in ("search_only", {"kind": "search_only"}):
        with pytest.raises(SettingsError, match="search_only gives no answer"):
            async with Assistant.open(AssistantSettings(index=index.folder, reasoning=named)):
                pass
