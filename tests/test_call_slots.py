"""Slots for calls: fewer after refusals, more after successes, given to the oldest call; and a window over items."""
import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as draw
from virtual_time import in_virtual_time

from ragbed.agents import Cost
from ragbed.agents.limits import CallClock, CallSlots, run_bounded
from ragbed.experiments.formatting import format_price


async def taken(places, count):
    claims = [places.claim() for _ in range(count)]
    for claim in claims:
        await places.take(claim)
    return claims


@in_virtual_time
async def test_a_burst_of_refusals_takes_half_of_the_places_and_two_rounds_of_successes_add_one():
    places = CallSlots(16)
    for claim in await taken(places, 16):
        places.count_rate_limit(claim, None)
    assert (places.count, places.rate_limits, places.waiting) == (8, 16, 0)
    burst = await taken(places, 8)
    for _ in range(15):
        places.count_success()
    assert places.count == 8
    places.count_success()
    assert places.count == 9  # each success adds a sixteenth
    for claim in burst:
        places.count_rate_limit(claim, None)
    assert places.count == 4  # half of the 8 that were taken, not of the 9 that could have been


@in_virtual_time
async def test_a_server_that_accepts_30_of_40_calls_gets_30():
    places = CallSlots(40)
    claims = await taken(places, 40)
    for claim in claims[:10]:
        places.count_rate_limit(claim, None)
    assert places.count == 30


@in_virtual_time
async def test_five_refusals_in_a_hundred_leave_the_places_as_many():
    places = CallSlots(100)
    for _ in range(20):
        claims = await taken(places, places.count)
        for number, claim in enumerate(claims):
            if number % 20 == 10:
                places.count_rate_limit(claim, 0.2)
            else:
                places.count_success()
                places.give_back(claim)
        assert places.count >= 95
        assert places.held == 0


@in_virtual_time
async def test_the_second_refusal_in_a_row_holds_all_calls_back():
    places = CallSlots(4)
    first, second, third, fourth = await taken(places, 4)
    assert 20 < places.count_rate_limit(first, 20) <= 21
    assert places.held == 0
    places.count_success()
    places.give_back(second)
    places.count_rate_limit(third, 20)
    assert places.held == 0
    places.count_rate_limit(fourth, 20)
    assert 20 < places.held <= 21


@in_virtual_time
async def test_places_never_fall_below_one_nor_rise_above_the_ceiling():
    places = CallSlots(2)
    for _ in range(5):
        (claim,) = await taken(places, 1)
        places.count_rate_limit(claim, None)
    assert places.count == 1
    for _ in range(50):
        places.count_success()
    assert places.count == 2


@in_virtual_time
async def test_the_longest_wait_that_was_asked_for_holds_and_one_beyond_what_calls_have_holds_nobody():
    places = CallSlots(4, longest=60)
    refused, first, second, third = await taken(places, 4)
    places.count_rate_limit(refused, None)
    assert 20 < places.count_rate_limit(first, 20) <= 21
    assert 5 < places.count_rate_limit(second, 5) <= 6
    assert 20 < places.held <= 21
    assert 70 < places.count_rate_limit(third, 70) <= 71
    assert places.held <= 21


@in_virtual_time
async def test_a_refused_call_is_the_next_when_the_time_has_come_and_nobody_is_sent_before():
    places, order = CallSlots(3), []
    refused, first, second = await taken(places, 3)
    places.count_rate_limit(refused, None)

    async def queue(name, claim):
        await places.take(claim)
        order.append((name, asyncio.get_running_loop().time()))
        places.give_back(claim)

    tasks = [asyncio.create_task(queue(f"later {number}", places.claim())) for number in range(3)]
    await asyncio.sleep(1)
    wait = places.count_rate_limit(first, 20)
    places.give_back(second)
    tasks.append(asyncio.create_task(queue("refused", first)))
    await asyncio.sleep(0)
    assert places.waiting == 4
    await asyncio.gather(*tasks)
    assert order == [(name, pytest.approx(1 + wait)) for name in ("refused", "later 0", "later 1", "later 2")]


@in_virtual_time
async def test_a_place_given_to_a_call_that_is_cancelled_at_that_moment_goes_to_the_next():
    places = CallSlots(1)
    (claim,) = await taken(places, 1)
    gone, next_one = (asyncio.create_task(places.take(places.claim())) for _ in range(2))
    await asyncio.sleep(0)
    places.give_back(claim)
    gone.cancel()
    await next_one
    assert gone.cancelled()
    assert places.waiting == 0


CALL = draw.tuples(draw.integers(0, 6),  # turns of the loop before it begins
                   draw.lists(draw.sampled_from([None, 0.5]), max_size=3),  # refusals before it succeeds
                   draw.integers(0, 4),  # turns that a request takes
                   draw.none() | draw.integers(0, 20))  # turns before it is cancelled


@pytest.mark.slow
@given(draw.integers(1, 5), draw.lists(CALL, min_size=1, max_size=30))
@examples(max_examples=60)
def test_no_wake_up_is_lost_and_no_place_given_twice_whatever_is_refused_or_cancelled(ceiling, calls):
    _all_of(ceiling, calls)


