"""The LangGraph state machine that plays a recipe.

Its nodes are `search`, `call_tools`, `generate` and `finish`. The recipe's next request selects the next node. The
state is JSON: the question and the results so far, each with the hashes of its actions. While a question is live, its
recipe stays in memory. To continue a saved question, its recipe is replayed with the saved results.

Each node is a step. With a checkpointer, the graph can be interrupted before or after any step, and continued later,
even in another process. To inspect each step before the next:

    config = {"configurable": {"thread_id": "mine"}, "recursion_limit": 100}
    await graph.ainvoke({"question": "Who founded it?"}, config, interrupt_after=["search", "generate"])
    found = (await graph.aget_state(config)).values["results"]  # searches and replies so far
    found[0]["found"] = [["the id of a better chunk"]]
    await graph.aupdate_state(config, {"results": found})  # optional: answer over other passages
    await graph.ainvoke(None, config)  # the remaining steps
    await graph.ainvoke({"question": "When?"}, config)  # the thread's next question, which knows the turns before

Streaming yields events as plain JSON:

`searching`  a search starts: its `query`
`search`     a search ended: evidence numbers in `found`, or its `failure`
`calling`    a tool is called: its name `tool`, and its `arguments`
`tool`       the call of a tool ended: evidence numbers in `found`, the number of `characters`, or its `failure`
`asking`     a call starts: its number `call`, its `purpose`, the evidence numbers it has `shown`, and, if its reply is
             the final answer, the form in `answers`
`token`      a piece of its reply
`reasoning`  a piece of the model's reasoning, if the server sends it
`retry`      the call is sent again for the reason `why`, and earlier pieces are void
`reply`      the call ended: its whole `text`, or its `failure`
`decision`   the strategy made a decision: `what` and `why`
`answer`     the end

Events of concurrent calls are interleaved. Each event has the number of its `call`."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, TypeVar, get_args

from typing_extensions import TypedDict  # pydantic needs this TypedDict for the schemas of LangGraph's server

from ragbed.agents.journal import Model
from ragbed.agents.limits import run_bounded
from ragbed.agents.model_settings import Limits
from ragbed.agents.search import SearchFunction
from ragbed.agents.session import Node, Runtime, Session, cannot_restore, evidence_of
from ragbed.agents.types import Answer, CallOutcome, DecisionStep, SearchStep, ToolStep, failure_from_error
from ragbed.documents.errors import CallError, SettingsError
from ragbed.strategies.types import Failure, Generate, Reasoning, Reply, Task

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StreamWriter

    CompiledGraph = CompiledStateGraph[Any, None, Any, Any]
    Perform = Callable[[Session, StreamWriter], Awaitable[dict[str, Any]]]  # performs a session's pending actions

Event = dict[str, Any]


class EventEmitter:
    """Emits the events of one model call."""

    def __init__(self, writer: StreamWriter, number: int, call: Generate) -> None:
        self.call, self._writer = call, writer
        self._of = {"call": number, "purpose": call.purpose}
        self._emitted: set[str] = set()
        writer({"event": "asking", **self._of, "shown": list(call.shown), "answers": call.answers})

    def __call__(self, kind: str, text: str) -> None:
        if kind == "retry":
            self._emitted.clear()
        self._emitted.add(kind)
        self._writer({"event": kind, **self._of, "why" if kind == "retry" else "text": text})

    async def outcome(self, asked: Awaitable[CallOutcome]) -> CallOutcome:
        """Await the call's outcome, and emit it. If the reply was not streamed, emit it as one piece first."""
        one = await asked
        reply = one.outcome if isinstance(one.outcome, Reply) else Reply("")
        for kind, text in (("reasoning", reply.reasoning), ("token", reply.text)):
            if text and kind not in self._emitted:
                self(kind, text)
        self._writer({"event": "reply", **self._of, "shown": list(self.call.shown), "text": reply.text,
                      "completion_tokens": reply.usage.completion_tokens,
                      "failure": one.outcome.message if isinstance(one.outcome, Failure) else None})
        return one


def emit_steps(play: Session, writer: StreamWriter) -> None:
    """Emit the searches, tool calls and decisions that have not been emitted yet."""
    for step in play.trace[play.reported:] if play.streaming else ():
        if isinstance(step, DecisionStep):
            writer({"event": "decision", "what": step.what, "why": step.why})
        elif isinstance(step, SearchStep):
            writer({"event": "search", "query": step.query, "found": list(step.found),
                    "failure": step.failure.message if step.failure else None})
        elif isinstance(step, ToolStep):
            contents = {passage.number: passage.chunk.content for passage in play.passages}
            writer({"event": "tool", "tool": step.tool, "found": list(step.found), "characters": sum(
                len(part if isinstance(part, str) else contents[part]) for part in step.parts),
                    "failure": step.failure.message if step.failure else None})
    play.reported = len(play.trace)


Item = TypeVar("Item")
Result = TypeVar("Result")


