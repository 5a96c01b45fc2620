"""Calls at once follow what the server takes: fewer when it refuses them for their number, more as they succeed."""
from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as draw

from agents.clock import CallClock
from agents.concurrency import Places
from agents.models import open_model
from agents.settings import CallLimits, ModelSettings
from documents.errors import CallError
from experiments.record import Timing
from strategies.types import Generate, Message

ASK = Generate((Message("user", ("Where?",)),), "answer")
WAIT = {"status": 429, "headers": {"Retry-After-Ms": "30"}}


@pytest.fixture(autouse=True)
def _keyless(monkeypatch):
    monkeypatch.delenv("RAGBED_API_KEY", raising=False)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("agents.retries._FIRST", 0.01)


def only(number, seconds=0.02, refusal=WAIT):
    """A server's script: so many requests at once are answered, each in so many seconds, and the rest refused."""
    ends: list[float] = []

    def answer(_):
        now = time.monotonic()
        ends[:] = [end for end in ends if end > now]
        if len(ends) >= number:
            return refusal
        ends.append(now + seconds)
        return {"text": "<Answer>x</Answer>", "delay": seconds}

    return answer


async def taken(places, count):
    claims = [places.claim() for _ in range(count)]
    async with asyncio.timeout(5):
        for claim in claims:
            await places.take(claim)
    return claims


async def test_a_burst_of_refusals_halves_the_places_once_and_a_round_of_successes_adds_one(quick):
    places = Places(16)
    for claim in await taken(places, 16):
        places.refused(claim, None)
    assert (places.count, places.refusals, places.waiting) == (8, 16, 0)
    burst = await taken(places, 8)
    for _ in range(9):
        places.succeeded()
    assert places.count == 9  # 8 + 1/8 + 1/8.125 + …: the ninth is the first beyond 9
    for claim in burst:
        places.refused(claim, None)
    assert places.count == 4  # half of the 8 that were taken, not of the 9 that could have been


async def test_places_never_fall_below_one_nor_rise_above_the_ceiling(quick):
    places = Places(2)
    for _ in range(5):
        (claim,) = await taken(places, 1)
        places.refused(claim, None)
    assert places.count == 1
    for _ in range(50):
        places.succeeded()
    assert places.count == 2


async def test_places_that_nobody_used_do_not_count_when_they_are_halved(quick):
    places = Places(16)
    for claim in await taken(places, 4):
        places.refused(claim, None)
    assert places.count == 2


async def test_the_longest_wait_that_was_asked_for_holds_and_one_beyond_what_calls_have_holds_nobody():
    places = Places(4, longest=60)
    first, second, third = await taken(places, 3)
    assert 20 < places.refused(first, 20) <= 21
    assert 5 < places.refused(second, 5) <= 6
    assert 19 < places.held <= 21
    assert 70 < places.refused(third, 70) <= 71
    assert places.held <= 21


async def test_a_refused_call_is_the_next_when_the_time_has_come_and_nobody_is_sent_before():
    places, order = Places(2), []
    first, second = await taken(places, 2)

    async def queue(name, claim):
        await places.take(claim)
        order.append((name, round(time.monotonic() - begun, 1)))
        places.give_back(claim)

    begun = time.monotonic()
    tasks = [asyncio.create_task(queue(f"later {number}", places.claim())) for number in range(3)]
    await asyncio.sleep(0.1)
    places.refused(first, 0.2)
    places.give_back(second)
    tasks.append(asyncio.create_task(queue("refused", first)))
    await asyncio.sleep(0)
    assert places.waiting == 4
    await asyncio.gather(*tasks)
    assert [name for name, _ in order] == ["refused", "later 0", "later 1", "later 2"]
    assert all(when >= 0.3 for _, when in order)


async def test_a_place_given_to_a_call_that_is_cancelled_at_that_moment_goes_to_the_next():
    places = Places(1)
    (claim,) = await taken(places, 1)
    gone, next_one = (asyncio.create_task(places.take(places.claim())) for _ in range(2))
    await asyncio.sleep(0)
    places.give_back(claim)
    gone.cancel()
    async with asyncio.timeout(5):
        await next_one
    assert gone.cancelled()
    assert places.waiting == 0


