"""Answer questions from an index of documents, with the same graph as a run."""
from __future__ import annotations

import asyncio
import contextlib
import operator
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.constants import START
from pydantic import BaseModel, ConfigDict, Field

from ragbed.agents.checkpoint import check_mark, check_state, restore
from ragbed.agents.client import ModelClient
from ragbed.agents.graph import Event, State, answer_to_json, build_graph, recursion_limit
from ragbed.agents.journal import Journal, Model
from ragbed.agents.model_settings import Limits, ModelSettings
from ragbed.agents.models import open_model, open_reranker_deps
from ragbed.agents.relevance_judge import judge_notes
from ragbed.agents.search import Searcher, SearchStore
from ragbed.agents.session import Runtime, Session
from ragbed.agents.tools import StoredTools, make_by_guest, open_toolbox, searches_of
from ragbed.agents.types import Answer, failed_answer
from ragbed.documents.errors import SettingsError
from ragbed.documents.headers import passage_header
from ragbed.documents.types import Chunk, digest, replace_surrogates
from ragbed.retrieval.filters.filtered_collection import filter_collection
from ragbed.retrieval.filters.parser import Where, normalise_filter
from ragbed.retrieval.index import Index
from ragbed.retrieval.pool import RetrieverChoice, WholeSearch
from ragbed.retrieval.retrievers import RetrieverSettings
from ragbed.retrieval.types import RerankerDeps
from ragbed.strategies.catalogue import SEARCH_ONLY
from ragbed.strategies.history import with_history
from ragbed.strategies.prompting import PROMPT_VARIANTS, with_prompts
from ragbed.strategies.reading import Language
from ragbed.strategies.settings.strategy_config import Strategy, common_tools, parse_strategy
from ragbed.strategies.types import FAMILIES, AnswerFormat, Exemplar, Failure, Framing, Layout, Rules, Task, Turn

_MAX_SEARCHES = 1_000  # maximum kept in memory
_MAX_FILTERED = 16  # assistants with another filter to keep
_LEFT = Failure("stopped", "the question was abandoned")
Options = tuple[tuple[str, str], ...]
Strategies = tuple[Strategy, Strategy, Strategy]  # reasoning, retrieval, history


