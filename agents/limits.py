"""Limits of model calls: deadlines, adaptive concurrency, and bounded concurrent work."""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import TypeVar

from ragbed.documents.http import backoff_delay


class CallClock:
    """The deadlines of a call and of its question, enforced by one `asyncio.timeout`.

    The call's time runs while it holds a slot, including retries and the waits that the server asks for. It is paused
    while the call queues behind others. The question's time is never paused.

    Args:
        timeout: timeout that the call runs under, set to the question's deadline.
        seconds: time limit of the call.
        question: deadline of the question, in the event loop's time; None if it has none.
    """

    def __init__(self, timeout: asyncio.Timeout, seconds: float, question: float | None) -> None:
        self._timeout, self._question = timeout, question
        self._left = seconds
        self._until: float | None = None

    @property
    def left(self) -> float:
        """Return the seconds until the earlier deadline."""
        now = asyncio.get_running_loop().time()
        if self._until is not None:
            return self._until - now
        return self._left if self._question is None else min(self._left, self._question - now)

    def run(self) -> None:
        """Start the call's time. Raises TimeoutError if no time is left."""
        left = self.left
        if left <= 0 or self._timeout.expired():
            raise TimeoutError  # an expired timeout would let one more request through
        self._until = asyncio.get_running_loop().time() + left
        self._timeout.reschedule(self._until)

    def pause(self, asked: float = 0.0) -> None:
        """Pause the call's time while it queues; the seconds that the server `asked` to wait still count."""
        self._left = self._left if self._until is None else self.left
        self._left -= asked
        self._until = None
        if self._timeout.expired():
            raise TimeoutError
        self._timeout.reschedule(self._question)


@dataclass(slots=True)
class CallSlot:
    """One call's claim to a slot."""

    age: int  # number of earlier claims; the oldest waiting call is next
    taken: bool = False  # whether the call holds a slot
    round: int = 0  # number of decreases before the call last got a slot


class CallSlots:
    """Slots for concurrent calls to one model, given to the oldest call first.

    Additive increase, multiplicative decrease (D.-M. Chiu and R. Jain, "Analysis of the Increase and Decrease
    Algorithms for Congestion Avoidance in Computer Networks", 1989). Each success adds 1 / slots, so that a round of
    successes adds one slot. A rate-limited request halves the slots, once for all requests sent before the last
    decrease (as in RFC 3168, 6.1.2), so that a burst counts once.

    A rate-limited call returns its slot and queues by age. No call is sent before the time that the server asked for,
    or our own back-off: it would be rejected too, and may count against the limit.

    Args:
        ceiling: maximum number of slots, and the number at the start.
        longest: maximum seconds to hold calls back. If the server asks for more, each call is sent and fails by itself.

    Attributes:
        waiting: calls in the queue.
        refusals: number of rate-limited requests.
    """

    def __init__(self, ceiling: int, longest: float = inf) -> None:
        self.waiting = self.refusals = 0
        self._ceiling, self._longest = ceiling, longest
        self._size = float(ceiling)
        self._in_use = self._peak = 0  # slots in use now, and their maximum since the last decrease
        self._round = self._in_a_row = 0  # decreases in total, and since the last success
        self._claims = 0
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._queue: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def count(self) -> int:
        """Return the current number of slots."""
        return int(self._size)

    @property
    def held(self) -> float:
        """Return the seconds for which all calls are held back."""
        return max(self._until - asyncio.get_running_loop().time(), 0.0)

    def claim(self) -> CallSlot:
        """Return the claim of a new call."""
        self._claims += 1
        return CallSlot(self._claims)

    def may_send(self, place: CallSlot) -> bool:
        """Tell whether the call can be sent now."""
        return place.taken and not self.held

    async def take(self, place: CallSlot) -> None:
        """Return the slot that the call holds, if any, and wait for a slot, behind older calls only."""
        self.give_back(place)
        turn = asyncio.get_running_loop().create_future()
        heappush(self._queue, (place.age, turn))
        self.waiting += 1
        self._hand_out()
        try:
            if not turn.done():
                await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the call got a slot that it will not use
                self._free()
            raise
        finally:
            self.waiting -= 1
        place.taken, place.round = True, self._round

    def give_back(self, place: CallSlot) -> None:
        """Return the slot of a call, if it holds one."""
        if place.taken:
            place.taken = False
            self._free()

    def succeeded(self) -> None:
        """Count a request that was answered."""
        self._in_a_row = 0
        self._size = min(self._size + 1 / self._size, float(self._ceiling))

    def refused(self, place: CallSlot, asked: float | None) -> float:
        """Take back the slot of a rate-limited call. Return the seconds to wait; `asked` are the server's."""
        self.refusals += 1
        first = place.round == self._round
        if first:
            # Unused slots say nothing about what the server accepts.
            self._size = max(min(self._size, self._peak) / 2, 1.0)
            self._peak = self._in_use
            self._round += 1
            self._in_a_row += 1
        if asked:
            # Jitter, so that several processes do not return at once.
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
        """Give free slots to the next calls. Slots are counted here, so that no other call takes them."""
        if not self._queue:
            return
        if self.held:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_at(self._until, self._over)
            return
        while self._queue and self._in_use < self.count:
            _, turn = heappop(self._queue)
            if not turn.done():  # unless the call was cancelled
                turn.set_result(None)
                self._in_use += 1
        self._peak = max(self._peak, self._in_use)

    def _over(self) -> None:
        self._timer = None
        self._hand_out()


Item = TypeVar("Item")


async def run_bounded(items: Iterable[Item], window: int, work: Callable[[Item], Awaitable[None]]) -> None:
    """Process all items, at most `window` at a time. An error cancels the others, and is raised."""
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