CALL = draw.tuples(draw.integers(0, 6),  # turns of the loop before it begins
                   draw.lists(draw.sampled_from([None, 0.0005]), max_size=3),  # refusals before it succeeds
                   draw.integers(0, 4),  # turns that a request takes
                   draw.none() | draw.integers(0, 20))  # turns before it is cancelled


@given(draw.integers(1, 5), draw.lists(CALL, min_size=1, max_size=30))
@examples(max_examples=60, deadline=None)
def test_no_wake_up_is_lost_and_no_place_given_twice_whatever_is_refused_or_cancelled(ceiling, calls):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agents.retries._FIRST", 0.001)
        asyncio.run(_all_of(ceiling, calls))


async def _all_of(ceiling, calls):
    places, busy = Places(ceiling), 0

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
                    places.succeeded()
                else:
                    places.refused(claim, asked)
        finally:
            places.give_back(claim)

    async def cancelled(task, after):
        await turns(after)
        task.cancel()

    tasks = [asyncio.create_task(call(*one[:3])) for one in calls]
    enders = [asyncio.create_task(cancelled(task, one[3])) for task, one in zip(tasks, calls, strict=True)
              if one[3] is not None]
    done, left = await asyncio.wait([*tasks, *enders], timeout=20)
    assert not left
    assert [task.exception() for task in done if not task.cancelled() and task.exception()] == []
    assert places.waiting == 0
    await taken(places, places.count)  # all places are free again


async def test_calls_settle_near_what_the_server_takes_at_once(serve):
    server, seen = serve(only(4)), []
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(concurrency=16))) as model:
        async def ask():
            done = await model.complete(ASK, max_tokens=9)
            seen.append(model.places)
            return done.attempts

        attempts = await asyncio.gather(*(ask() for _ in range(200)))
        assert model.rate_limited == sum(attempts) - 200
        assert model.waiting == 0
    assert sum(attempts) == len(server.requests) < 2 * 200
    assert 2 <= sum(seen[100:]) / 100 <= 5


def test_a_run_over_a_server_that_takes_few_at_once_has_no_failed_record_and_counts_every_request(serve, town, ragbed):
    server = serve(only(3))
    own = town.own(*({"id": str(number), "question": f"Question {number}?", "answer": "x"} for number in range(200)))
    path = town.config(server.url, benchmark=own, conditions="closed-book", concurrency=16,
                       calls={"calls": {"attempts": 1, "seconds": 20}})
    status, _, err = ragbed("run", path)
    assert status == 0
    timings = [record["timing"] for record in town.records()]
    assert {record["result"]["outcome"] for record in town.records()} == {"answered"}
    assert sum(timing["attempts"] for timing in timings) == len(server.requests) < 2 * 200
    retried = [timing["attempts"] > 1 for timing in timings]
    assert [timing["retried"] > 0 for timing in timings] == retried
    assert f"{len(server.requests)} calls sent, of them {sum(retried)} retried, and 0 from the journal" in err
    shown = ragbed("show", town.run, str(retried.index(True)))[1]
    assert "requests (calls retried: 1) in" in shown


def test_a_record_made_before_calls_were_told_apart_is_still_read():
    old = {"seconds": 1.0, "attempts": 2, "replayed": 0, "paid": None, "finished": "2026-11-19T10:00:00+00:00"}
    assert Timing.model_validate(old).retried == 0


@pytest.mark.parametrize("headers", [{"Retry-After": "1"}, {}])
async def test_a_server_that_refuses_all_for_a_second_is_asked_little_meanwhile(serve, headers):
    begun = []

    def closed_at_first(_):
        begun.append(time.monotonic())
        return {"status": 429, "headers": headers} if begun[-1] < begun[0] + 0.95 else "ok"

    server = serve(closed_at_first)
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(attempts=1))) as model:
        done = await asyncio.gather(*(model.complete(ASK, max_tokens=9) for _ in range(100)))
    assert sum(one.attempts for one in done) == len(server.requests)
    assert len(server.requests) <= 100 + (16 if headers else 50)


