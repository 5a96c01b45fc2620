"""A sliding window of tasks: so many items are worked on at once, in order."""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")


async def in_window(items: Iterable[Item], window: int, work: Callable[[Item], Awaitable[None]]) -> None:
    """Work on all items, at most `window` at once; the next begins as soon as one is done.

    What ends one ends them all, with its own error.
    """
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