class AssistantSettings(BaseModel):
    """Settings of an assistant. They have the same names as in a run's settings file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    index: Path
    model: str = "smollm2-135m"
    reasoning: str | dict[str, Any] = "chain_of_thought"
    retrieval: str | dict[str, Any] = "once"
    history: str | dict[str, Any] = "rewrite"
    rules: Rules = "grounded"
    answer_format: AnswerFormat = "tags"
    framing: Framing = "delimited"
    headers: bool = Field(default=False, exclude_if=operator.not_)
    prompt_variant: int = Field(default=1, ge=1, le=PROMPT_VARIANTS, exclude_if=lambda number: number == 1)
    language: Language = Field(default="english", exclude_if=lambda language: language == "english")
    layout: Layout = "documents_first"
    brief: bool = False
    exemplars: tuple[Exemplar, ...] = ()
    prompts: dict[str, str] = Field(default={}, exclude_if=operator.not_)  # texts that replace prompts, by name
    k: int = Field(default=5, ge=1)
    retriever: RetrieverSettings = Field("dense", validate_default=True)
    where: Where = ()
    limits: Limits = Limits()
    calls: ModelSettings = ModelSettings()


class Assistant:
    """Answers questions from an index with citations, or refuses.

        async with Assistant.open(AssistantSettings(index=Path("idx"))) as assistant:
            answer = await assistant.ask("Who founded the company?")

    With a checkpointer (see `agents.checkpoint.open_checkpointer`), each step of `ask(question, thread="mine")` is
    saved, and `resume("mine")` continues the question, even in another process. `agents.graph` shows how to stop before
    or after a step.

    A thread is a conversation: questions asked one after the other with the same thread have the earlier turns as their
    history. An assistant with other settings may answer the next question.

    Attributes:
        made: settings and identities of model and index, which are stored with each question.
    """

    def __init__(self, settings: AssistantSettings, index: Index, client: ModelClient,
                 checkpointer: Any = None, deps: RerankerDeps | None = None, strategies: Strategies | None = None,
                 searcher: Searcher[str] | None = None, tools: StoredTools | None = None) -> None:
        self.settings, self.index, self.client, self.deps = settings, index, client, deps or RerankerDeps()
        self.model = Model(client, Journal(None), settings.limits.max_tokens)
        how = RetrieverChoice(settings.retriever, settings.where, lambda: self.deps)
        self.searcher = searcher or Searcher(WholeSearch(index, how), settings.k, most=_MAX_SEARCHES)
        self.strategies = reasoning, retrieval, history = strategies or resolve_strategies(settings)
        self.tools = tools
        self._corpus = tools and make_by_guest("index", index, index.manifest.settings.formats[0], settings.where)
        calls, own = settings.calls.of(settings.model), settings.calls.config(settings.model)
        body = {"extra_body": own.extra_body} if own.extra_body else {}
        locations = {"index", "model", "calls"}  # may change while a question is saved; their contents may not
        self.made = {**settings.model_dump(mode="json", exclude=locations), "reasoning": reasoning.spec,
                     "retrieval": retrieval.spec, "history": history.spec, "temperature": calls.temperature,
                     "reasoning_effort": calls.reasoning_effort, "model": client.identity, **body,
                     "index": index.content, **({"tools": tools.content} if tools else {})}
        self._reasoning = with_prompts(with_history(history.function, reasoning.function), settings.prompts)
        self._retrieval = retrieval.function
        self._live: dict[str, Session | None] = {}
        self._filtered: dict[tuple[str, ...], Assistant] = {}
        self.graph = build_graph(self, checkpointer, self.made)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, settings: AssistantSettings, checkpointer: Any = None) -> AsyncIterator[Assistant]:
        """Open an assistant, and close it at the end. A LangGraph `checkpointer` saves its questions.

        Raises UserError if its index, model or strategies cannot be opened.
        """
        # in threads, because a server's event loop must not wait for files
        strategies = await asyncio.to_thread(resolve_strategies, settings)
        index = await asyncio.to_thread(Index.open, settings.index)
        async with (open_model(settings.model, settings.calls) as client,
                    open_reranker_deps(settings.retriever, settings.calls, settings.limits) as deps,
                    open_tools(strategies) as tools):
            assistant = cls(settings, index, client, checkpointer, deps, strategies, tools=tools)
            try:
                yield assistant
            finally:
                assistant.searcher.close()

    def judge_notes(self) -> list[str]:
        """Describe each relevance judge in a line, with the number of passages that it graded and its usage."""
        return judge_notes(self.deps)

    async def ask(self, question: str, options: Options = (), thread: str | None = None) -> Answer:
        """Answer the next question of a thread, or continue an interrupted one. Raises the same errors as `play`."""
        return await self.resume(self.begin(question, options, thread))

    async def stream(self, question: str, options: Options = (), thread: str | None = None) -> AsyncGenerator[Event]:
        """Yield the events that `agents.graph` lists, including tokens. The last one is `answer`."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        playing = asyncio.ensure_future(self.play(self.begin(question, options, thread), events.put_nowait))
        playing.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield {"event": "answer", **answer_to_json(await playing)}
        finally:
            playing.cancel()
            await asyncio.wait({playing})

    async def resume(self, saved: State | str) -> Answer:
        """Continue a question from its saved state, or the last question of a thread.

        Raises:
            SettingsError: there is no such thread.
            RecipeMismatch: the question was started with other settings, index, model, strategies or prompts.
        """
        state = await self.saved(saved) if isinstance(saved, str) else saved
        if state is None:
            raise SettingsError(f"no thread {saved!r} in the checkpointer; check its name")
        return await self.play(state)

    async def saved(self, thread: str) -> State | None:
        """Return the last saved state of a thread; None if there is none. Raises SettingsError if it is invalid."""
        saver = self.graph.checkpointer
        if not isinstance(saver, BaseCheckpointSaver):
            return None
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        snapshot = await self.graph.aget_state(config)
        values = snapshot.values
        if START in snapshot.next and (kept := await saver.aget_tuple(config)):  # stopped before its first step
            values = kept.checkpoint["channel_values"][START]
        if values:
            check_state(values, f"the thread {thread!r}")
        return cast(State, values) if values else None

    async def turns(self, thread: str) -> tuple[Turn, ...]:
        """Return the answered turns of a thread in order."""
        kept = await self.saved(thread)
        return tuple(Turn(**turn) for turn in _turns(kept)) if kept else ()

    def begin(self, question: str, options: Options = (), thread: str | None = None,
              turns: Sequence[Turn] | None = None) -> State:
        """Return the state of a new question. Without a checkpointer, `turns` are its earlier turns."""
        if not question.strip():
            raise SettingsError("the question is empty")
        asked = _remove_unstorable(question)
        return {"id": thread or uuid4().hex, "question": asked, "asked": asked,
                "options": [[*map(_remove_unstorable, option)] for option in options],
                "turns": [{"question": _remove_unstorable(turn.question), "answer": _remove_unstorable(turn.answer)}
                          for turn in turns or ()], "results": [], "made": self.made}

    async def play(self, state: State, emit: Callable[[Event], None] | None = None) -> Answer:
        """Play a question from its state, and return its answer. Call `emit` with each event.

        Raises:
            SettingsError: another question of the thread has not ended, or is being answered.
            RecipeMismatch: as in `resume`.
        """
        if state["id"] in self._live:
            raise SettingsError(f"the thread {state['id']!r} is already answering a question; wait until it is done")
        self._live[state["id"]] = None  # before the first await, so that no other task starts this question
        try:
            given, goes_on = await self._prepare_state(state)
            play = self.session(given)
            self._live[state["id"]] = play
            play.streaming, play.emit = emit is not None, emit
            config: RunnableConfig = {**recursion_limit(self.settings.limits),
                                      "configurable": {"thread_id": state["id"]}}
            durable: dict[str, Any] = {"durability": "sync"} if self.graph.checkpointer else {}
            await self.graph.ainvoke(None if goes_on else given, config, output_keys="answer", **durable)
        finally:
            del self._live[state["id"]]
        return play.answer()

    def with_filter(self, where: tuple[str, ...]) -> Assistant:
        """Return an assistant that searches only chunks that also meet these conditions, with the same threads. The
        last few are kept, because their retrievers are open. Raises SettingsError if a condition names an unknown
        field."""
        if where not in self._filtered:
            filter_collection(self.index, where)
            settings = self.settings.model_copy(update={"where": normalise_filter([*self.settings.where, *where])})
            made = Assistant(settings, self.index, self.client, self.graph.checkpointer, self.deps, self.strategies,
                             tools=self.tools)
            self._filtered = {**dict(list(self._filtered.items())[1 - _MAX_FILTERED:]), where: made}
        return self._filtered[where]

    def with_checkpointer(self, checkpointer: Any) -> Assistant:
        """Return an assistant with this checkpointer and the same model, index and strategies."""
        return Assistant(self.settings, self.index, self.client, checkpointer, self.deps, self.strategies,
                         self.searcher, self.tools)

    async def abandon(self, thread: str) -> None:
        """End a thread's unfinished question, so that the next can be asked. Raises SettingsError if it is being
        answered."""
        if thread in self._live:
            raise SettingsError(f"the thread {thread!r} is already answering a question; wait until it is done")
        kept = await self.saved(thread)
        if kept is None or kept.get("answer"):
            return
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        # Pass the whole state, because the graph does not have that of a question stopped before its first step.
        whole = {**kept, "asked": kept["question"], "answer": answer_to_json(failed_answer(_LEFT))}
        await self.graph.aupdate_state(config, whole, as_node="finish")

    def live_session(self, id: str) -> Session | None:
        """Return the session of this question or thread, if it is being answered now; otherwise None."""
        return self._live.get(id)

    def session(self, state: State) -> Session:
        """Return the live session of a state, or restore it from its results. Raises RecipeMismatch like `resume`."""
        live = self._live.get(state.get("id", ""))
        if live is not None:
            return live
        if state.get("made", self.made) != self.made:
            check_mark(state["made"], self.made)
        question = state["question"]
        task = Task(id=digest(question), question=question, retrieval=self._retrieval, rules=self.settings.rules,
                    options=tuple((label, text) for label, text in state.get("options", ())),
                    turns=tuple(Turn(**turn) for turn in state.get("turns", ())),
                    answer_format=self.settings.answer_format, framing=self.settings.framing,
                    prompt_variant=self.settings.prompt_variant, language=self.settings.language,
                    layout=self.settings.layout, brief=self.settings.brief,
                    exemplars=self.settings.exemplars, tools=self.tools.specs if self.tools else ())
        runtime = Runtime(self.searcher, self.model.ask, self.model.key, self.index.chunk, self.settings.limits)
        if self.settings.headers:
            runtime = replace(runtime, header=lambda chunk: passage_header(self.index.document(chunk.document), chunk))
        if self.tools and (corpus := self._corpus):
            runtime = replace(runtime, tools=self.tools.over(corpus, "", {"search": self.searcher}).call,
                              span=lambda document, *place: Chunk.of(corpus.document(document), *place))
        play = Session(task, self._reasoning, runtime)
        if results := state.get("results"):
            restore(play, results)
        play.streaming = True  # callers that run the graph themselves, such as LangGraph's server, may listen
        return play

    async def _prepare_state(self, state: State) -> tuple[State, bool]:
        """Return the state to play, and whether the checkpointer's thread already holds this question, so that the
        graph continues it. Raises SettingsError if the thread holds another question that has not ended."""
        kept = await self.saved(state["id"])
        if kept is None:
            return state, False
        if kept.get("answer") and not state.get("answer"):
            return {**state, "turns": _turns(kept), "answer": {}}, False
        if (kept["question"], kept.get("options")) != (state["question"], state.get("options")):
            raise SettingsError(f"the thread {state['id']!r} has an unfinished question; resume it before you ask "
                                "another, or name a new thread")
        return kept, bool(kept["results"] or kept.get("answer"))