async def test_what_one_call_is_told_to_wait_holds_the_others_back_too(serve):
    server = serve([{"status": 429, "headers": {"Retry-After": "1"}}, "a", "b"])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        begun = time.monotonic()
        refused = asyncio.create_task(model.complete(ASK, max_tokens=9))
        while not model.rate_limited:
            await asyncio.sleep(0.01)
        other = await model.complete(ASK, max_tokens=9)
        assert time.monotonic() - begun >= 1
        assert ((await refused).reply.text, other.reply.text) == ("a", "b")
        assert ((await refused).attempts, other.attempts) == (2, 1)


async def test_a_wait_longer_than_any_call_has_fails_each_call_by_itself_and_at_once(serve):
    server = serve(lambda _: {"status": 429, "headers": {"Retry-After": "3600"}})
    begun = time.monotonic()
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(seconds=60))) as model:
        ends = await asyncio.gather(*(model.complete(ASK, max_tokens=9) for _ in range(30)), return_exceptions=True)
    said = f"{server.url}#m: HTTP 429; the server asks for 3600 s more; "
    assert [end for end in ends if not str(end).startswith(said)] == []
    assert len(server.requests) == 30
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("line", [
    {"status": 429}, {"status": 529}, {"status": 503, "headers": {"Retry-After": "0"}},
    {"status": 503, "error": {"message": "Please try again", "type": "overloaded_error"}},
    {"status": 503, "error": {"message": "The engine is currently overloaded", "type": "server_error"}}])
async def test_refusals_for_the_number_of_calls_use_up_no_attempts(serve, quick, line):
    server = serve([line] * 4 + ["Paris"])
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(attempts=1))) as model:
        done = await model.complete(ASK, max_tokens=9)
        assert (done.reply.text, done.attempts, model.rate_limited, model.places) == ("Paris", 5, 4, 2)


async def test_refusals_for_the_number_of_calls_end_when_there_is_no_time_for_another(serve, quick):
    server = serve(lambda _: {"status": 429, "headers": {"Retry-After": "2"}})
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(seconds=3.5))) as model:
        with pytest.raises(CallError, match=r"HTTP 429; the server asks for 2 s more; \d s were left") as caught:
            await model.complete(ASK, max_tokens=9)
    assert (caught.value.kind, caught.value.attempts, len(server.requests)) == ("http_429", 2, 2)


async def test_a_server_out_of_order_uses_up_attempts_and_keeps_its_places(serve, quick):
    server = serve(lambda _: {"status": 503, "error": {"message": "database down"}})
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(attempts=2))) as model:
        with pytest.raises(CallError, match="database down"):
            await model.complete(ASK, max_tokens=9)
        assert (len(server.requests), model.places, model.rate_limited) == (2, 16, 0)


async def test_a_request_larger_than_the_whole_limit_is_not_sent_again(serve):
    server = serve([{"status": 429, "error": {"message": "Request too large for m on tokens per min (TPM): Limit 9"}}])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        with pytest.raises(CallError, match="too large") as caught:
            await model.complete(ASK, max_tokens=9)
        assert (caught.value.kind, caught.value.attempts, model.places) == ("http_429", 1, 16)


async def test_the_clock_of_a_call_stands_still_while_it_queues_and_the_question_s_goes_on():
    loop = asyncio.get_running_loop()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None) as timeout:
            clock = CallClock(timeout, 10.0, None)
            clock.run()
            await asyncio.sleep(0.05)
            clock.stand_still(asked=3)
            left = clock.left
            assert 6 < left <= 6.95
            await asyncio.sleep(0.05)
            assert clock.left == left
            clock.run()
            assert timeout.when() == pytest.approx(loop.time() + left, abs=0.1)
            short = CallClock(timeout, 10.0, loop.time() + 0.05)
            await asyncio.sleep(0.1)
            with pytest.raises(TimeoutError):
                short.run()
