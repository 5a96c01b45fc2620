"""Assistant: the measured graph, served. Asks one question at a time of an index of documents."""
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict, Field

from agents.client import ModelClient
from agents.graph import State, answer_to_json, build_graph, recursion_limit
from agents.journal import Journal
from agents.model import Model
from agents.models import open_model
from agents.playback import Means, Playback
from agents.relevance import on_judges, open_aids
from agents.search import Searcher
from agents.settings import Limits, ModelSettings
from agents.types import Answer
from documents.errors import SettingsError
from documents.types import digest
from retrieval.filters.terms import Where
from retrieval.index import Index
from retrieval.retrievers import RetrieverSettings
from retrieval.scoped import How, Whole
from retrieval.types import Aids
from strategies.catalogue import SEARCH_ONLY
from strategies.choosing import reasoning, retrieval
from strategies.prompting import prompts_hash
from strategies.types import AnswerFormat, Framing, Rules, Task

Options = tuple[tuple[str, str], ...]


class AssistantSettings(BaseModel):
    """What an assistant answers with; the same names as in the settings of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    index: Path
    model: str = "smollm2-135m"
    reasoning: str | dict[str, Any] = "chain_of_thought"
    retrieval: str | dict[str, Any] = "once"
    rules: Rules = "grounded"
    answer_format: AnswerFormat = "tags"
    framing: Framing = "marked"
    k: int = Field(default=5, ge=1)
    retriever: RetrieverSettings = Field("dense", validate_default=True)
    where: Where = ()
    limits: Limits = Limits()
    calls: ModelSettings = ModelSettings()


class Assistant:
    """Answers questions from an index, cited or refused.

        async with Assistant.open(AssistantSettings(index=Path("idx"))) as assistant:
            answer = await assistant.ask("Who founded the company?")
    """

    def __init__(self, settings: AssistantSettings, index: Index, client: ModelClient,
                 checkpointer: Any = None, aids: Aids | None = None) -> None:
        self.settings = settings
        self.index = index
        self.aids = aids or Aids()
        self.model = Model(client, Journal(None), settings.limits.max_tokens)
        how = How(settings.retriever, settings.where, lambda: self.aids)
        self.searcher = Searcher(Whole(index, how), settings.k)
        self._reasoning = reasoning(settings.reasoning)
        self._retrieval = retrieval(settings.retrieval)
        self._live: dict[str, Playback] = {}
        self.graph = build_graph(self, checkpointer)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, settings: AssistantSettings, checkpointer: Any = None) -> AsyncIterator[Assistant]:
        """An assistant whose model and index are closed at the end.

        Args:
            checkpointer: a LangGraph checkpointer, for states that outlive the process.

        Raises:
            UserError: the index or model cannot be opened, or a strategy is unknown.
        """
        if settings.reasoning == SEARCH_ONLY:
            raise SettingsError("reasoning: search_only gives no answer; `ragbed search` shows what is found")
        # Files are read here, once, and in a thread: a server's event loop must not wait for them.
        index = await asyncio.to_thread(Index.open, settings.index)
        await asyncio.to_thread(prompts_hash)
        async with (open_model(settings.model, settings.calls) as client,
                    open_aids(settings.retriever, settings.calls, settings.limits) as aids):
            assistant = cls(settings, index, client, checkpointer, aids)
            try:
                yield assistant
            finally:
                assistant.searcher.close()

    def on_judges(self) -> list[str]:
        """A line for each model that judged what was found: what it graded so far, and what it used."""
        return on_judges(self.aids)

    async def ask(self, question: str, options: Options = ()) -> Answer:
        """The answer to one question; its outcome says how it ended."""
        *_, answer = [event async for event in self._play(question, options)]
        assert isinstance(answer, Answer)
        return answer

    async def stream(self, question: str, options: Options = ()) -> AsyncGenerator[dict[str, Any]]:
        """Events `search` and `reply` as they happen, and last `answer`."""
        async with contextlib.aclosing(self._play(question, options)) as events:
            async for event in events:
                yield {"event": "answer", **answer_to_json(event)} if isinstance(event, Answer) else event

    def playback(self, state: State) -> Playback:
        """The live playback of a state, or one restored from its results."""
        live = self._live.get(state.get("id", ""))
        if live is not None:
            return live
        play = self._begin(state["question"], tuple((label, text) for label, text in state.get("options", ())))
        play.restore(state.get("results", ()))
        return play

    async def _play(self, question: str, options: Options) -> AsyncGenerator[dict[str, Any] | Answer]:
        if not question.strip():
            raise SettingsError("the question is empty")
        id = uuid4().hex  # a checkpointer's store may outlive this process
        play = self._live[id] = self._begin(question, options)
        state: State = {"id": id, "question": question, "options": [list(option) for option in options]}
        config: RunnableConfig = {**recursion_limit(self.settings.limits), "configurable": {"thread_id": id}}
        try:
            async for event in self.graph.astream(state, config, stream_mode="custom"):
                yield event
        finally:
            del self._live[id]
        yield play.answer()

    def _begin(self, question: str, options: Options) -> Playback:
        task = Task(id=digest(question), question=question, retrieval=self._retrieval, rules=self.settings.rules,
                    options=options, answer_format=self.settings.answer_format, framing=self.settings.framing)
        means = Means(self.searcher, self.model.ask, self.model.key, self.index.chunk, self.settings.limits)
        return Playback(task, self._reasoning, means)
