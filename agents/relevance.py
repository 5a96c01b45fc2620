"""Relevance judges: models that grade passages for a reranker, which waits in a thread of its own."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ragbed.agents.journal import Model
from ragbed.agents.limits import run_bounded
from ragbed.agents.settings import Limits
from ragbed.agents.types import Cost, error_from_failure
from ragbed.documents.errors import CallError
from ragbed.retrieval.rerankers.reranker import JudgeReranker, RerankerDeps, template
from ragbed.strategies.parts.reading import LOWEST, Grade, read_grade
from ragbed.strategies.prompting import fill_untrusted_text
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Failure, Generate, Message, Reply, Usage

_AT_ONCE = 16  # passages that are asked about; more would only queue before the calls of questions
Pair = tuple[str, str]
Value = TypeVar("Value")

_LOOKS = 0.5  # seconds between looks at whether the event loop is still there: one that has gone never answers


@dataclass(slots=True)
class JudgeTally:
    """Passages, tokens and money that judging took."""

    graded: int = 0  # those that got the lowest grade because both replies about them were unreadable included
    unreadable: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Cost = field(default_factory=Cost)

    def said(self, model: str) -> str:
        """Describe it in one line."""
        graded = f"{self.graded:,} passages graded" if not self.unreadable else \
            f"{self.unreadable:,} of {self.graded:,} passages could not be graded (a reranker counts them as {LOWEST})"
        price = f", ${self.usage.price:.4f}" if self.usage.price else ""
        return (f"relevance judge {model}: {graded}; {self.usage.calls:,} calls, "
                f"{self.usage.prompt_tokens + self.usage.completion_tokens:,} tokens{price}")


class RelevanceJudge:
    """Grades each passage by one call, and asks once more where the reply cannot be read. A passage whose second reply
    cannot be read either has none, to a reranker the lowest, and is counted. A call that fails is no grade: no further
    passage is asked about, and the failure is raised. The model's journal keeps the calls; the loop runs them, since
    the judge is used from other threads, with so many seconds for a passage and both calls."""

    def __init__(self, model: Model, settings: JudgeReranker, loop: asyncio.AbstractEventLoop,
                 seconds: float = 900.0) -> None:
        self.model, self.tally = model, JudgeTally()
        self._settings, self._loop, self._seconds = settings, loop, seconds

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return the grade of each text, from 0 to 3. Blocks, and must not be called on the loop's own thread. Raises
        CallError, ModelError: a call failed for good, or every one would."""
        pairs = [[(query, text) for text in own] for query, own in zip(queries, texts, strict=True)]
        grades = self._wait(self.grades(list(dict.fromkeys(pair for own in pairs for pair in own))))
        return [[float(grades[pair] or LOWEST) for pair in own] for own in pairs]

    def _wait(self, work: Coroutine[Any, Any, Value]) -> Value:
        future: Future[Value] = asyncio.run_coroutine_threadsafe(work, self._loop)
        while True:
            try:
                return future.result(_LOOKS)
            except TimeoutError:
                if not future.done() and not self._loop.is_running():
                    raise CallError("the event loop that asks the judge has ended", "cancelled", 0) from None

    async def grades(self, pairs: Sequence[Pair]) -> dict[Pair, Grade | None]:
        """Return the grade of each pair of query and text, None where neither reply can be read; raises as `scores`."""
        grades: dict[Pair, Grade | None] = {}
        failed: dict[Pair, CallError] = {}

        def until_one_fails() -> Iterator[Pair]:
            for pair in pairs:
                if failed:
                    return
                yield pair

        async def grade(pair: Pair) -> None:
            try:
                grades[pair] = await self._grade(*pair)
            except CallError as error:  # those under way may end, and are kept by the journal
                failed[pair] = error

        await run_bounded(until_one_fails(), _AT_ONCE, grade)
        if failed:
            raise failed[min(failed, key=pairs.index)]
        return grades

    async def _grade(self, query: str, passage: str) -> Grade | None:
        # All prompts share the instructions, so they are a part of their own.
        text = template("relevance")
        first = text.index("<query>")
        asked = fill_untrusted_text(text[first:], "relevance", {"query": query, "passage": passage})
        messages: tuple[Message, ...] = (Message("user", (text[:first], asked)),)
        deadline = time.monotonic() + self._seconds
        self.tally.graded += 1
        for purpose in ("relevance", "relevance_repair"):
            reply = await self._ask(Generate(messages, purpose, max_tokens=self._settings.max_tokens), deadline)
            grade = None if reply.finish_reason == "length" else read_grade(strip_thinking(reply.text))
            if grade is not None:
                return grade
            messages += (Message("assistant", (reply.text or "(empty)",)),
                         Message("user", (template("relevance_repair"),)))
        self.tally.unreadable += 1
        return None

    async def _ask(self, action: Generate, deadline: float) -> Reply:
        asked = await self.model.ask(action, deadline)
        self.tally.cost += asked.cost
        if isinstance(asked.outcome, Failure):
            self.tally.usage += Usage(calls=1)
            raise error_from_failure(asked.outcome, asked.attempts)
        self.tally.usage += asked.outcome.usage
        return asked.outcome


class RelevanceJudges:
    """Makes one judge of each settings, however many retrievers it serves, of models by their names, with the journal
    that keeps their calls; created on the loop that runs the calls."""

    def __init__(self, model: Callable[[str], Model], limits: Limits | None = None) -> None:
        self.opened: dict[JudgeReranker, RelevanceJudge] = {}
        self._model, self._limits, self._loop = model, limits or Limits(), asyncio.get_running_loop()

    def __call__(self, settings: JudgeReranker) -> RelevanceJudge:
        if settings not in self.opened:
            model = self._model(settings.model)
            self.opened[settings] = RelevanceJudge(model, settings, self._loop, self._limits.seconds)
        return self.opened[settings]


def judge_tallies(deps: RerankerDeps) -> dict[JudgeReranker, JudgeTally]:
    """Return what judges graded so far for the retrievers that were opened with these deps."""
    opened = deps.judge.opened if isinstance(deps.judge, RelevanceJudges) else {}
    return {settings: judge.tally for settings, judge in opened.items() if judge.tally.graded}


def judge_notes(deps: RerankerDeps) -> list[str]:
    """Return a line for each judge that graded passages: how many, how many it could not grade, and what it used."""
    return [tally.said(settings.model) for settings, tally in judge_tallies(deps).items()]
