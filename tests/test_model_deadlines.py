"""Time and the model client: deadlines, `Retry-After`, calls at once."""
import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agents import CallLimits, ModelSettings, open_model
from documents import CallError, CallTimeout
from strategies import Generate, Message

ASK = Generate((Message("user", ("Where?",)),), "answer")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("retrieval.servers._FIRST", 0.01)
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


@pytest.mark.parametrize("dated", [False, True])
async def test_retry_after_is_honoured_as_seconds_and_as_a_date(serve, dated):
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    server = serve([{"status": 429, "headers": {"Retry-After": format_datetime(until, usegmt=True) if dated else "1"}},
                    "Paris"])
    started = time.monotonic()
    assert (await call(server)).reply.text == "Paris"
    assert datetime.now(UTC) >= until if dated else time.monotonic() - started >= 1


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


async def test_a_cancelled_call_gives_its_place_back(serve):
    server = serve(lambda body: {"text": "ok", "delay": 5 if body["max_tokens"] == 1 else 0})
    async with open_model(f"{server.url}#m", ModelSettings(calls=CallLimits(concurrency=1))) as model:
        task = asyncio.create_task(model.complete(ASK, max_tokens=1))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await model.complete(ASK, max_tokens=2)).reply.text == "ok"