def append_results(results: list[dict[str, Any]], more: Any) -> list[dict[str, Any]]:
    """Append the result of a step. A list, such as one that a person edited, replaces all results."""
    return more if isinstance(more, list) else [*results, more]


class State(TypedDict, total=False):
    """State of the graph. Input is `question`, and optionally `id`, `options` and, without a checkpointer, `turns`.

    `made` records the settings that the question was started with; see `agents.checkpoint.check_mark`. `results` and
    `answer` belong to the question `asked`."""

    id: str
    made: Mapping[str, Any]
    question: str
    asked: str
    options: list[list[str]]
    turns: list[dict[str, str]]  # mappings with `question` and `answer`
    results: Annotated[list[dict[str, Any]], append_results]
    answer: dict[str, Any]


class SessionStore(Protocol):
    """Finds the session of a state: a live one, or one restored from the state's results."""

    def session(self, state: State) -> Session: ...


def next_turn(state: State) -> State:
    """Return the update that starts a thread's next question, with the last one among its `turns`; empty if the input
    continues the last one. Raises SettingsError if there is no question."""
    asked, answer, question = state.get("asked"), state.get("answer"), state.get("question")
    if not isinstance(question, str) or not question.strip():
        raise SettingsError("there is no question; the input of the graph is {'question': '...'}")
    if not answer and (asked == question or (asked is None and state.get("results"))):
        return {}
    last = [{"question": asked, "answer": answer["text"] if answer else ""}] if asked else []
    return {"asked": question, "turns": [*state.get("turns", ()), *last], "results": [], "answer": {}}


def build_graph(player: SessionStore, checkpointer: Any = None, made: Mapping[str, Any] | None = None,
                schema: type[State] = State, begin: Callable[[Any], State] = next_turn,
                reply: Callable[[Answer], Mapping[str, Any]] = lambda answer: {}) -> CompiledGraph:
    """Compile the graph. `player` provides the sessions, which have strategy, model and retriever.

    Args:
        checkpointer: LangGraph checkpointer that saves the state after each step.
        made: stored with each question that is started.
        schema: the state, with further fields that `begin` reads from the input and `reply` adds to an answer.
        reply: returns the further fields for an answer.
    """
    from langgraph.graph import END, START, StateGraph  # takes 0.4 s, and direct play does not need it

    async def start(state: Any) -> Any:
        started = begin(state)
        return {**started, "made": made} if started and made else started

    def node(perform: Perform) -> Any:
        async def step(state: State, writer: StreamWriter) -> dict[str, Any]:
            play = player.session(state)
            emit = play.emit or writer
            entry = await perform(play, emit)
            emit_steps(play, emit)
            return {"results": entry}

        return step

    async def finish(state: State, writer: StreamWriter) -> dict[str, Any]:
        play = player.session(state)
        emit_steps(play, play.emit or writer)
        answer = play.answer()
        return {"answer": answer_to_json(answer), "asked": state["question"], **reply(answer)}

    async def next_node(state: State) -> Node:  # LangGraph would run a plain function in a thread
        return _next_node(player.session(state))

    async def first_node(state: Any) -> str:  # with the fields of `schema`, which `begin` reads
        return "begin" if begin(state) else await next_node(state)  # each step takes 0.3 ms of LangGraph's time

    graph: StateGraph[Any, None, Any, Any] = StateGraph(schema)
    graph.add_node("begin", start, input_schema=schema)
    for name, perform in _PERFORM.items():
        graph.add_node(name, node(perform))
    targets: dict[Hashable, str] = {name: name for name in get_args(Node)}
    graph.add_conditional_edges(START, first_node, {"begin": "begin", **targets})
    for name in ("begin", *_PERFORM):
        graph.add_conditional_edges(name, next_node, targets)
    graph.add_node("finish", finish).add_edge("finish", END)
    return graph.compile(checkpointer=checkpointer)


def _next_node(play: Session) -> Node:
    play.end_if_over_budget()
    return play.node


async def play_to_end(play: Session) -> None:
    """Play a question by the same steps as the graph, but without LangGraph, which would double the time of a replay or
    of searching. Nothing is streamed or saved."""
    while play.node != "finish" and not play.end_if_over_budget():
        await _PERFORM[play.node](play, lambda event: None)


def recursion_limit(limits: Limits) -> RunnableConfig:
    """Return LangGraph's limit on steps. It is above the question's own limits, so that those apply first."""
    return {"recursion_limit": limits.calls + limits.searches + limits.tools + 10}


async def _search(play: Session, writer: StreamWriter) -> dict[str, Any]:
    """Perform the pending searches; return the entry for the state."""
    for begun in play.pending_searches() if play.streaming else ():
        writer({"event": "searching", "query": begun.query})
    found = await _in_time(play, play.pending_searches(), play.runtime.search, "a search")
    return play.add_lost(found) if isinstance(found, Failure) else play.add_found(found)


