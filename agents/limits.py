"""Limits of model calls: the time that one has, how many a server takes at once, and windows of concurrent tasks."""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import TypeVar

from ragbed.documents.http import backoff_delay


class CallClock:
    """A call's own deadline and its question's, over one `asyncio.timeout`.

    The call's seconds run while it has a place, attempts and the waits between them included, and for as long as
    the server asked it to wait; while it only queues behind other calls they stand still. The question's never do.

    Args:
        timeout: the timeout that the call runs under, set to the question's deadline.
        seconds: that the call has.
        question: its deadline, in the event loop's seconds; None where it has none.
    """

    def __init__(self, timeout: asyncio.Timeout, seconds: float, question: float | None) -> None:
        self._timeout, self._question = timeout, question
        self._left = seconds
        self._until: float | None = None

    @property
    def left(self) -> float:
        """Return the seconds until whichever deadline comes first."""
        now = asyncio.get_running_loop().time()
        if self._until is not None:
            return self._until - now
        return self._left if self._question is None else min(self._left, self._question - now)

    def run(self) -> None:
        """Let the call's time run: it has a place; raise TimeoutError where there is no time left."""
        left = self.left
        if left <= 0 or self._timeout.expired():
            raise TimeoutError  # a timeout that is over would let one more request out
        self._until = asyncio.get_running_loop().time() + left
        self._timeout.reschedule(self._until)

    def stand_still(self, asked: float = 0.0) -> None:
        """Stop the call's time, but for the seconds `asked`, which count: it queues for a place."""
        self._left = self._left if self._until is None else self.left
        self._left -= asked
        self._until = None
        if self._timeout.expired():
            raise TimeoutError
        self._timeout.reschedule(self._question)


@dataclass(slots=True)
class CallSlot:
    """One call's claim to be sent; for one call alone."""

    age: int  # how many calls claimed before it, which decides who is next
    taken: bool = False  # whether the call has a place now
    round: int = 0  # the number of decreases before it was last given a place


class CallSlots:
    """Places for the calls to one model, given to the oldest call first.

    Additive increase, multiplicative decrease (D.-M. Chiu and R. Jain, "Analysis of the Increase and Decrease
    Algorithms for Congestion Avoidance in Computer Networks", 1989): each success adds 1 / places, so that a whole
    round of them adds one place; a refusal for the number of calls halves the places, once for all requests that
    were sent before the last decrease (as RFC 3168, 6.1.2, has it for packets), so that one burst counts once.

    A refused call gives its place back and queues by its age, which is before all that came later. Nobody is sent
    before the time that the server asked for, or a back-off of our own where it asked for none: each request until
    then would be refused too, and may count against the limit.

    Args:
        ceiling: the most places, and the number at the beginning.
        longest: seconds that calls are held back at most. Where the server asks for more, each call is sent and
            told so itself: none may wait so long.

    Attributes:
        waiting: calls that queue for a place now.
        refusals: requests that were refused for their number.
    """

    def __init__(self, ceiling: int, longest: float = inf) -> None:
        self.waiting = self.refusals = 0
        self._ceiling, self._longest = ceiling, longest
        self._size = float(ceiling)
        self._in_use = self._peak = 0  # places taken: now, and the most since the last decrease
        self._round = self._in_a_row = 0  # decreases: ever, and since the last success
        self._claims = 0
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._queue: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def count(self) -> int:
        """Return the number of places that there are now."""
        return int(self._size)

    @property
    def held(self) -> float:
        """Return the seconds for which nobody is sent yet."""
        return max(self._until - asyncio.get_running_loop().time(), 0.0)

    def claim(self) -> CallSlot:
        """Return a claim for the next call."""
        self._claims += 1
        return CallSlot(self._claims)

    def may_send(self, place: CallSlot) -> bool:
        """Say whether the call need not wait."""
        return place.taken and not self.held

    async def take(self, place: CallSlot) -> None:
        """Wait for a place, behind older calls only. A place that the call has goes back first."""
        self.give_back(place)
        turn = asyncio.get_running_loop().create_future()
        heappush(self._queue, (place.age, turn))
        self.waiting += 1
        self._hand_out()
        try:
            if not turn.done():
                await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given a place that it will not use
                self._free()
            raise
        finally:
            self.waiting -= 1
        place.taken, place.round = True, self._round

    def give_back(self, place: CallSlot) -> None:
        """Give the place to the next call, where this one has one."""
        if place.taken:
            place.taken = False
            self._free()

    def succeeded(self) -> None:
        """Tell that a request was answered."""
        self._in_a_row = 0
        self._size = min(self._size + 1 / self._size, float(self._ceiling))

    def refused(self, place: CallSlot, asked: float | None) -> float:
        """Take back the place of a call whose request was refused for the number of requests, and return the seconds
        that it has to wait; `asked` are those that the server names."""
        self.refusals += 1
        first = place.round == self._round
        if first:
            # Places that nobody used say nothing about what the server takes.
            self._size = max(min(self._size, self._peak) / 2, 1.0)
            self._peak = self._in_use
            self._round += 1
            self._in_a_row += 1
        if asked:
            # Jitter on top of what is asked, so that several processes do not come back at once.
            wait = asked + min(0.1 * backoff_delay(self._in_a_row), 1.0)
        else:
            wait = backoff_delay(self._in_a_row) if first else self.held
        if wait <= self._longest:
            self._until = max(self._until, asyncio.get_running_loop().time() + wait)
        self.give_back(place)
        return wait

    def _free(self) -> None:
        self._in_use -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        """Give free places to whoever is next. A place is counted here, so that nobody can take it in between."""
        if not self._queue:
            return
        if self.held:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_at(self._until, self._over)
            return
        while self._queue and self._in_use < self.count:
            _, turn = heappop(self._queue)
            if not turn.done():  # else it was cancelled
                turn.set_result(None)
                self._in_use += 1
        self._peak = max(self._peak, self._in_use)

    def _over(self) -> None:
        self._timer = None
        self._hand_out()


Item = TypeVar("Item")


async def run_bounded(items: Iterable[Item], window: int, work: Callable[[Item], Awaitable[None]]) -> None:
    """Work on all items, at most `window` at once; the next begins as soon as one is done. What ends one ends them all,
    with its own error."""
    left = iter(items)

    async def drain() -> None:
        for item in left:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(window):
                group.create_task(drain())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
