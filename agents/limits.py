"""Limit model calls by deadlines, and concurrent work by slots that adapt to the server."""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import TypeVar

from ragbed.documents.http import backoff_delay

_GROWTH = 1 / 16  # slots that a success adds, if there are more than eight


class CallClock:
    """Enforces the deadlines of a call and of its question by one `asyncio.timeout`.

    The call's time includes retries and waits that the server asks for, but not waiting for a slot.

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
            raise TimeoutError  # because an expired timeout would allow one more request
        self._until = asyncio.get_running_loop().time() + left
        self._timeout.reschedule(self._until)

    def pause(self, asked: float = 0.0) -> None:
        """Pause the call's time while it waits for a slot, except the `asked` seconds that the server asks for."""
        self._left = self._left if self._until is None else self.left
        self._left -= asked
        self._until = None
        if self._timeout.expired():
            raise TimeoutError
        self._timeout.reschedule(self._question)


@dataclass(slots=True)
class CallSlot:
    """The claim of one call to a slot."""

    age: int  # number of earlier claims; the call with the lowest is next
    taken: bool = False  # whether the call holds a slot
    round: int = 0  # number of rounds with a rejection when the call last got a slot


class CallSlots:
    """Slots for concurrent calls to one model, given to the oldest call first.

    The decrease depends on the share of rejected requests, as in RFC 8257: each rate-limited request takes one slot
    away, but requests that were in flight together take at most half of the slots. So a server that accepts 20 calls of
    40 gets 20, and one that rejects a few calls at random keeps nearly all. If all calls
    succeed once, there is half a slot more, or a sixteenth more slots if that is more. So up to 6 % of rejected
    requests hardly reduce the slots.

    A rate-limited call returns its slot, waits as long as the server asked for or backs off, and queues again. If the
    server rejects two requests without a success between them, no call is sent during the wait, because it would be
    rejected too.

    Args:
        ceiling: maximum number of slots, and the number at the start.
        longest: maximum seconds to hold calls back. If the server asks for more, calls are sent anyway, and fail.

    Attributes:
        waiting: calls in the queue.
        rate_limits: number of rate-limited requests.
    """

    def __init__(self, ceiling: int, longest: float = inf) -> None:
        self.waiting = self.rate_limits = 0
        self._ceiling, self._longest = ceiling, longest
        self._size = float(ceiling)
        self._in_use = self._peak = 0  # slots in use now, and their maximum in the present round
        self._round = self._in_a_row = 0  # number of rounds with a rejection: in total, and since the last success
        self._least = 1.0  # slots that the present round leaves at least
        self._rejected = False  # whether the last answered request was rejected
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
        """Return the remaining seconds for which all calls are held back."""
        return max(self._until - asyncio.get_running_loop().time(), 0.0)

    def raise_ceiling(self, ceiling: int) -> None:
        """Allow more slots from now on. Fewer would make calls under way wait, and could end their questions' time."""
        if ceiling > self._ceiling:
            self._size += ceiling - self._ceiling
            self._ceiling = ceiling
            self._hand_out()

    def claim(self) -> CallSlot:
        """Register a new call, and return its claim to a slot."""
        self._claims += 1
        return CallSlot(self._claims)

    def may_send(self, place: CallSlot) -> bool:
        """Tell whether the call can be sent now."""
        return place.taken and not self.held

    async def take(self, place: CallSlot) -> None:
        """Give back the slot that the call holds, if any, and wait for a new one. Older calls go first."""
        self.give_back(place)
        turn = asyncio.get_running_loop().create_future()
        heappush(self._queue, (place.age, turn))
        self.waiting += 1
        self._hand_out()
        try:
            if not turn.done():
                await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the cancelled call already got a slot, so free it
                self._free()
            raise
        finally:
            self.waiting -= 1
        place.taken, place.round = True, self._round

    def give_back(self, place: CallSlot) -> None:
        """Give back the slot of a call, if it holds one."""
        if place.taken:
            place.taken = False
            self._free()

    def count_success(self) -> None:
        """Count a request that was answered."""
        self._in_a_row, self._rejected = 0, False
        self._size = min(self._size + max(0.5 / self._size, _GROWTH), float(self._ceiling))

    def count_rate_limit(self, place: CallSlot, asked: float | None) -> float:
        """Take back the slot of a rate-limited call. Return the seconds that the call must wait before it asks for a
        new one, at least the `asked` ones."""
        self.rate_limits += 1
        first = place.round == self._round
        if first:
            # Count only slots in use, because unused ones do not show what the server accepts.
            self._size = min(self._size, float(self._peak))
            self._least = max(self._size / 2, 1.0)
            self._peak = self._in_use
            self._round += 1
            self._in_a_row += 1
        self._size = max(self._size - 1, self._least)
        if asked:
            # Add jitter, so that several processes do not return at once.
            wait = asked + min(0.1 * backoff_delay(self._in_a_row), 1.0)
        else:
            wait = backoff_delay(self._in_a_row) if first or not self.held else self.held
        if self._rejected and wait <= self._longest:
            self._until = max(self._until, asyncio.get_running_loop().time() + wait)
        self._rejected = True
        self.give_back(place)
        return wait

    def _free(self) -> None:
        self._in_use -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        """Give free slots to the next calls. They count as used at once, so that no other call takes them."""
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


class Pace:
    """Spaces requests evenly, so that no minute has more than `per_minute`. None sets no limit."""

    def __init__(self, per_minute: float | None) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._next = 0.0

    @property
    def limits(self) -> bool:
        """Tell whether there is a limit."""
        return self._gap > 0

    async def turn(self) -> None:
        """Wait until the next request may be sent."""
        now = asyncio.get_running_loop().time()
        at = max(now, self._next)
        self._next = at + self._gap
        await asyncio.sleep(at - now)


Item = TypeVar("Item")


async def run_bounded(items: Iterable[Item], window: int, work: Callable[[Item], Awaitable[None]]) -> None:
    """Process all items concurrently, at most `window` at a time. The first error cancels the others and is raised."""
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
