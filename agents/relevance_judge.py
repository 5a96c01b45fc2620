"""Relevance judges: models that grade passages for a reranker, which waits in another thread."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ragbed.agents.journal import Model
from ragbed.agents.limits import run_bounded
from ragbed.agents.model_settings import Limits
from ragbed.agents.types import Cost, error_from_failure
from ragbed.documents.errors import CallError
from ragbed.retrieval.rerankers.reranker import JudgeReranker, template
from ragbed.retrieval.types import RerankerDeps
from ragbed.strategies.parts.reading import LOWEST, Grade, read_grade
from ragbed.strategies.prompting import fill_untrusted_text
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Failure, Generate, Message, Reply, Usage

_CONCURRENT = 16  # passages to grade at once; more would delay the calls that answer questions
Pair = tuple[str, str]
Value = TypeVar("Value")

_POLL_SECONDS = 0.5  # seconds between checks whether the event loop is still running


@dataclass(slots=True)
class JudgeTally:
    """Number of passages that a judge has graded, with its usage and cost."""

    graded: int = 0  # including passages with unreadable replies
    unreadable: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Cost = field(default_factory=Cost)

    def describe(self, model: str) -> str:
        """Describe the tally in one line."""
        graded = f"{self.graded:,} passages graded" if not self.unreadable else \
            f"{self.unreadable:,} of {self.graded:,} passages could not be graded (a reranker counts them as {LOWEST})"
        price = f", ${self.usage.price:.4f}" if self.usage.price else ""
        return (f"relevance judge {model}: {graded}; {self.usage.calls:,} calls, "
                f"{self.usage.prompt_tokens + self.usage.completion_tokens:,} tokens{price}")


class RelevanceJudge:
    """Grades each passage with one call, or with two if the first reply is unreadable.

    If both are unreadable, it counts as ungraded, and a reranker gives it the lowest grade. If a call fails, grading
    stops and the error is raised. Rerankers use the judge from other threads, and its calls run on `loop`. Each passage
    has a time limit of `seconds`."""

    def __init__(self, model: Model, settings: JudgeReranker, loop: asyncio.AbstractEventLoop,
                 seconds: float = 900.0) -> None:
        self.model, self.tally = model, JudgeTally()
        self._settings, self._loop, self._seconds = settings, loop, seconds

    def scores(self, queries: Sequence[str], texts: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return the grade of each text, from 0 to 3. Blocks, so do not call it on the loop's thread. Raises CallError
        or ModelError if a call fails."""
        pairs = [[(query, text) for text in own] for query, own in zip(queries, texts, strict=True)]
        grades = self._wait(self.grades(list(dict.fromkeys(pair for own in pairs for pair in own))))
        return [[float(grades[pair] or LOWEST) for pair in own] for own in pairs]

    def _wait(self, work: Coroutine[Any, Any, Value]) -> Value:
        future: Future[Value] = asyncio.run_coroutine_threadsafe(work, self._loop)
        while True:
            try:
                return future.result(_POLL_SECONDS)
            except TimeoutError:
                if not future.done() and not self._loop.is_running():
                    raise CallError("the judge's event loop has stopped", "cancelled", 0) from None

    async def grades(self, pairs: Sequence[Pair]) -> dict[Pair, Grade | None]:
        """Return the grade of each pair of query and text; None if unreadable. Raises as `scores` does."""
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
            except CallError as error:  # let running calls finish, so that the journal stores them
                failed[pair] = error

        await run_bounded(until_one_fails(), _CONCURRENT, grade)
        if failed:
            raise failed[min(failed, key=pairs.index)]
        return grades

    async def _grade(self, query: str, passage: str) -> Grade | None:
        # The instructions are a separate part, so that the journal stores them once.
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
    """Creates relevance judges, one for equal settings. Create this object on the event loop that runs the calls."""

    def __init__(self, model: Callable[[str], Model], limits: Limits | None = None) -> None:
        self.opened: dict[JudgeReranker, RelevanceJudge] = {}
        self._model, self._limits, self._loop = model, limits or Limits(), asyncio.get_running_loop()

    def __call__(self, settings: JudgeReranker) -> RelevanceJudge:
        if settings not in self.opened:
            model = self._model(settings.model)
            self.opened[settings] = RelevanceJudge(model, settings, self._loop, self._limits.seconds)
        return self.opened[settings]


def judge_tallies(deps: RerankerDeps) -> dict[JudgeReranker, JudgeTally]:
    """Return the tallies of judges that have graded passages."""
    opened = deps.judge.opened if isinstance(deps.judge, RelevanceJudges) else {}
    return {settings: judge.tally for settings, judge in opened.items() if judge.tally.graded}


def judge_notes(deps: RerankerDeps) -> list[str]:
    """Return a line for each judge that has graded passages."""
    return [tally.describe(settings.model) for settings, tally in judge_tallies(deps).items()]
