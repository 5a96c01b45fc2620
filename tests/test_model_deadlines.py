"""Time and calls at once: deadlines, `Retry-After`, and fewer calls where a server refuses them for their number."""
import asyncio
import json
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ragbed.agents import CallLimits, ModelSettings, open_model
from ragbed.documents import CallError, CallTimeout
from ragbed.strategies import Generate, Message

ASK = Generate((Message("user", ("Where?",)),), "answer")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("ragbed.documents.http._FIRST_DELAY", 0.01)
    monkeypatch.delenv("RAGBED_API_KEY", raising=False)


async def call(server, *, deadline=None, **limits):
    settings = ModelSettings(calls=CallLimits(**limits))
    async with open_model(f"{server.url}#m", settings) as model:
        await model.ready()
        return await model.complete(ASK, max_tokens=64, deadline=deadline)


async def failure(server, kind=CallError, **limits):
    with pytest.raises(kind) as caught:
        await call(server, **limits)
    return caught.value


@pytest.mark.slow
async def test_retry_after_is_honoured_as_seconds_and_as_a_date(serve):
    until, started = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2), time.monotonic()

    async def ended(said):
        server = serve([{"status": 429, "headers": {"Retry-After": said}}, "Paris"])
        assert (await call(server)).reply.text == "Paris"
        return datetime.now(UTC), time.monotonic()

    seconds, date = await asyncio.gather(ended("1"), ended(format_datetime(until, usegmt=True)))
    assert seconds[1] - started >= 1
    assert date[0] >= until


async def test_a_wait_beyond_the_deadline_fails_at_once(serve):
    error = await failure(serve([{"status": 429, "headers": {"Retry-After": "3600"}}]), seconds=60)
    assert (error.kind, error.attempts) == ("http_429", 1)
    assert "3600" in str(error)
    error = await failure(serve([{"status": 429, "headers": {"Retry-After": "1e300"}}]), seconds=60)
    assert "100000000" in str(error)
    assert len(str(error)) < 250


@pytest.mark.parametrize("said", ["soon", "-5", "nan", "inf", "Wed, 21 Oct 1015 07:28:00 GMT", "Wed, 99 Oct"])
async def test_a_senseless_retry_after_is_no_harm(serve, said):
    assert (await call(serve([{"status": 503, "headers": {"Retry-After": said}}, "ok"]))).reply.text == "ok"


async def test_deadlines_of_call_and_question_are_told_apart(serve):
    server = serve(lambda _: {"delay": 3})
    late = await failure(server, CallTimeout, seconds=0.2)
    assert (late.kind, late.attempts) == ("timeout_call", 1)
    with pytest.raises(CallTimeout, match="question") as caught:
        await call(server, deadline=time.monotonic() + 0.2)
    assert caught.value.kind == "timeout_question"


async def test_a_question_already_over_sends_nothing(serve):
    server = serve(["late"])
    with pytest.raises(CallTimeout):
        await call(server, deadline=time.monotonic() - 1)
    assert server.requests == []


@pytest.mark.slow
async def test_calls_at_once_are_bounded_and_waiting_costs_the_call_nothing(serve):
    never = threading.Event()
    server = serve(lambda body: {"text": "ok", "delay": 0.3} if body["max_tokens"] == 9 else {"hold": never})
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(concurrency=2, seconds=1.2))) as model:
        await model.ready()
        await asyncio.gather(*(model.complete(ASK, max_tokens=9) for _ in range(10)))  # five rounds: 1.5 s
        assert server.busiest == 2
        late = await asyncio.gather(*(model.complete(ASK, max_tokens=8, deadline=time.monotonic() + 0.3)
                                      for _ in range(6)), return_exceptions=True)
    assert {type(one) for one in late} == {CallTimeout}
    assert sum("before the call was sent" in str(one) for one in late) >= 4


def only(number, seconds=0.02):
    """A server's script: so many requests at once are answered, each in so many seconds, and the rest refused."""
    ends: list[float] = []

    def answer(_):
        now = time.monotonic()
        ends[:] = [end for end in ends if end > now]
        if len(ends) >= number:
            return {"status": 429, "headers": {"Retry-After-Ms": "30"}}
        ends.append(now + seconds)
        return {"text": "<Answer>x</Answer>", "delay": seconds}

    return answer


