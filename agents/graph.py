"""The LangGraph state machine that plays a recipe.

`search`, `generate` and `finish` are its nodes; what follows a node is what the recipe asks for next.
The state is JSON: the question and the results so far, each with the hashes of the actions that it
answers. A live question keeps its generator; one that was saved is replayed from its results.
"""
from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Awaitable, Sequence
from typing import Annotated, Any, Protocol, TypedDict, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StreamWriter

from agents.asked import failure_of
from agents.playback import Node, Playback, evidence_of
from agents.settings import Limits
from agents.types import Answer, DecisionStep, SearchStep, Step
from documents.errors import CallError
from strategies.types import Failure

Result = TypeVar("Result")


class State(TypedDict, total=False):
    """What the graph is given (`question`, and optionally `id` and `options`) and what it adds."""

    id: str
    question: str
    options: list[list[str]]
    results: Annotated[list[dict[str, Any]], operator.add]
    answer: dict[str, Any]


class Player(Protocol):
    """Knows the playback of a state: the live one, or one restored from the state's results."""

    def playback(self, state: State) -> Playback: ...


Graph = CompiledStateGraph[State, None, State, State]


def build_graph(player: Player, checkpointer: Any = None) -> Graph:
    """The compiled graph; the player brings strategy, model and evidence."""

    async def search(state: State, writer: StreamWriter) -> Command[Node]:
        play = player.playback(state)
        if play.stop_over_budget():
            return Command(goto="finish")
        return _go_on(play, await _searched(play), writer)

    async def generate(state: State, writer: StreamWriter) -> Command[Node]:
        play = player.playback(state)
        if play.stop_over_budget():
            return Command(goto="finish")
        asked = await _together([play.means.ask(call, play.deadline) for call in play.calls()])
        return _go_on(play, play.take_asked(asked), writer)

    async def finish(state: State) -> State:
        return {"answer": answer_to_json(player.playback(state).answer())}

    async def first(state: State) -> Node:  # LangGraph would hand a plain function to a thread
        return player.playback(state).node

    graph = StateGraph(State)
    graph.add_node("search", search, destinations=("search", "generate", "finish"))
    graph.add_node("generate", generate, destinations=("search", "generate", "finish"))
    graph.add_node("finish", finish)
    graph.add_conditional_edges(START, first, ["search", "generate", "finish"])
    graph.add_edge("finish", END)
    return graph.compile(checkpointer=checkpointer)


def recursion_limit(limits: Limits) -> RunnableConfig:
    """LangGraph's own bound on steps, above what the question's limits allow, so that those speak first."""
    return {"recursion_limit": limits.calls + limits.searches + 10}


async def _searched(play: Playback) -> dict[str, Any]:
    """Perform the pending searches by the question's deadline, and return the entry for the state."""
    try:
        async with asyncio.timeout(play.deadline - time.monotonic()) as limit:
            found = await _together([play.means.search(search) for search in play.searches()])
    except CallError as error:
        return play.take_lost(failure_of(error))
    except TimeoutError:
        if not limit.expired():
            raise
        return play.take_lost(Failure("timeout", "the question's deadline passed during a search"))
    return play.take_found(found)


async def _together(work: Sequence[Awaitable[Result]]) -> list[Result]:
    """The results in order; the usual lone one without a task of its own."""
    return [await work[0]] if len(work) == 1 else await asyncio.gather(*work)


def _go_on(play: Playback, entry: dict[str, Any], writer: StreamWriter) -> Command[Node]:
    for step in play.trace[play.told:]:
        writer(event_of(step))
    play.told = len(play.trace)
    return Command(update={"results": [entry]}, goto=play.node)


def event_of(step: Step) -> dict[str, Any]:
    """A step as it is streamed: `search` with what it found, `reply` with what the model said, or `decision`."""
    if isinstance(step, DecisionStep):
        return {"event": "decision", "what": step.what, "why": step.why}
    failure = step.failure.message if step.failure else None
    if isinstance(step, SearchStep):
        return {"event": "search", "query": step.query, "found": list(step.found), "failure": failure}
    return {"event": "reply", "purpose": step.purpose, "shown": list(step.shown), "text": step.text,
            "completion_tokens": step.usage.completion_tokens, "failure": failure}


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """The end of a question as plain JSON: chunks by id, no prompts."""
    return {"outcome": answer.outcome, "text": answer.text, "refused": answer.refused,
            "citations": [{"number": passage.number, "chunk": passage.chunk.id} for passage in evidence_of(answer)],
            "invalid_citations": list(answer.invalid_citations),
            "evidence": [{"number": passage.number, "chunk": passage.chunk.id} for passage in answer.evidence],
            "failure": answer.failure.message if answer.failure else None}
