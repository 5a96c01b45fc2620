"""Count a run's calls, tokens and dollars, and stop the run at its budget."""
from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from uuid import uuid4

from ragbed.agents.client import ModelClient
from ragbed.agents.database import Database
from ragbed.agents.journal import Mode
from ragbed.agents.models import describe_model
from ragbed.agents.replies import OnEvent
from ragbed.documents.errors import BudgetSpent, CallError, SettingsError
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.spending import Budget, format_amount
from ragbed.strategies.token_estimates import estimate_prompt_tokens, estimate_tokens
from ragbed.strategies.types import Generate, Usage

if TYPE_CHECKING:
    from ragbed.experiments.running.plan import Plan

Item = TypeVar("Item")
_RECORDED = ("SELECT total(json_extract(reply, '$.usage.price')), total(json_extract(reply, '$.usage.prompt_tokens')),"
             " total(json_extract(reply, '$.usage.completion_tokens')) FROM calls WHERE reply IS NOT NULL")


class Spending:
    """Counts the spending of this session and earlier ones, and checks the budget. A replay (`mode`) has no budget.

    Attributes:
        under_way: calls in progress.
        calls: number of calls in this session, including failed ones; `retried` counts those with more than one
            request.
        dollars: dollars paid in this session for calls with a known price.
        unpriced: whether any call had an unknown price.
        estimated: number of calls in this session whose tokens are estimated, because the server reported none.
        stopped: whether the budget has stopped any work.
    """

    def __init__(self, budget: Budget, mode: Mode = "record") -> None:
        self.budget = budget if mode != "replay" else Budget()
        self.under_way = self.calls = self.retried = self.prompt_tokens = self.completion_tokens = self.estimated = 0
        self.dollars, self.unpriced = 0.0, False
        self._before = (0.0, 0)
        self._begun = time.monotonic()
        self._database: Database | None = None
        self.stopped = False

    def recall(self, database: Database) -> None:
        """Add the spending of earlier sessions, as stored in the journal and by `note`."""
        self._database = database
        if self.is_limited:
            (dollars, prompt, completion), = database.read(_RECORDED)
            (more, tokens), = database.read("SELECT total(dollars), total(tokens) FROM spent")
            self._before = dollars + more, int(prompt + completion + tokens)

    def note(self, id: str, tokens: int, dollars: float | None) -> None:
        """Store the tokens of a call for which the server reports none. Before the call, store the most that it may
        use, in case the process is killed. After the call, store an estimate. Zero tokens remove the note."""
        if self._database is None:
            return
        if tokens:
            self._database.put("INSERT OR REPLACE INTO spent VALUES (?, ?, ?)", (id, tokens, dollars or 0.0))
            self._database.flush()
        elif self.is_limited:
            self._database.put("DELETE FROM spent WHERE id = ?", (id,))

    def exempt(self, key: str, usage: Usage) -> None:
        """Leave a call, given by its journal key, out of the spending: its reply is from before."""
        if self._database is not None:
            self._database.put("INSERT OR REPLACE INTO spent VALUES (?, ?, ?)", (
                key, -usage.prompt_tokens - usage.completion_tokens, -(usage.price or 0.0)))

    @property
    def is_limited(self) -> bool:
        """Return whether tokens or dollars are limited."""
        return self.budget.dollars is not None or self.budget.tokens is not None

    def add(self, usage: Usage) -> None:
        """Count the usage of an answered call."""
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.dollars += usage.price or 0.0

    def spent(self) -> dict[str, float]:
        """Return the amount spent of each limited resource, in its unit."""
        dollars, tokens = self._before
        every = {"dollars": dollars + self.dollars, "tokens": tokens + self.prompt_tokens + self.completion_tokens,
                 "seconds": time.monotonic() - self._begun}
        return {name: amount for name, amount in every.items() if getattr(self.budget, name) is not None}

    def left(self) -> dict[str, float]:
        """Return the amount left of each limited resource, at least 0."""
        return {name: max(getattr(self.budget, name) - amount, 0.0) for name, amount in self.spent().items()}

    def is_over(self) -> bool:
        """Return whether any limit is reached."""
        return 0.0 in self.left().values()

    def affordable(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items until the budget is spent."""
        for item in items:
            if self.is_over():
                self.stopped = True
                return
            yield item

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Cancel the code inside this context when the session's seconds are over."""
        loop = asyncio.get_running_loop()
        until = None if self.budget.seconds is None else loop.time() + self._begun + self.budget.seconds - \
            time.monotonic()
        try:
            async with asyncio.timeout_at(until) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            self.stopped = True

    def check(self, plan: Plan, done: Collection[tuple[str, str]]) -> None:
        """Raise BudgetSpent if the budget is spent; see `end`."""
        if self.is_over():
            self.end(plan, done)

    def end(self, plan: Plan, done: Collection[tuple[str, str]]) -> NoReturn:
        """Raise BudgetSpent with one line for the user. `done` has the (cell, question) pairs that have a record."""
        left, cells = self.left(), {cell.id for cell in plan.cells}
        name = next((name for name in left if left[name] == 0), "seconds")
        limit, spent = getattr(self.budget, name), self.spent()[name]
        there, amount = sum(cell in cells for cell, _ in done), max(limit, spent)
        wanted = 2 * amount / plan.share if name != "seconds" else 2 * amount
        more = f"{wanted:.0f}" if wanted >= 1 else f"{wanted:.2g}"
        share = f", the share of shard {plan.shard}," if plan.shard and name != "seconds" else ""
        how = ("rerun the command to continue for the same time" if name == "seconds" else
               f"to continue, raise it, as in --budget {name}={more}")
        about = ", an estimate, as the server does not report the tokens of calls" if self.estimated else ""
        raise BudgetSpent(f"{plan.folder}: the budget of {format_amount(name, limit)}{share} is spent "
                          f"({format_amount(name, spent)}{about}); {there:,} of {plan.expected:,} records are kept; "
                          f"{how}")


class Metered:
    """A model client that counts its calls."""

    def __init__(self, client: ModelClient, spending: Spending) -> None:
        self._client, self._spending = client, spending

    @property
    def identity(self) -> str:
        return self._client.identity

    def parameters(self, action: Generate, max_tokens: int, repeat: int) -> dict[str, Any]:
        return self._client.parameters(action, max_tokens, repeat)

    async def complete(self, action: Generate, *, max_tokens: int, repeat: int, deadline: float,
                       tell: OnEvent | None = None) -> Any:
        """Complete a call as the client does, and count it."""
        spending, attempts, id, limit = self._spending, 0, uuid4().hex, action.max_tokens or max_tokens
        spending.under_way += 1
        if spending.is_limited:
            prompt = estimate_prompt_tokens(action)
            spending.note(id, prompt + limit, self._client.price_of(prompt, limit))
        try:
            done = await self._client.complete(action, max_tokens=max_tokens, repeat=repeat, deadline=deadline,
                                               tell=tell)
            attempts = done.attempts
        except CallError as error:
            attempts = error.attempts
            spending.note(id, 0, None)
            raise
        finally:
            spending.under_way -= 1
            spending.calls += attempts > 0
            spending.retried += attempts > 1
            spending.unpriced = spending.unpriced or (attempts > 0 and not self._client.priced)
        usage = done.reply.usage
        if usage.prompt_tokens or not self._client.estimated:
            spending.note(id, 0, None)
        else:
            spending.estimated += 1
            prompt, reply = estimate_prompt_tokens(action), usage.completion_tokens or estimate_tokens(
                done.reply.text + done.reply.reasoning)
            usage = Usage(prompt, reply, price=self._client.price_of(prompt, reply))
            spending.note(id, usage.tokens, usage.price)
        spending.add(usage)
        return done


def check_prices(settings: RunSettings, models: Iterable[str]) -> None:
    """Raise SettingsError if there is a budget in dollars and the price of any model, judges included, is unknown."""
    if settings.budget.dollars is None:
        return
    for name in dict.fromkeys([*models, *settings.other_models]):
        _, price = describe_model(name, settings.calls)
        if price(1000, 1000, 0) is None:
            raise SettingsError(f"budget.dollars: the price of {name} is unknown; give calls.prices, in US dollars per "
                                f"million tokens, as in prices: {{{name!r}: {{prompt: 1, completion: 4}}}}, or set "
                                "budget.tokens")