def test_a_run_over_a_server_that_takes_few_at_once_has_no_failed_record_and_counts_every_request(serve, town, ragbed):
    server = serve(only(3))
    own = town.own(*({"id": str(number), "question": f"Question {number}?", "answer": "x"} for number in range(60)))
    path = town.config(server.url, benchmark=own, conditions="closed-book", concurrency=16,
                       calls={"calls": {"attempts": 1, "seconds": 20}})
    status, _, err = ragbed("run", path)
    assert status == 0
    timings = [record["timing"] for record in town.records()]
    assert {record["result"]["outcome"] for record in town.records()} == {"answered"}
    assert sum(timing["attempts"] for timing in timings) == len(server.requests) > 60
    retried = [timing["attempts"] > 1 for timing in timings]
    assert [timing["retried"] > 0 for timing in timings] == retried
    assert f"{len(server.requests)} calls sent, including retries of {sum(retried)}, and 0 reused from" in err
    shown = ragbed("show", town.run, str(retried.index(True)))[1]
    assert "requests (calls retried: 1) in" in shown


@pytest.mark.parametrize("settings", [
    {"concurrency": 12}, {"concurrency": None, "calls": {"calls": {"concurrency": 12}}},
    {"concurrency": 12, "calls": {"calls": {"concurrency": 2}}}])
def test_either_setting_alone_says_how_many_questions_are_under_way(serve, town, ragbed, settings):
    all_came = threading.Event()

    def reply(body):
        if len(server.requests) == 12:
            all_came.set()
        return {"text": town.reply(body), "hold": all_came}

    server = serve(reply)
    status, _, err = ragbed("run", town.config(server.url, reasoning=["direct", "chain_of_thought"], **settings))
    assert (status, server.busiest) == (0, 12)
    *_, last = (line for line in err.splitlines() if line.startswith('{"stage": "questions"'))
    assert json.loads(last)["calls"]["places_at_most"] == 12


async def test_what_two_calls_are_told_to_wait_holds_the_others_back_too(serve):
    server = serve([*[{"status": 429, "headers": {"Retry-After-Ms": "300"}}] * 2, "a", "b", "c"])
    async with open_model(f"{server.url}#m", ModelSettings()) as model:
        begun = time.monotonic()
        refused = [asyncio.create_task(model.complete(ASK, max_tokens=9)) for _ in range(2)]
        while model.rate_limited < 2:
            await asyncio.sleep(0.01)
        other = await model.complete(ASK, max_tokens=9)
        assert time.monotonic() - begun >= 0.3
        assert {(await one).reply.text for one in refused} | {other.reply.text} == {"a", "b", "c"}
        assert [(await one).attempts for one in refused] + [other.attempts] == [2, 2, 1]


@pytest.mark.parametrize("line", [
    {"status": 429}, {"status": 529}, {"status": 503, "headers": {"Retry-After": "0"}},
    {"status": 503, "error": {"message": "Please try again", "type": "overloaded_error"}},
    {"status": 503, "error": {"message": "The engine is currently overloaded", "type": "server_error"}}])
async def test_refusals_for_the_number_of_calls_use_up_no_attempts(serve, line):
    server = serve([line] * 4 + ["Paris"])
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(attempts=1))) as model:
        done = await model.complete(ASK, max_tokens=9)
        assert (done.reply.text, done.attempts, model.rate_limited, model.places) == ("Paris", 5, 4, 1)


async def test_refusals_for_the_number_of_calls_end_when_there_is_no_time_for_another(serve):
    server = serve([{"status": 429, "headers": {"Retry-After-Ms": str(wait)}} for wait in (10, 60_000)])
    error = await failure(server, seconds=50)
    assert "HTTP 429; the server asks to wait 60 s; " in str(error)
    assert (error.kind, error.attempts, len(server.requests)) == ("http_429", 2, 2)


async def test_a_server_out_of_order_uses_up_attempts_and_keeps_its_places(serve):
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
