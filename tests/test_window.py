"""A sliding window works on so many items at once, in order, and ends with the first error as it is."""
import asyncio

import pytest

from agents import Cost
from agents.limits import in_window
from experiments.words import price


async def test_the_next_begins_as_soon_as_one_is_done():
    begun, open, most = [], set(), 0

    async def work(item):
        nonlocal most
        begun.append(item)
        open.add(item)
        most = max(most, len(open))
        await asyncio.sleep(0.05 if item == 0 else 0)
        open.remove(item)

    await in_window(iter(range(9)), 3, work)
    assert (begun, most, open) == (list(range(9)), 3, set())


async def test_one_error_ends_all_and_comes_as_it_is():
    begun = []

    async def work(item):
        begun.append(item)
        if item == 1:
            raise KeyError("one")
        await asyncio.sleep(10)

    with pytest.raises(KeyError, match="one"):
        await in_window(range(9), 2, work)
    assert begun == [0, 1]


def test_costs_add_up_and_one_unknown_price_makes_the_sum_unknown():
    first, second = Cost(1.5, 2, 1, 0.25), Cost(0.5, 3, 0, 0.5)
    assert first + second == Cost(2.0, 5, 1, 0.75)
    assert (first + Cost(paid=None)).paid is None
    assert [price(one) for one in (0.75, 0.0, None)] == ["$0.7500", "$0", "an unknown price"]