@in_virtual_time
async def _all_of(ceiling, calls):
    places, busy = CallSlots(ceiling), 0

    async def turns(count):
        for _ in range(count):
            await asyncio.sleep(0)

    async def call(before, refusals, takes):
        nonlocal busy
        await turns(before)
        claim = places.claim()
        try:
            for asked in [*refusals, "success"]:
                await places.take(claim)
                busy += 1
                assert busy <= ceiling
                try:
                    await turns(takes)
                finally:
                    busy -= 1
                if asked == "success":
                    places.count_success()
                else:
                    places.count_rate_limit(claim, asked)
        finally:
            places.give_back(claim)

    async def cancelled(task, after):
        await turns(after)
        task.cancel()

    tasks = [asyncio.create_task(call(*one[:3])) for one in calls]
    enders = [asyncio.create_task(cancelled(task, one[3])) for task, one in zip(tasks, calls, strict=True)
              if one[3] is not None]
    done, _ = await asyncio.wait([*tasks, *enders])
    assert [task.exception() for task in done if not task.cancelled() and task.exception()] == []
    assert places.waiting == 0
    await taken(places, places.count)  # all places are free again


class Server:
    """Refuses in a tenth of a second what `refuses` does, told how many it works on and the time; else works a second.

    Attributes:
        begun: when each request came.
        most: places that there were at each reply.
    """

    def __init__(self, places, refuses):
        self.places, self.refuses, self.open = places, refuses, 0
        self.begun: list[float] = []
        self.most: list[int] = []

    async def all_of(self, count, asks=None):
        """So many calls, each until it is answered; the server asks to wait so long where it refuses one."""
        await asyncio.gather(*(self._call(self.places.claim(), asks) for _ in range(count)))

    async def _call(self, claim, asks):
        await self.places.take(claim)
        while not await self._works():
            self.places.count_rate_limit(claim, asks)
            await self.places.take(claim)
        self.places.count_success()
        self.places.give_back(claim)
        self.most.append(self.places.count)

    async def _works(self):
        self.begun.append(asyncio.get_running_loop().time())
        if self.refuses(self.open, self.begun[-1]):
            await asyncio.sleep(0.1)
            return False
        self.open += 1
        await asyncio.sleep(1)
        self.open -= 1
        return True


@in_virtual_time
async def test_calls_settle_near_what_the_server_takes_at_once():
    server = Server(CallSlots(16), lambda open, now: open >= 4)
    await server.all_of(200, asks=1.5)
    assert len(server.begun) == 200 + server.places.rate_limits < 2 * 200
    assert 2 <= sum(server.most[100:]) / 100 <= 5
    assert server.places.waiting == 0


@pytest.mark.parametrize(("asks", "refusals"), [(60, 16), (None, 50)])
@in_virtual_time
async def test_a_server_that_refuses_all_for_a_minute_is_asked_little_meanwhile(asks, refusals):
    server = Server(CallSlots(16), lambda open, now: now < 60)
    await server.all_of(100, asks)
    assert len(server.begun) <= 100 + refusals
    if asks:
        assert sum(now < 60 for now in server.begun) == 16


@in_virtual_time
async def test_the_clock_of_a_call_stands_still_while_it_queues_and_the_question_s_goes_on():
    loop = asyncio.get_running_loop()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None) as timeout:
            clock = CallClock(timeout, 10.0, None)
            clock.run()
            await asyncio.sleep(0.5)
            clock.pause(asked=3)
            assert clock.left == 6.5
            await asyncio.sleep(100)
            assert clock.left == 6.5
            clock.run()
            assert timeout.when() == loop.time() + 6.5
            short = CallClock(timeout, 10.0, loop.time() + 0.5)
            await asyncio.sleep(1)
            with pytest.raises(TimeoutError):
                short.run()


async def test_the_next_begins_as_soon_as_one_is_done():
    begun, open, most = [], set(), 0

    async def work(item):
        nonlocal most
        begun.append(item)
        open.add(item)
        most = max(most, len(open))
        await asyncio.sleep(0.05 if item == 0 else 0)
        open.remove(item)

    await run_bounded(iter(range(9)), 3, work)
    assert (begun, most, open) == (list(range(9)), 3, set())


async def test_one_error_ends_all_and_comes_as_it_is():
    begun = []

    async def work(item):
        begun.append(item)
        if item == 1:
            raise KeyError("one")
        await asyncio.sleep(10)

    with pytest.raises(KeyError, match="one"):
        await run_bounded(range(9), 2, work)
    assert begun == [0, 1]


def test_costs_add_up_and_one_unknown_price_makes_the_sum_unknown():
    first, second = Cost(1.5, 2, 1, 0.25), Cost(0.5, 3, 0, 0.5)
    assert first + second == Cost(2.0, 5, 1, 0.75)
    assert (first + Cost(paid=None)).paid is None
    assert [format_price(one) for one in (0.75, 0.0, None)] == ["$0.7500", "$0", "an unknown price"]