def _turns(state: State) -> list[dict[str, str]]:
    """Return the earlier turns of a question, and the question itself if it has ended."""
    answer = state.get("answer")
    last = [{"question": state["question"], "answer": answer["text"]}] if answer else []
    return [*state.get("turns", ()), *last]


def _remove_unstorable(text: str) -> str:
    """Drop NUL characters, which PostgreSQL cannot store, and lone surrogates, which no store can."""
    return replace_surrogates(text.replace("\0", ""))


@contextlib.asynccontextmanager
async def open_tools(strategies: Strategies) -> AsyncIterator[StoredTools | None]:
    """Open the tools of an assistant's strategies, and close them at the end; None if the strategies have none. Raises
    SettingsError if a tool cannot be used."""
    tools = common_tools(strategies)
    if named := searches_of(tools):
        raise SettingsError(f"tools: {min(named)}: only a run has several retrievers; use search")
    async with open_toolbox(tools) if tools else contextlib.nullcontext() as toolbox:
        yield StoredTools(tools, toolbox, SearchStore()) if toolbox else None


def resolve_strategies(settings: AssistantSettings) -> Strategies:
    """Return the strategies of the settings. Raises SettingsError if one is not valid."""
    reasoning, retrieval, history = (parse_strategy(family, getattr(settings, family)) for family in FAMILIES)
    if reasoning.kind == SEARCH_ONLY:
        raise SettingsError("reasoning: search_only gives no answer; use `ragbed search`")
    if retrieval.kind != "once" and not reasoning.gathers:
        raise SettingsError(f"retrieval: {retrieval.label} has no effect, because {reasoning.label} searches only with "
                            "its tools; remove it")
    return reasoning, retrieval, history
