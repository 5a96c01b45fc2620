"""The time that one model call has."""
from __future__ import annotations

import asyncio


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
        """Seconds until whichever deadline comes first."""
        now = asyncio.get_running_loop().time()
        if self._until is not None:
            return self._until - now
        return self._left if self._question is None else min(self._left, self._question - now)

    def run(self) -> None:
        """The call has a place.

        Raises:
            TimeoutError: there is no time left. A timeout that is over would let one more request out.
        """
        left = self.left
        if left <= 0 or self._timeout.expired():
            raise TimeoutError
        self._until = asyncio.get_running_loop().time() + left
        self._timeout.reschedule(self._until)

    def stand_still(self, asked: float = 0.0) -> None:
        """The call queues for a place.

        Args:
            asked: seconds that count nevertheless.
        """
        self._left = self._left if self._until is None else self.left
        self._left -= asked
        self._until = None
        if self._timeout.expired():
            raise TimeoutError
        self._timeout.reschedule(self._question)