async def _call_tools(play: Session, writer: StreamWriter) -> dict[str, Any]:
    """Make the pending tool calls together; return the entry for the state."""
    tools = play.runtime.tools
    for call in play.pending_tools() if play.streaming else ():
        writer({"event": "calling", "tool": call.tool, "arguments": dict(call.arguments)})
    if tools is None:
        return play.add_lost(Failure("strategy", "the strategy calls a tool, but no tool is open"))
    called = await _in_time(play, play.pending_tools(), tools, "a call of a tool")
    return play.add_lost(called) if isinstance(called, Failure) else play.add_called(called)


async def _in_time(play: Session, actions: Sequence[Item], perform: Callable[[Item], Awaitable[Result]],
                   what: str) -> list[Result] | Failure:
    """Perform actions within the question's deadline."""
    try:
        async with asyncio.timeout(play.deadline - time.monotonic()) as limit:
            return await _gather(actions, perform)
    except CallError as error:
        return failure_from_error(error)
    except TimeoutError:
        if not limit.expired():
            raise
        return Failure("timeout", f"the question's deadline passed during {what}")


async def _generate(play: Session, writer: StreamWriter) -> dict[str, Any]:
    """Make the pending calls, and emit their events if the question is streaming; return the entry for the state."""
    if not play.streaming:
        return play.add_replies(await _gather(
            play.pending_calls(), lambda call: play.runtime.ask(call, play.deadline, None)))
    emitters = [EventEmitter(writer, number, call)
                for number, call in enumerate(play.pending_calls(), play.call_count + 1)]
    return play.add_replies(await _gather(
        emitters, lambda emit: emit.outcome(play.runtime.ask(emit.call, play.deadline, emit))))


_PERFORM: Mapping[str, Perform] = {
    "search": _search, "call_tools": _call_tools, "generate": _generate}


async def _gather(items: Sequence[Item], perform: Callable[[Item], Awaitable[Result]]) -> list[Result]:
    if len(items) == 1:
        return [await perform(items[0])]
    results: dict[int, Result] = {}

    async def keep(place: int) -> None:
        results[place] = await perform(items[place])

    await run_bounded(range(len(items)), len(items), keep)
    return [results[place] for place in range(len(items))]


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """Return the answer as plain JSON, with chunks by id and without prompts."""
    return {"outcome": answer.outcome, "text": answer.text, "refused": answer.refused,
            "citations": [{"number": passage.number, "chunk": passage.chunk.id} for passage in evidence_of(answer)],
            "invalid_citations": list(answer.invalid_citations),
            "evidence": [{"number": passage.number, "chunk": passage.chunk.id} for passage in answer.evidence],
            "failure": answer.failure.message if answer.failure else None}


NO_NUMBERS: Mapping[str, int] = MappingProxyType({})


class QuestionPlayer:
    """Plays recipes until they answer. An interrupted question starts again from the beginning. All players share one
    compiled graph, because compiling takes longer than playing a question from the journal."""

    _live: ClassVar[dict[str, Session]] = {}
    _keys: ClassVar[Iterator[int]] = count()

    async def play(self, task: Task, recipe: Reasoning, runtime: Runtime, numbers: Mapping[str, int] = NO_NUMBERS,
                   direct: bool = False) -> Answer:
        """Play a task and return its answer.

        Args:
            numbers: fixed evidence numbers by chunk id, for follow-up questions.
            direct: play without LangGraph, which would take most of the time if no model is called: for replays,
                recorded models and pipelines.
        """
        key = str(next(self._keys))
        play = self._live[key] = Session(task, recipe, runtime, numbers)
        try:
            if direct:
                await play_to_end(play)
            else:
                await _player_graph().ainvoke({"id": key}, recursion_limit(runtime.limits), output_keys="id")
        finally:
            del self._live[key]
        return play.answer()


class _LiveState(TypedDict):
    id: str


@cache
def _player_graph() -> CompiledGraph:
    """Compile a smaller graph with the same nodes, for live sessions. Its state has only the session's key, and each
    node returns the next one, because conditional edges and further fields take time. Nothing is streamed, saved or
    edited."""
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Command

    graph = StateGraph[Any, None, Any, Any](_LiveState)
    targets: dict[Node, str] = {**{name: name for name in get_args(Node)}, "finish": END}

    def add(name: str, perform: Perform) -> None:
        async def step(state: _LiveState) -> Any:
            play = QuestionPlayer._live[state["id"]]
            if _next_node(play) == name:  # unless this is the start of a question without a search
                await perform(play, lambda event: None)
            return Command(goto=targets[_next_node(play)])

        graph.add_node(name, step, destinations=tuple(targets.values()))

    for name, perform in _PERFORM.items():
        add(name, perform)
    return graph.add_edge(START, "search").compile()


def runtime_of(search: SearchFunction, model: Model, limits: Limits, **others: Any) -> Runtime:
    """Return a runtime that sends all calls to one model. `others` are further fields of `Runtime`."""
    return Runtime(search=search, ask=model.ask, key=model.key, chunk=cannot_restore, limits=limits, **others)

